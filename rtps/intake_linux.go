package rtps

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// intake receives at the sockets for data with one goroutine. The runtime's poller does not know the sockets: it would wake
// up for every datagram that comes, also while the goroutine works or waits on purpose, which with small messages costs
// more than all that is done with them. It knows a gate instead, an epoll(7) descriptor in which each socket announces itself
// once, and not again until it has been read. (A goroutine that sleeps in the system call itself is no way out: the
// runtime's monitor looks after it every 20 µs.)
type intake struct {
	sockets []*socket
	gate    *os.File
	raw     syscall.RawConn
	events  []unix.EpollEvent
	came    int // of events
	stopped atomic.Bool

	appetites []appetite // of the sockets
}

// newIntake takes the sockets over. They still belong to the caller, who closes them after the intake.
func newIntake(sockets []*socket) (*intake, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), unix.Close(fd))
	}
	in := &intake{sockets: sockets, gate: os.NewFile(uintptr(fd), "epoll"), events: make([]unix.EpollEvent, len(sockets)),
		appetites: make([]appetite, len(sockets))}
	if in.raw, err = in.gate.SyscallConn(); err != nil {
		return nil, errors.Join(fmt.Errorf("epoll: %w", err), in.gate.Close())
	}
	for i, s := range sockets {
		if err := s.detach(); err != nil {
			return nil, errors.Join(err, in.gate.Close())
		}
		s.stamp()
		if err := in.open(unix.EPOLL_CTL_ADD, i); err != nil {
			return nil, errors.Join(err, in.gate.Close())
		}
	}
	return in, nil
}

// open lets a socket announce itself, at once if there is something to read.
func (in *intake) open(op, i int) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(i)}
	var errno syscall.Errno
	if err := in.raw.Control(func(fd uintptr) {
		_, _, errno = unix.RawSyscall6(unix.SYS_EPOLL_CTL, fd, uintptr(op), uintptr(in.sockets[i].off.fd), uintptr(unsafe.Pointer(&e)), 0, 0)
	}); err != nil {
		return err
	}
	if errno != 0 {
		return fmt.Errorf("epoll: %w", errno)
	}
	return nil
}

// rounds bounds how often one socket is read before the others are looked at.
const rounds = 16

// receive hands batches of datagrams to f until a socket fails or the intake is stopped, and returns why: never nil. stamps
// are the wall clock when the kernel got them, in nanoseconds since the Unix epoch, 0 where it does not say. With lulls
// reading waits a moment where that saves wake-ups (coalesce.go): a datagram is then handed over up to two milliseconds
// after it came, and the sockets' buffers must hold what comes meanwhile.
func (in *intake) receive(most int, lulled bool, f func(datagrams [][]byte, stamps []int64)) error {
	err := in.run(most, lulled, f)
	if in.stopped.Load() { // whatever a closed gate says
		return net.ErrClosed
	}
	return err
}

func (in *intake) run(most int, lulled bool, f func(datagrams [][]byte, stamps []int64)) error {
	b := newBatch(most)
	came := func(fd uintptr) bool {
		n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, fd, uintptr(unsafe.Pointer(&in.events[0])), uintptr(len(in.events)), 0, 0, 0)
		if in.came = int(n); errno != 0 { // EINTR
			in.came = 0
		}
		return in.came > 0
	}
	var l lulls
	began := time.Now()
	for {
		if err := in.raw.Read(came); err != nil {
			return err
		}
		for !in.stopped.Load() { // again and again while waiting pays
			n, bytes, err := in.read(b, f)
			if err != nil {
				return err
			}
			if !lulled || in.bulk() { // the writer of large samples may wait for us
				break
			}
			d := l.after(n, bytes, time.Since(began))
			if d == 0 {
				break
			}
			time.Sleep(d)
		}
		for _, e := range in.events[:in.came] {
			if err := in.open(unix.EPOLL_CTL_MOD, int(e.Fd)); err != nil {
				return err
			}
		}
	}
}

// read takes what the sockets that came have, and says how much it was.
func (in *intake) read(b *batch, f func(datagrams [][]byte, stamps []int64)) (n, bytes int, err error) {
	for _, e := range in.events[:in.came] {
		s, a := in.sockets[e.Fd], &in.appetites[e.Fd]
		for range rounds {
			most := a.most(len(b.hdrs))
			if errno := b.read(uintptr(s.off.fd), most); errno != 0 && errno != unix.EINTR && errno != unix.EAGAIN {
				return n, bytes, fmt.Errorf("recvmmsg: %w", errno)
			}
			if len(b.got) > 0 {
				f(b.got, b.stamps)
			}
			n, bytes = n+len(b.got), bytes+b.bytes
			a.took(len(b.got), b.bytes)
			if len(b.got) < most {
				break
			}
		}
	}
	return n, bytes, nil
}

// bulk reports whether one of the sockets that came had large datagrams lately.
func (in *intake) bulk() bool {
	for _, e := range in.events[:in.came] {
		if in.appetites[e.Fd].bulk > 0 {
			return true
		}
	}
	return false
}

// stop has receive return soon. Idempotent.
func (in *intake) stop() {
	in.stopped.Store(true)
	_ = in.gate.Close()
}
