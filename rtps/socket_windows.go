package rtps

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"
)

// setReuse lets several processes bind the multicast port.
func setReuse(fd uintptr) error {
	return windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_REUSEADDR, 1)
}

// transient reports errors of a receive that concern one datagram: Windows reports an ICMP "port unreachable" for
// something sent earlier, and a datagram that did not fit.
func transient(err error) bool {
	return errors.Is(err, syscall.Errno(windows.WSAECONNRESET)) || errors.Is(err, syscall.Errno(windows.WSAEMSGSIZE))
}
