//go:build unix

package rtps

import "golang.org/x/sys/unix"

// setReuse lets several processes bind the multicast port. Both options: the vendors use one or the other.
func setReuse(fd uintptr) error {
	if err := unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}
