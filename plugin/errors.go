package plugin

import (
	"errors"
	"fmt"
)

// Errors that callers test for.
var (
	ErrExists       = errors.New("already exists")
	ErrFormat       = errors.New("not this storage format")
	ErrUnknownTopic = errors.New("unknown topic")
	ErrClosed       = errors.New("closed")
	ErrUnsupported  = errors.New("not supported by this storage format")
	ErrNoDriver     = errors.New("no such storage format")
)

// CorruptError reports damage in a storage.
type CorruptError struct {
	Path   string
	Offset int64 // bytes from the start of the file; -1 unknown
	Err    error // what is wrong
}

func (e *CorruptError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("corrupt storage %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("corrupt storage %s at byte %d: %v", e.Path, e.Offset, e.Err)
}

// Unwrap returns what is wrong.
func (e *CorruptError) Unwrap() error { return e.Err }
