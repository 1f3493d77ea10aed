//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/ros/ros2"
	"github.com/gobag/gobag/rtps"
)

// The crowd of the check: participants, and endpoints of each.
const (
	crowdSize      = 200
	crowdEndpoints = 10
	crowdMemory    = 60_000_000 // of the recorder, bytes
)

// checkCrowd records everything of a large fleet that is mostly silent, and has one more come.
func checkCrowd(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	bags, err := openBags()
	if err != nil {
		return err
	}
	defer os.RemoveAll(bags)
	rec, err := b.gobag.RecordAll(n, filepath.Join(bags, "bag"), "--min-free-space", "0")
	if err != nil {
		return err
	}
	defer rec.Kill()
	idle := pick(b, 20, 5)
	crowd, err := startChild(n, "crowd-child", "-domain", strconv.Itoa(n.Domain), "-idle", strconv.Itoa(idle))
	if err != nil {
		return err
	}
	defer crowd.Kill()
	ready, err := crowd.Await("ready", 1, 2*time.Minute)
	if err != nil {
		return err
	}
	b.note("%d participants with %d endpoints were subscribed after %.1f s", ready.Int("participants"), ready.Int("endpoints"), float64(ready.Int("after_ms"))/1e3)
	if _, err := crowd.Await("silent", 1, time.Minute); err != nil {
		return err
	}
	before, err := cpuOf(rec.Pid())
	if err != nil {
		return err
	}
	first, err := lab.ResidentBytes(rec.Pid())
	if err != nil {
		return err
	}
	quiet, err := crowd.Await("idle", 1, time.Minute+time.Duration(idle)*time.Second)
	if err != nil {
		return err
	}
	after, err := cpuOf(rec.Pid())
	if err != nil {
		return err
	}
	last, err := lab.ResidentBytes(rec.Pid())
	if err != nil {
		return err
	}
	newcomer, err := crowd.Await("newcomer", 1, time.Minute)
	if err != nil {
		return err
	}
	if err := errors.Join(crowd.Wait(time.Minute), rec.Stop(time.Minute)); err != nil {
		return err
	}
	b.figure(max(first, last) <= crowdMemory && last <= first+first/10, fmt.Sprintf("%d participants, %d endpoints: memory", crowdSize, crowdSize*crowdEndpoints),
		fmt.Sprintf("≤ %d MB, flat", crowdMemory/1_000_000), "%.1f MB, %d s later %.1f MB", float64(first)/1e6, idle, float64(last)/1e6)
	took := time.Duration(newcomer.Int("after_ms")) * time.Millisecond
	b.figure(took < time.Second, "a newcomer is seen and subscribed", "< 1 s", "after %s", ms(took))
	rate := float64(quiet.Int("datagrams")) / float64(idle) / crowdSize
	b.figure(rate <= 2, "idle, datagrams sent to each participant", "≤ 2 a second", "%.2f a second", rate)
	share := (after - before).Seconds() / float64(idle)
	b.figure(share < 0.02, "idle, CPU", "< 2 %", "%.2f %%", 100*share)
	return nil
}

// cpuOf is the processor time of a running process.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may have spaces
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0, fmt.Errorf("process %d: odd stat", pid)
	}
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, errors.Join(err1, err2) // USER_HZ is 100
}

// loner is a transport of a simulated participant: one socket on loopback. It announces itself by multicast as others do,
// and hears nothing but what is sent to it: the participants of a crowd do not know each other.
type loner struct {
	socket   *net.UDPConn
	group    netip.AddrPort
	received *atomic.Int64
	wg       sync.WaitGroup
}

func newLoner(domain int, received *atomic.Int64) (*loner, error) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	group := netip.AddrPortFrom(netip.AddrFrom4([4]byte{239, 255, 0, 1}), uint16(7400+250*domain))
	return &loner{socket: c, group: group, received: received}, nil
}

func (l *loner) Start(receive func([][]byte)) error {
	l.wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, _, err := l.socket.ReadFromUDPAddrPort(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				l.received.Add(1)
				receive([][]byte{buf[:n]})
			}
		}
	})
	return nil
}

func (l *loner) Locators(netip.Addr) (discovery, data []netip.AddrPort) {
	at := []netip.AddrPort{l.socket.LocalAddr().(*net.UDPAddr).AddrPort()}
	return at, at
}

func (l *loner) Send(dst netip.AddrPort, datagram []byte) error {
	_, err := l.socket.WriteToUDPAddrPort(datagram, dst)
	return err
}

func (l *loner) Announce(build func(discovery, data []netip.AddrPort) []byte) error {
	return l.Send(l.group, build(l.Locators(netip.Addr{})))
}

func (l *loner) Local(netip.Addr) bool { return true }

func (l *loner) Close() error {
	err := l.socket.Close()
	l.wg.Wait()
	return err
}

// member is one participant of the crowd with its writers.
type member struct {
	p       *rtps.Participant
	writers []*rtps.Writer
}

func join(domain, id int, received *atomic.Int64) (*member, error) {
	l, err := newLoner(domain, received)
	if err != nil {
		return nil, err
	}
	m := &member{}
	if m.p, err = rtps.NewParticipant(rtps.Config{Domain: domain, Transport: l}); err != nil {
		return nil, err
	}
	for k := range crowdEndpoints {
		w, err := m.p.NewWriter(rtps.WriterConfig{Topic: ros2.MangleTopic(fmt.Sprintf("/crowd/p%d/t%d", id, k)), Type: ros2.MangleType("std_msgs/msg/String"),
			QoS: rtps.QoS{Reliability: rtps.Reliable, History: rtps.KeepLast, Depth: 10}})
		if err != nil {
			return nil, errors.Join(err, m.p.Close())
		}
		m.writers = append(m.writers, w)
	}
	return m, nil
}

// await waits until every writer has a reader.
func (m *member) await(limit time.Duration) error {
	for end := time.Now().Add(limit); ; time.Sleep(2 * time.Millisecond) {
		missing := 0
		for _, w := range m.writers {
			if w.Stats().Matched == 0 {
				missing++
			}
		}
		if missing == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d writers of a participant have no reader after %v", missing, len(m.writers), limit)
		}
	}
}

// crowdChild is the crowd: it comes, is silent, and gets a newcomer.
func crowdChild(args []string) error {
	flags := flag.NewFlagSet("crowd-child", flag.ContinueOnError)
	domain := flags.Int("domain", 0, "domain")
	idle := flags.Int("idle", 10, "seconds of silence")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var received atomic.Int64
	var all []*member
	defer func() {
		var wg sync.WaitGroup
		for _, m := range all {
			wg.Go(func() { m.p.Close() })
		}
		wg.Wait()
	}()
	begin := time.Now()
	for id := range crowdSize {
		m, err := join(*domain, id, &received)
		if err != nil {
			return err
		}
		all = append(all, m)
	}
	for _, m := range all {
		if err := m.await(time.Minute); err != nil {
			return err
		}
		if _, err := m.writers[0].Write([]byte{0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, time.Now().UnixNano()); err != nil {
			return err
		}
	}
	fmt.Printf("{\"event\":\"ready\",\"participants\":%d,\"endpoints\":%d,\"after_ms\":%d}\n", len(all), len(all)*crowdEndpoints, time.Since(begin).Milliseconds())
	time.Sleep(2 * time.Second) // the last words of discovery
	fmt.Println(`{"event":"silent"}`)
	before := received.Load()
	time.Sleep(time.Duration(*idle) * time.Second)
	fmt.Printf("{\"event\":\"idle\",\"datagrams\":%d}\n", received.Load()-before)
	begin = time.Now()
	m, err := join(*domain, crowdSize, &received)
	if err != nil {
		return err
	}
	all = append(all, m)
	if err := m.await(30 * time.Second); err != nil {
		return err
	}
	fmt.Printf("{\"event\":\"newcomer\",\"after_ms\":%d}\n", time.Since(begin).Milliseconds())
	return nil
}
