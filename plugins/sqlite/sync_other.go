//go:build !linux

package sqlite

import "os"

// datasync makes the content of f durable.
func datasync(f *os.File) error { return f.Sync() }
