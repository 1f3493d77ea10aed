package rtps

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
)

// Ports of RTPS 2.5 §9.6.1.1 with the default parameters.
const (
	portBase         = 7400
	portDomainGain   = 250
	maxParticipantID = 119 // the next one would reach into the ports of the next domain
	spdpProbes       = 10  // participant ids of this host that are announced to by unicast beside multicast
	localProbes      = 33  // and where there is no multicast
	peerProbes       = 32  // participant ids tried on a static peer without a port
)

func portMulticast(domain int) int     { return portBase + portDomainGain*domain }
func portDataMulticast(domain int) int { return portBase + portDomainGain*domain + 1 }
func portDiscovery(domain, id int) int { return portBase + portDomainGain*domain + 10 + 2*id }
func portData(domain, id int) int      { return portBase + portDomainGain*domain + 11 + 2*id }

var spdpGroup = netip.AddrFrom4([4]byte{239, 255, 0, 1})

// udpLink is the participant's sockets: two for unicast, bound to every address (peers on this host send to 127.0.0.1
// whatever we announce), one for multicast discovery, and where it is asked for one for data by multicast.
type udpLink struct {
	cfg    Config
	log    *slog.Logger
	names  []string // of the interfaces to use; empty: all
	id     int      // participant id: which ports
	disc   *socket
	data   *socket
	multi  *socket   // nil without multicast
	flood  *socket   // data by multicast; nil without
	spread []*socket // lanes
	intake *intake   // of data and lanes
	groups []*ipv4.PacketConn
	wg     sync.WaitGroup
	stop   context.CancelFunc

	announce sync.Mutex // serializes Announce: it switches the multicast interface
	rounds   int        // of Announce
	checked  time.Time  // interfaces

	stamped func(datagrams [][]byte, stamps []int64) // receives instead of the function that Start gets; nil that one does

	ifs   atomic.Pointer[[]netif]
	peers atomic.Pointer[[]netip.AddrPort] // static peers, resolved

	packets, bytes, sendErrors atomic.Uint64
}

// ListenUDP binds the sockets that a participant with this configuration would use, for a test that puts something
// between them and the participant (Config.Transport). It belongs to whoever closes it.
func ListenUDP(cfg Config) (Transport, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return newUDPLink(cfg.withDefaults())
}

// newUDPLink binds the sockets.
func newUDPLink(cfg Config) (*udpLink, error) {
	if portDiscovery(cfg.Domain, 0) > 65535 {
		return nil, fmt.Errorf("domain %d: its ports are beyond 65535", cfg.Domain)
	}
	names := cfg.Interfaces
	if cfg.Range == RangeLocalhost && len(cfg.Peers) == 0 {
		names = nil // loopback is what is used, whatever is named
	}
	ifs, err := listInterfaces(names)
	if err != nil {
		return nil, err
	}
	if len(ifs) == 0 {
		return nil, errors.New("no network interface is up (ip link set lo up)")
	}
	l := &udpLink{cfg: cfg, log: cfg.Logger, names: names, stop: func() {}}
	l.ifs.Store(&ifs)
	l.peers.Store(new([]netip.AddrPort))
	if err := l.bindUnicast(); err != nil {
		return nil, err
	}
	if l.useMulticast() {
		if err := l.openMulticast(); err != nil {
			// A host without any multicast route or permission still works by unicast.
			l.log.Warn("multicast discovery is off", "err", err)
		}
	}
	lanes := lanesFor(cfg.RecvBuffer, l.data.recvBuffer())
	if cfg.lanes > 0 {
		lanes = cfg.lanes
	}
	if slices.ContainsFunc(ifs, func(i netif) bool { return i.loopback }) && cfg.Range != RangeOff {
		l.openLanes(lanes)
	}
	if l.intake, err = newIntake(append([]*socket{l.data}, l.spread...)); err != nil {
		return nil, errors.Join(fmt.Errorf("udp ports of domain %d: %w", cfg.Domain, err), l.Close())
	}
	return l, nil
}

func (l *udpLink) useMulticast() bool { return !l.cfg.NoMulticast && l.cfg.Range != RangeOff }

// bindUnicast takes the first participant id whose two ports are free. Without SO_REUSEADDR, so that a port in use is
// noticed.
func (l *udpLink) bindUnicast() error {
	var err error
	for id := 0; id <= maxParticipantID && portData(l.cfg.Domain, id) <= 65535; id++ {
		if l.disc, err = listenUDP(portDiscovery(l.cfg.Domain, id), false); err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				continue
			}
			return err
		}
		if l.data, err = listenUDP(portData(l.cfg.Domain, id), false); err == nil {
			l.id = id
			l.disc.quicken()
			l.disc.setBuffers(min(l.cfg.RecvBuffer, 4<<20), 1<<20)
			l.data.setBuffers(l.cfg.RecvBuffer, 4<<20)
			return nil
		}
		_ = l.disc.Close() // of no use alone
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
	return fmt.Errorf("bind udp ports of domain %d: all %d participant ids of this host are taken: %w", l.cfg.Domain, maxParticipantID+1, err)
}

func (l *udpLink) openMulticast() error {
	s, err := listenUDP(portMulticast(l.cfg.Domain), true)
	if err != nil {
		return err
	}
	s.setBuffers(min(l.cfg.RecvBuffer, 4<<20), 0)
	l.multi, l.groups = s, []*ipv4.PacketConn{ipv4.NewPacketConn(s.UDPConn)}
	if l.cfg.DataMulticast {
		if l.flood, err = listenUDP(portDataMulticast(l.cfg.Domain), true); err != nil {
			l.flood = nil
			l.log.Warn("data is received by unicast only", "err", err)
		} else {
			l.flood.setBuffers(l.cfg.RecvBuffer, 0)
			l.groups = append(l.groups, ipv4.NewPacketConn(l.flood.UDPConn))
		}
	}
	l.join(nil)
	return nil
}

// join joins the group of discovery, and of data, on the interfaces that had not been there before.
func (l *udpLink) join(before []netif) {
	had := map[int]bool{}
	for _, i := range before {
		had[i.index] = true
	}
	for _, i := range *l.ifs.Load() {
		if had[i.index] || !l.multicastOn(i) {
			continue
		}
		for _, g := range l.groups {
			err := g.JoinGroup(&net.Interface{Index: i.index, Name: i.name}, &net.UDPAddr{IP: spdpGroup.AsSlice()})
			if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
				l.log.Debug("cannot join a multicast group", "interface", i.name, "err", err)
			}
		}
	}
}

// multicastOn says where the group is joined and sent to. lo carries multicast on Linux even where it lacks the flag.
func (l *udpLink) multicastOn(i netif) bool {
	return i.loopback || l.cfg.Range != RangeLocalhost
}

// dataBatch is how many datagrams of data are taken at once.
const dataBatch = 32

// Start begins receiving.
func (l *udpLink) Start(receive func([][]byte)) error {
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	f := func(datagrams [][]byte, _ []int64) { receive(datagrams) }
	if l.stamped != nil {
		f = l.stamped
	}
	ended := func(s *socket, err error) {
		if !errors.Is(err, net.ErrClosed) {
			l.log.Error("receiving stopped", "socket", s.LocalAddr().String(), "err", err)
		}
	}
	run := func(s *socket, batch int) {
		l.wg.Go(func() { ended(s, s.receive(batch, f)) })
	}
	l.wg.Go(func() {
		lulled := l.data.recvBuffer() >= laneBelow // a small buffer cannot wait
		ended(l.data, l.intake.receive(dataBatch, lulled, f))
	})
	run(l.disc, 8)
	if l.multi != nil {
		run(l.multi, 8)
	}
	if l.flood != nil {
		run(l.flood, dataBatch)
	}
	if len(l.cfg.Peers) > 0 && l.cfg.Range != RangeOff && l.cfg.Range != RangeSystemDefault {
		l.wg.Go(func() { l.resolve(ctx) })
	}
	return nil
}

// resolve keeps the addresses of the static peers up to date.
func (l *udpLink) resolve(ctx context.Context) {
	for {
		var out []netip.AddrPort
		for _, p := range l.cfg.Peers {
			host, port, err := splitPeer(p)
			if err != nil {
				continue // Validate has refused it
			}
			addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
			if err != nil {
				l.log.Debug("static peer is not resolved", "peer", p, "err", err)
				continue
			}
			for _, a := range addrs {
				out = append(out, netip.AddrPortFrom(a.Unmap(), port))
			}
		}
		first := len(*l.peers.Load()) == 0
		l.peers.Store(&out)
		wait := time.Minute
		if first && len(out) < len(l.cfg.Peers) {
			wait = 5 * time.Second
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Locators lists where dst reaches us: this host by loopback, others by the addresses of the interfaces.
func (l *udpLink) Locators(dst netip.Addr) (discovery, data []netip.AddrPort) {
	local := dst.IsValid() && l.Local(dst)
	var addrs []netip.Addr
	onLoopback := false
	for _, i := range *l.ifs.Load() {
		for _, a := range i.addrs {
			if i.loopback {
				onLoopback = true
			} else {
				addrs = append(addrs, a.Addr())
			}
		}
	}
	if len(addrs) == 0 || onLoopback && local || l.cfg.Range == RangeLocalhost && len(l.cfg.Peers) == 0 {
		addrs = []netip.Addr{loopback}
	}
	for _, a := range addrs {
		discovery = append(discovery, netip.AddrPortFrom(a, uint16(portDiscovery(l.cfg.Domain, l.id))))
		data = append(data, netip.AddrPortFrom(a, uint16(portData(l.cfg.Domain, l.id))))
	}
	if l.flood != nil {
		data = append(data, netip.AddrPortFrom(spdpGroup, uint16(portDataMulticast(l.cfg.Domain))))
	}
	return discovery, data
}

// Local reports whether a is an address of this host.
func (l *udpLink) Local(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	for _, i := range *l.ifs.Load() {
		for _, p := range i.addrs {
			if p.Addr() == a {
				return true
			}
		}
	}
	return false
}

// onLink reports whether a is on a subnet of one of our interfaces.
func (l *udpLink) onLink(a netip.Addr) bool {
	for _, i := range *l.ifs.Load() {
		for _, p := range i.addrs {
			if p.Contains(a) {
				return true
			}
		}
	}
	return false
}

// mtu returns the MTU of the interface that a is on the subnet of, 0 if there is none.
func (l *udpLink) mtu(a netip.Addr) int {
	for _, i := range *l.ifs.Load() {
		for _, p := range i.addrs {
			if p.Contains(a) {
				return i.mtu
			}
		}
	}
	return 0
}

// Send sends from the discovery socket.
func (l *udpLink) Send(dst netip.AddrPort, b []byte) error {
	err := l.disc.sendTo(b, dst)
	l.count(1, len(b), err)
	return err
}

func (l *udpLink) sendBatch(ms []outMsg) error {
	bytes := 0
	for i := range ms {
		bytes += ms[i].size()
	}
	err := l.data.sendBatch(ms)
	l.count(len(ms), bytes, err)
	return err
}

func (l *udpLink) segmentation() bool { return l.data.segmentation() }

func (l *udpLink) count(packets, bytes int, err error) {
	l.packets.Add(uint64(packets))
	l.bytes.Add(uint64(bytes))
	if err != nil {
		l.sendErrors.Add(1)
	}
}

// Announce sends to the group on every interface, to the likely ports of this host and to the static peers.
func (l *udpLink) Announce(build func(discovery, data []netip.AddrPort) []byte) error {
	if l.cfg.Range == RangeOff {
		return nil
	}
	l.announce.Lock()
	defer l.announce.Unlock()
	l.refreshInterfaces()
	lo, far := build(l.Locators(loopback)), build(l.Locators(netip.Addr{}))
	var errs []error
	onLoopback := false
	for _, i := range *l.ifs.Load() {
		onLoopback = onLoopback || i.loopback
		if l.multi == nil || !l.multicastOn(i) {
			continue
		}
		b := far
		if i.loopback {
			b = lo
		}
		if err := l.multicast(i, b); err != nil {
			errs = append(errs, err)
		}
	}
	l.probe(onLoopback, lo, far)
	l.rounds++
	return errors.Join(errs...)
}

// probe announces by unicast. Errors are normal: most ports have nobody.
func (l *udpLink) probe(onLoopback bool, lo, far []byte) {
	n := spdpProbes
	if l.multi == nil || l.cfg.Range == RangeLocalhost {
		n = localProbes
	}
	if onLoopback && (l.rounds < 10 || l.rounds%4 == 0) { // peers that start later probe us
		for id := range n {
			if id != l.id {
				_ = l.Send(netip.AddrPortFrom(loopback, uint16(portDiscovery(l.cfg.Domain, id))), lo)
			}
		}
	}
	for _, p := range *l.peers.Load() {
		b := far
		if l.Local(p.Addr()) {
			b = lo
		}
		if p.Port() != 0 {
			_ = l.Send(p, b)
			continue
		}
		// A participant that did not take a port by the formula still listens on the multicast port.
		_ = l.Send(netip.AddrPortFrom(p.Addr(), uint16(portMulticast(l.cfg.Domain))), b)
		for id := range peerProbes {
			if port := portDiscovery(l.cfg.Domain, id); port <= 65535 {
				_ = l.Send(netip.AddrPortFrom(p.Addr(), uint16(port)), b)
			}
		}
	}
}

func (l *udpLink) multicast(i netif, b []byte) error {
	pc := ipv4.NewPacketConn(l.disc.UDPConn)
	if err := pc.SetMulticastInterface(&net.Interface{Index: i.index, Name: i.name}); err != nil {
		return fmt.Errorf("multicast on %s: %w", i.name, err)
	}
	if err := l.Send(netip.AddrPortFrom(spdpGroup, uint16(portMulticast(l.cfg.Domain))), b); err != nil {
		return fmt.Errorf("multicast on %s: %w", i.name, err)
	}
	return nil
}

// refreshInterfaces notices interfaces that came up or changed their address, every few seconds.
func (l *udpLink) refreshInterfaces() {
	now := time.Now()
	if now.Sub(l.checked) < 10*time.Second {
		return
	}
	first := l.checked.IsZero()
	l.checked = now
	if first {
		return
	}
	ifs, err := listInterfaces(l.names)
	before := *l.ifs.Load()
	if err != nil || len(ifs) == 0 || sameInterfaces(ifs, before) {
		return
	}
	l.log.Info("network interfaces changed", "now", len(ifs))
	l.ifs.Store(&ifs)
	if l.multi != nil {
		l.join(before)
	}
}

func (l *udpLink) stats(s *Stats) {
	s.SentPackets, s.SentBytes, s.SendErrors = l.packets.Load(), l.bytes.Load(), l.sendErrors.Load()
	s.RecvBuffer = l.data.recvBuffer()
	for _, k := range append([]*socket{l.data, l.disc, l.multi, l.flood}, l.spread...) {
		if k != nil {
			s.KernelDrops += k.drops()
		}
	}
}

// Close ends the receive goroutines and closes the sockets.
func (l *udpLink) Close() error {
	l.stop()
	var errs []error
	for _, s := range []*socket{l.disc, l.multi, l.flood} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if l.intake != nil {
		l.intake.stop()
	}
	l.wg.Wait()
	for _, s := range append([]*socket{l.data}, l.spread...) {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
