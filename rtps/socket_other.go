//go:build !linux

package rtps

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// platformSocket has nothing to keep where datagrams are moved one by one.
type platformSocket struct{} //nolint:unused // Linux has something to keep

// setBuffers asks for socket buffers of the given sizes in bytes; 0 leaves one alone.
func (s *socket) setBuffers(recv, send int) {
	for n := recv; n >= 64<<10; n /= 2 { // some systems refuse what is over their limit instead of giving less
		if s.SetReadBuffer(n) == nil {
			break
		}
	}
	if send > 0 {
		_ = s.SetWriteBuffer(send)
	}
}

func (s *socket) recvBuffer() int    { return 0 }
func (s *socket) drops() uint64      { return 0 }
func (s *socket) segmentation() bool { return false }

// receive hands datagrams to f, without stamps, until the socket fails or is closed, and returns why: never nil.
func (s *socket) receive(_ int, f func(datagrams [][]byte, stamps []int64)) error {
	buf := make([]byte, maxDatagram)
	one := make([][]byte, 1)
	for {
		n, _, err := s.ReadFromUDPAddrPort(buf)
		if err != nil {
			if transient(err) {
				continue
			}
			return err
		}
		one[0] = buf[:n]
		f(one, nil)
	}
}

// intake receives at the sockets for data.
type intake struct{ sockets []*socket }

func newIntake(sockets []*socket) (*intake, error) { return &intake{sockets}, nil }

// receive hands datagrams to f, without stamps, until the sockets fail or are closed, and returns why: never nil.
func (in *intake) receive(_ int, _ bool, f func(datagrams [][]byte, stamps []int64)) error {
	errs := make([]error, len(in.sockets))
	var wg sync.WaitGroup
	for i, s := range in.sockets {
		wg.Go(func() { errs[i] = s.receive(1, f) })
	}
	wg.Wait()
	if err := errors.Join(errs...); !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return net.ErrClosed
}

// stop has receive return soon. Idempotent.
func (in *intake) stop() {
	for _, s := range in.sockets {
		_ = s.SetReadDeadline(time.Unix(1, 0)) // what is closed already is as good
	}
}

func (s *socket) quicken() {}

// sendTo sends one datagram.
func (s *socket) sendTo(b []byte, dst netip.AddrPort) error {
	_, err := s.WriteToUDPAddrPort(b, dst)
	return err
}

// sendBatch sends every message; the first error is returned when all have been tried.
func (s *socket) sendBatch(ms []outMsg) error {
	var first error
	var b []byte
	for i := range ms {
		b = b[:0]
		for _, p := range ms[i].bufs {
			b = append(b, p...)
		}
		if _, err := s.WriteToUDPAddrPort(b, ms[i].dst); err != nil && first == nil {
			first = err
		}
	}
	return first
}
