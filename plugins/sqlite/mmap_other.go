//go:build !unix

package sqlite

import (
	"errors"
	"os"
)

// mapFile is not there: all is read through SQLite.
func mapFile(*os.File, int64) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) error { return nil }
