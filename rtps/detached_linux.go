package rtps

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// detached is a socket that the runtime's poller does not know. It is a syscall.RawConn without Read.
type detached struct {
	fd      int
	mu      sync.RWMutex // held while fd is used, but for the intake's reading
	closing atomic.Bool
	closed  bool
}

// detach takes a socket out of the runtime's poller: closing the connection does that, and a second descriptor keeps the
// socket itself.
func (s *socket) detach() error {
	if s.off != nil {
		return nil
	}
	d, err := s.duplicate()
	if err != nil {
		return fmt.Errorf("socket of its own for data: %w", err)
	}
	_ = s.UDPConn.Close() // its descriptor, not the socket
	s.off, s.raw = d, d
	return nil
}

// duplicate makes a second descriptor of the socket.
func (s *socket) duplicate() (*detached, error) {
	d := new(detached)
	err := s.control(func(fd int) (err error) {
		d.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return d, err
}

// Close closes the socket. The intake must have ended.
func (s *socket) Close() error {
	if s.quick != nil {
		_ = s.quick.Close() // the other descriptor's error is told
	}
	if s.off != nil {
		return s.off.Close()
	}
	return s.UDPConn.Close()
}

// Control implements syscall.RawConn.
func (d *detached) Control(f func(fd uintptr)) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return net.ErrClosed
	}
	f(uintptr(d.fd))
	return nil
}

// Read implements syscall.RawConn: the intake reads.
func (d *detached) Read(func(fd uintptr) bool) error { return syscall.ENOTSUP }

// sendPatience is how long a sender sleeps in ms before it looks whether the socket is being closed.
const sendPatience = 5

// Write implements syscall.RawConn: it calls f until it returns true, waiting for room between.
func (d *detached) Write(f func(fd uintptr) bool) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for !d.closing.Load() && !d.closed {
		if f(uintptr(d.fd)) {
			return nil
		}
		fds := [1]unix.PollFd{{Fd: int32(d.fd), Events: unix.POLLOUT}}
		if _, err := unix.Poll(fds[:], sendPatience); err != nil && err != unix.EINTR && err != unix.ENOMEM {
			return fmt.Errorf("poll: %w", err)
		}
	}
	return net.ErrClosed
}

// Close closes the socket when nobody uses it any more.
func (d *detached) Close() error {
	d.closing.Store(true)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return net.ErrClosed
	}
	d.closed = true
	return unix.Close(d.fd)
}
