//go:build !linux || !(amd64 || arm64)

package leveldb

import "os"

func mapFile(*os.File, int64) []byte { return nil }

func unmap([]byte) {}
