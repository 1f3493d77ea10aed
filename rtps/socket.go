package rtps

import (
	"context"
	"fmt"
	"net"
	"syscall"
)

// maxDatagram is the size of a receive buffer: no UDP payload is larger.
const maxDatagram = 64 << 10

// socket is a UDP socket with batches where the system has them.
type socket struct {
	*net.UDPConn
	raw            syscall.RawConn
	platformSocket //nolint:unused // empty but on Linux
}

// listenUDP binds a port on every address. A shared port can be bound by others too, as multicast needs it.
func listenUDP(port int, shared bool) (*socket, error) {
	lc := net.ListenConfig{}
	if shared {
		lc.Control = func(_, _ string, c syscall.RawConn) error {
			var err error
			if e := c.Control(func(fd uintptr) { err = setReuse(fd) }); e != nil {
				return e
			}
			return err
		}
	}
	return listen(&lc, fmt.Sprintf("0.0.0.0:%d", port))
}

// listenLoopback binds a free port on loopback.
func listenLoopback() (*socket, error) { return listen(&net.ListenConfig{}, loopback.String()+":0") }

func listen(lc *net.ListenConfig, address string) (*socket, error) {
	c, err := lc.ListenPacket(context.Background(), "udp4", address)
	if err != nil {
		return nil, fmt.Errorf("bind udp %s: %w", address, err)
	}
	s := &socket{UDPConn: c.(*net.UDPConn)}
	if s.raw, err = s.SyscallConn(); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("bind udp %s: %w", address, err)
	}
	return s, nil
}
