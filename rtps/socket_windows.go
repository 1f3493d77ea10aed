package rtps

import (
	"errors"

	"golang.org/x/sys/windows"
)

// setReuse lets several processes bind the multicast port.
func setReuse(fd uintptr) error {
	return windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, windows.SO_REUSEADDR, 1)
}

// transient reports errors of a receive that concern one datagram: Windows reports an ICMP "port unreachable" or "time to
// live exceeded" for something sent earlier, and a datagram that did not fit (recvfrom, Winsock reference).
func transient(err error) bool {
	return errors.Is(err, windows.WSAECONNRESET) || errors.Is(err, windows.WSAENETRESET) || errors.Is(err, windows.WSAEMSGSIZE)
}
