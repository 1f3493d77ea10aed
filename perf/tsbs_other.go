//go:build !linux

package perf

import "errors"

// dropFromCache makes the next reads of the files at path come from the disk.
func dropFromCache(string) error { return errors.New("cannot be dropped on this system") }
