//go:build linux

package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Relay carries Ethernet frames between two interfaces, so that a test can lose, repeat, delay, change and count the
// datagrams between real peers.
type Relay struct {
	ends [2]*frameSocket
	wg   sync.WaitGroup

	mu   sync.Mutex
	rule Rule
	tap  func(p *Packet, fate Fate)
	dump *dump

	// Lost counts datagrams that the relay itself had no room for: a test that counts losses wants zero.
	Lost atomic.Uint64
}

// Fate is what becomes of a datagram. The zero value passes it on.
type Fate struct {
	Drop    bool
	Copies  int           // further ones
	Delay   time.Duration // what is sent later may come earlier
	Replace []byte        // the UDP payload instead; nil = as it is
}

// Rule decides about a datagram. It is called for one datagram at a time.
type Rule func(p *Packet) Fate

// Drop is the fate of what is lost.
var Drop = Fate{Drop: true}

// SetRule replaces the rule; nil passes everything on.
func (r *Relay) SetRule(rule Rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rule = rule
}

// SetTap has every datagram shown to tap after the rule; nil ends it. Like a rule it is called for one at a time.
func (r *Relay) SetTap(tap func(p *Packet, fate Fate)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tap = tap
}

// startRelay opens both interfaces in their namespace and carries frames between them.
func startRelay(namespace, a, b string, mtu int) (*Relay, error) {
	r, err := inNamespace(namespace, func() (*Relay, error) { return openRelay(a, b, mtu) })
	if err != nil {
		return nil, fmt.Errorf("relay in %s: %w", namespace, err)
	}
	for i := range r.ends {
		r.wg.Go(func() { r.carry(i) })
	}
	return r, nil
}

// inNamespace calls f in another network namespace; the sockets that it makes stay there. The thread comes back: it must
// not end, since processes that it started would be killed with it (Pdeathsig).
func inNamespace(namespace string, f func() (*Relay, error)) (r *Relay, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer home.Close()
	there, err := os.Open("/run/netns/" + namespace)
	if err != nil {
		return nil, err
	}
	defer there.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("setns: %w", err)
	}
	defer func() {
		if e := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); e != nil {
			panic(fmt.Sprintf("relay: cannot come back from namespace %s: %v", namespace, e))
		}
	}()
	return f()
}

func openRelay(a, b string, mtu int) (*Relay, error) {
	r := &Relay{}
	for i, name := range []string{a, b} {
		var err error
		if r.ends[i], err = openFrames(name, mtu); err != nil {
			if i == 1 {
				r.ends[0].Close()
			}
			return nil, err
		}
	}
	return r, nil
}

// frameSocket sends and receives the frames of one interface.
type frameSocket struct {
	file *os.File // in the runtime's poller, so that Close ends Read
	raw  syscall.RawConn
	room int
}

func openFrames(name string, mtu int) (*frameSocket, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	all := uint16(unix.ETH_P_ALL)<<8 | uint16(unix.ETH_P_ALL)>>8 // network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, int(all))
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	fail := func(what string, err error) (*frameSocket, error) {
		unix.Close(fd)
		return nil, fmt.Errorf("%s of %s: %w", what, name, err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: link.Index}); err != nil {
		return fail("bind", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
		return fail("ignore outgoing frames", err)
	}
	member := unix.PacketMreq{Ifindex: int32(link.Index), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member); err != nil {
		return fail("promiscuous mode", err)
	}
	for _, option := range []int{unix.SO_RCVBUFFORCE, unix.SO_SNDBUFFORCE} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 128<<20); err != nil {
			return fail("buffer", err)
		}
	}
	s := &frameSocket{file: os.NewFile(uintptr(fd), name), room: mtu + 18}
	if s.raw, err = s.file.SyscallConn(); err != nil {
		return fail("raw connection", err)
	}
	return s, nil
}

func (s *frameSocket) Close() error { return s.file.Close() }

// carry passes on what comes in at one end until the relay closes.
func (r *Relay) carry(from int) {
	in, out := r.ends[from], r.ends[1-from]
	buf := make([]byte, in.room)
	var p Packet
	for {
		n, err := in.file.Read(buf)
		if err != nil {
			if errors.Is(err, unix.ENETDOWN) { // its host is being removed
				continue
			}
			return
		}
		frame := buf[:n]
		if !p.parse(frame, from == 0) {
			r.send(out, frame) // ARP, IGMP
			continue
		}
		r.mu.Lock()
		var fate Fate
		if r.rule != nil {
			fate = r.rule(&p)
		}
		if r.tap != nil {
			r.tap(&p, fate)
		}
		if fate.Replace != nil && !fate.Drop {
			frame = p.replace(fate.Replace)
		}
		if r.dump != nil && !fate.Drop {
			r.dump.add(frame)
		}
		r.mu.Unlock()
		if fate.Drop {
			continue
		}
		for range 1 + fate.Copies {
			if fate.Delay <= 0 {
				r.send(out, frame)
				continue
			}
			late := append([]byte(nil), frame...)
			time.AfterFunc(fate.Delay, func() { r.send(out, late) })
		}
	}
}

// send puts a frame on the wire. The other end's queue may be full for a moment.
func (r *Relay) send(s *frameSocket, frame []byte) {
	for range 1000 {
		_, err := s.file.Write(frame)
		if err == nil {
			return
		}
		if !errors.Is(err, unix.ENOBUFS) {
			break
		}
		time.Sleep(100 * time.Microsecond)
	}
	r.Lost.Add(1)
}

// Overrun is how many frames came faster than the relay could take them.
func (r *Relay) Overrun() uint64 {
	total := uint64(0)
	for _, s := range r.ends {
		_ = s.raw.Control(func(fd uintptr) {
			if st, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
				total += uint64(st.Drops)
			}
		})
	}
	return total
}

// Close ends the relay.
func (r *Relay) Close() error {
	errs := []error{r.ends[0].Close(), r.ends[1].Close()}
	r.wg.Wait()
	return errors.Join(append(errs, r.StopCapture())...)
}
