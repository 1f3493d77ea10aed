//go:build unix && !linux

package rtps

import (
	"errors"
	"syscall"
)

// transient reports errors of a receive that concern one datagram.
func transient(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EINTR)
}
