//go:build !linux

package sqlite

import "errors"

// populate is there on Linux only; elsewhere long ranges are read through SQLite.
func populate([]byte) error { return errors.ErrUnsupported }

func forget([]byte) {}
