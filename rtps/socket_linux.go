package rtps

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// platformSocket is what the Linux socket remembers.
type platformSocket struct {
	off       *detached   // what is left when the socket is out of the runtime's poller; nil it is in there
	quick     *detached   // a second descriptor for sendTo; nil it goes without
	noSegment atomic.Bool // the kernel or the device refused UDP_SEGMENT
}

func (s *socket) control(f func(fd int) error) error {
	var err error
	if e := s.raw.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		return e
	}
	return err
}

// setBuffers asks for socket buffers of the given sizes in bytes; 0 leaves one alone. The privileged option goes beyond
// net.core.rmem_max.
func (s *socket) setBuffers(recv, send int) {
	_ = s.control(func(fd int) error {
		if recv > 0 && unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, recv) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, recv)
		}
		if send > 0 && unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, send) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, send)
		}
		return nil
	})
}

// recvBuffer is the effective receive buffer as the kernel accounts it (twice what was asked for).
func (s *socket) recvBuffer() int {
	n := 0
	_ = s.control(func(fd int) (err error) {
		n, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		return err
	})
	return n
}

// drops is the socket's drop counter, the one of SO_RXQ_OVFL and /proc/net/udp.
func (s *socket) drops() uint64 {
	const drops = 8              // SK_MEMINFO_DROPS
	var mem [drops + 1]uint32    // struct of SO_MEMINFO
	size := uint32(len(mem) * 4) // in, out
	_ = s.control(func(fd int) error {
		_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&mem)), uintptr(unsafe.Pointer(&size)), 0)
		if e != 0 {
			return e
		}
		return nil
	})
	return uint64(mem[drops])
}

// quicken prepares sendTo; without it that works all the same.
func (s *socket) quicken() {
	if d, err := s.duplicate(); err == nil {
		s.quick = d
	}
}

// sendTo sends one small datagram. It is a raw system call where there is room: it does not block, and the runtime's
// monitor, which an ordinary one wakes up, would cost as much again.
func (s *socket) sendTo(b []byte, dst netip.AddrPort) error {
	if s.quick != nil && len(b) > 0 && s.quick.sendTo(b, dst) {
		return nil
	}
	_, err := s.WriteToUDPAddrPort(b, dst)
	return err
}

// sendTo reports whether it was sent.
func (d *detached) sendTo(b []byte, dst netip.AddrPort) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return false
	}
	var a unix.RawSockaddrInet4
	fillAddr(&a, dst)
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(d.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL,
		uintptr(unsafe.Pointer(&a)), unix.SizeofSockaddrInet4)
	return errno == 0
}

// sender is the scratch memory of one sendBatch.
type sender struct {
	hdrs  []mmsghdr
	addrs []unix.RawSockaddrInet4
	iovs  []unix.Iovec
	ctl   [][24]byte

	call  func(fd uintptr) bool // sendmmsg of hdrs[done:]; made once, since a closure is an allocation
	done  int
	n     int
	errno syscall.Errno
}

var senders = sync.Pool{New: func() any {
	sc := new(sender)
	sc.call = sc.sendmmsg
	return sc
}}

// sendBatch sends every message in order with sendmmsg. It waits while the socket is full. The first error is returned
// when all have been tried.
func (s *socket) sendBatch(ms []outMsg) error {
	sc := senders.Get().(*sender)
	defer func() {
		sc.clear()
		senders.Put(sc)
	}()
	sc.fill(ms)
	var first error
	for sc.done = 0; sc.done < len(ms); {
		sc.n, sc.errno = 0, 0
		if err := s.raw.Write(sc.call); err != nil {
			return err
		}
		sc.done += sc.n
		switch errno := sc.errno; {
		case errno == 0:
		case errno == unix.ENOBUFS || errno == unix.ENOMEM || errno == unix.EINTR:
			pause(200 * time.Microsecond)
		case ms[sc.done].segment > 0 && (errno == unix.EIO || errno == unix.EINVAL || errno == unix.EMSGSIZE):
			s.noSegment.Store(true)
			if err := s.sendBatch(unsegment(ms[sc.done])); err != nil && first == nil {
				first = err
			}
			sc.done++
		default:
			if first == nil {
				first = fmt.Errorf("send to %v: %w", ms[sc.done].dst, errno)
			}
			sc.done++
		}
	}
	return first
}

// sendmmsg sends some of the messages; errno is why it stopped before the end. It returns false to wait for room.
func (sc *sender) sendmmsg(fd uintptr) bool {
	hdrs := sc.hdrs[sc.done:]
	r, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&hdrs[0])), uintptr(len(hdrs)), unix.MSG_DONTWAIT, 0, 0)
	if errno == 0 {
		sc.n = int(r)
	}
	sc.errno = errno
	return errno != unix.EAGAIN
}

func (sc *sender) fill(ms []outMsg) {
	parts := 0
	for i := range ms {
		parts += len(ms[i].bufs)
	}
	if cap(sc.iovs) < parts {
		sc.iovs = make([]unix.Iovec, parts)
	}
	if cap(sc.hdrs) < len(ms) {
		sc.hdrs, sc.addrs, sc.ctl = make([]mmsghdr, len(ms)), make([]unix.RawSockaddrInet4, len(ms)), make([][24]byte, len(ms))
	}
	sc.hdrs, sc.iovs = sc.hdrs[:len(ms)], sc.iovs[:parts]
	sc.addrs, sc.ctl = sc.addrs[:len(ms)], sc.ctl[:len(ms)]
	k := 0
	for i := range ms {
		m := &ms[i]
		fillAddr(&sc.addrs[i], m.dst)
		h := &sc.hdrs[i]
		*h = mmsghdr{}
		h.hdr.Name = (*byte)(unsafe.Pointer(&sc.addrs[i]))
		h.hdr.Namelen = unix.SizeofSockaddrInet4
		first := k
		for _, b := range m.bufs {
			if len(b) > 0 {
				sc.iovs[k].Base = &b[0]
				sc.iovs[k].SetLen(len(b))
				k++
			}
		}
		h.hdr.Iov = &sc.iovs[first]
		h.hdr.SetIovlen(k - first)
		if m.segment > 0 {
			c := (*unix.Cmsghdr)(unsafe.Pointer(&sc.ctl[i]))
			c.Level, c.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
			c.SetLen(unix.CmsgLen(2))
			*(*uint16)(unsafe.Pointer(&sc.ctl[i][unix.CmsgLen(0)])) = uint16(m.segment)
			h.hdr.Control = &sc.ctl[i][0]
			h.hdr.SetControllen(unix.CmsgSpace(2))
		}
	}
}

// clear drops the references to the payloads.
func (sc *sender) clear() {
	clear(sc.hdrs)
	clear(sc.iovs)
}

func fillAddr(a *unix.RawSockaddrInet4, dst netip.AddrPort) {
	a.Family = unix.AF_INET
	p := dst.Port()
	a.Port = p>>8 | p<<8 // network byte order; every Linux that Go releases for here is little-endian
	a.Addr = dst.Addr().As4()
}

// unsegment splits a message for UDP_SEGMENT into its datagrams.
func unsegment(m outMsg) []outMsg {
	var out []outMsg
	var cur []byte
	for _, b := range m.bufs {
		for len(b) > 0 {
			n := min(len(b), m.segment-len(cur))
			cur = append(cur, b[:n]...)
			b = b[n:]
			if len(cur) == m.segment {
				out, cur = append(out, outMsg{dst: m.dst, bufs: [][]byte{cur}}), nil
			}
		}
	}
	if len(cur) > 0 {
		out = append(out, outMsg{dst: m.dst, bufs: [][]byte{cur}})
	}
	return out
}

func (s *socket) segmentation() bool { return !s.noSegment.Load() }

var _ net.Conn = (*socket)(nil)
