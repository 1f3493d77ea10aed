package fsx

import (
	"io/fs"
	"path/filepath"
)

// DiskSize returns the bytes of a file, or of all files below a directory; what cannot be read counts as nothing.
func DiskSize(path string) (n int64) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				n += fi.Size()
			}
		}
		return nil
	})
	return n
}
