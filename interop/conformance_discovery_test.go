//go:build linux

package interop_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// stream is a topic that a publisher sends from its start on, reader or not.
var stream = []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 200, Early: true}}

// found: whoever starts second, the first sample arrives within a second of its start.
func found(c *cell) {
	p, s := c.roles()
	c.tries(3, func() error {
		n := c.net()
		pub := c.publish(n, p, stream)
		if _, err := pub.Await("ready", 1, patience); err != nil {
			return err
		}
		time.Sleep(1500 * time.Millisecond) // the announcements in a row at its start are over
		began := lab.Mono()
		sub, log := c.subscribe(n, s, stream, "--expect", "1", "--seconds", "10")
		late, err := firstArrival(sub, log, began)
		pub.Kill()
		if err != nil {
			return fmt.Errorf("publisher first: %w", err)
		}

		sub, log = c.subscribe(n, s, stream, "--expect", "1", "--seconds", "10")
		time.Sleep(1500 * time.Millisecond)
		began = lab.Mono()
		pub = c.publish(n, p, stream)
		early, err := firstArrival(sub, log, began)
		pub.Kill()
		if err != nil {
			return fmt.Errorf("subscriber first: %w", err)
		}
		c.Logf("publisher first %v, subscriber first %v", late, early)
		if late > time.Second || early > time.Second {
			return fmt.Errorf("%v and %v until the first sample", late, early)
		}
		c.note("first sample after < 1 s")
		return nil
	})
}

// firstArrival waits for a subscriber that ends with its first sample, and returns when that came.
func firstArrival(sub *lab.Proc, log string, began int64) (time.Duration, error) {
	if err := sub.Wait(patience); err != nil {
		return 0, err
	}
	arrivals, err := lab.ReadArrivals(log)
	if err != nil {
		return 0, err
	}
	if len(arrivals) == 0 {
		return 0, errors.New("no sample in 10 s")
	}
	return time.Duration(arrivals[0].Mono - began), nil
}

// matches reports whether a subscriber of gobag receives anything from the peer within two and a half seconds, with the
// peer's announcements changed on the way.
func (c *cell) matches(change func([]lab.Parameter) []lab.Parameter) bool {
	c.Helper()
	h := c.hosts(lab.LargeMTU)
	changed := 0
	h.Relay.SetRule(func(p *lab.Packet) lab.Fate {
		if !p.FromA || !p.RTPS || change == nil {
			return lab.Fate{}
		}
		b := lab.RewriteParticipant(p.Payload, change)
		if bytes.Equal(b, p.Payload) {
			return lab.Fate{}
		}
		changed++
		return lab.Fate{Replace: b}
	})
	sub, log := c.subscribe(h.B, lab.Own, stream, "--expect", "1", "--seconds", "2.5")
	pub := c.publish(h.A, c.peer, stream)
	c.must(sub.Wait(patience))
	pub.Kill()
	arrivals, err := lab.ReadArrivals(log)
	c.must(err)
	if change != nil && changed == 0 {
		c.Error("no announcement was changed: this shows nothing")
	}
	return len(arrivals) > 0
}

func without(list []lab.Parameter, id uint16) []lab.Parameter {
	var rest []lab.Parameter
	for _, p := range list {
		if p.ID != id {
			rest = append(rest, p)
		}
	}
	return rest
}

// Parameters of announcements.
const (
	pidDomainID      = 0x000f
	pidDomainTag     = 0x4014
	pidUnknownVendor = 0x8123
	pidMustKnow      = 0x4567 // must be understood, and is not
)

// oddAnnouncements: without DOMAIN_ID and with unknown vendors' parameters a peer is taken, with an unknown one that must
// be understood it is not.
func oddAnnouncements(c *cell) {
	unknown := lab.Parameter{ID: pidUnknownVendor, Value: []byte{1, 2, 3, 4, 5, 6, 7, 8}}
	if !c.matches(func(l []lab.Parameter) []lab.Parameter { return append(without(l, pidDomainID), unknown) }) {
		c.Error("without DOMAIN_ID, with an unknown vendor's parameter: ignored")
	}
	if c.matches(func(l []lab.Parameter) []lab.Parameter {
		return append(l, lab.Parameter{ID: pidMustKnow, Value: make([]byte, 4)})
	}) {
		c.Error("with an unknown parameter that must be understood: taken")
	}
}

// otherDomain: a peer that names another domain or has a domain tag is not taken.
func otherDomain(c *cell) {
	if c.matches(func(l []lab.Parameter) []lab.Parameter {
		return append(without(l, pidDomainID), lab.Parameter{ID: pidDomainID, Value: binary.LittleEndian.AppendUint32(nil, 7)})
	}) {
		c.Error("of domain 7: taken")
	}
	if c.peer == lab.Fast { // which has no setting for it
		if c.matches(func(l []lab.Parameter) []lab.Parameter {
			return append(l, lab.Parameter{ID: pidDomainTag, Value: []byte("\x05\x00\x00\x00blue\x00\x00\x00\x00")})
		}) {
			c.Error("with a domain tag: taken")
		}
		return
	}
	n := c.net()
	n.CycloneURI = strings.Replace(n.CycloneURI, "</Domain>", "<Discovery><Tag>blue</Tag></Discovery></Domain>", 1)
	sub, log := c.subscribe(n, lab.Own, stream, "--expect", "1", "--seconds", "2.5")
	pub := c.publish(n, c.peer, stream)
	c.must(sub.Wait(patience))
	pub.Kill()
	arrivals, err := lab.ReadArrivals(log)
	c.must(err)
	if len(arrivals) > 0 {
		c.Error("with a domain tag: taken")
	}
}

// leaseOf is how long a participant of the vendor is believed to be alive.
func leaseOf(v lab.Vendor) time.Duration {
	if v == lab.Fast {
		return 20 * time.Second
	}
	return 10 * time.Second
}

// vanishes: a killed publisher is gone after its lease, one that ends in order at once.
func vanishes(c *cell) {
	p, s := c.roles()
	c.tries(2, func() error {
		n := c.net()
		sub, _ := c.subscribe(n, s, stream)
		pub := c.publish(n, p, stream)
		if _, err := sub.Await("matched", 1, patience); err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
		killed := lab.Mono()
		pub.Kill()
		gone, err := sub.Await("unmatched", 1, leaseOf(p)+10*time.Second)
		if err != nil {
			return err
		}
		after := time.Duration(gone.Int("mono_ns") - killed)
		if after < leaseOf(p)-time.Second || after > leaseOf(p)+time.Second {
			return fmt.Errorf("a killed publisher is gone after %v, its lease is %v", after, leaseOf(p))
		}

		pub = c.publish(n, p, stream)
		if _, err := sub.Await("matched", 2, patience); err != nil {
			return err
		}
		time.Sleep(300 * time.Millisecond)
		asked := lab.Mono()
		if err := pub.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		if gone, err = sub.Await("unmatched", 2, patience); err != nil {
			return err
		}
		// The peers wait for acknowledgements before they say goodbye: counted from there, where they say when that was.
		done, err := pub.Await("done", 1, patience)
		if err != nil {
			return err
		}
		from := max(asked, done.Int("mono_ns"))
		if after := time.Duration(gone.Int("mono_ns") - from); after > 100*time.Millisecond {
			return fmt.Errorf("a publisher that ended in order is gone after %v", after)
		}
		c.note("killed: gone with its lease of %v; ended: within 0.1 s", leaseOf(p))
		return nil
	})
}

// goodbye: a player that is stopped is gone from the peer's view at once.
func goodbye(c *cell) {
	n := c.net()
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 100}}
	rec := record(c.T, n, topics)
	pub := c.publish(n, c.peer, topics, "--wait", "1", "--seconds", "2")
	c.must(pub.Wait(patience))
	c.must(rec.Stop(patience))
	c.tries(2, func() error {
		sub, _ := c.subscribe(n, c.peer, topics)
		play, err := gobag.Play(n, rec.Dir, "--loop")
		if err != nil {
			return err
		}
		defer play.Kill()
		if _, err := sub.Await("matched", 1, patience); err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
		asked := lab.Mono()
		if err := play.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		gone, err := sub.Await("unmatched", 1, patience)
		if err != nil {
			return err
		}
		sub.Kill()
		after := time.Duration(gone.Int("mono_ns") - asked)
		if after > 500*time.Millisecond {
			return fmt.Errorf("no writers only after %v", after)
		}
		c.note("gone within 0.5 s of SIGTERM")
		return play.Wait(patience)
	})
}

// crowd: two processes of gobag, one of each peer on a host: each has ports of its own, and all see all.
func crowd(c *cell) {
	n := c.net()
	topic := func(name string) lab.Topic { return lab.Topic{Kind: lab.Imu, Name: name, Hz: 100, Count: 100} }
	all := []lab.Topic{topic("/gobag"), topic("/cyclone"), topic("/fast")}
	var subs []*lab.Proc
	var logs []string
	for _, v := range []lab.Vendor{lab.Own, lab.Cyclone, lab.FastSHM} {
		sub, log := c.subscribe(n, v, all)
		subs, logs = append(subs, sub), append(logs, log)
	}
	rec := record(c.T, n, all)
	var pubs []*lab.Proc
	for i, v := range []lab.Vendor{lab.Own, lab.Cyclone, lab.FastSHM} {
		pubs = append(pubs, c.publish(n, v, all[i:i+1], "--wait", "4", "--settle", "500", "--linger", "5"))
	}
	time.Sleep(time.Second)
	ports := distinctPorts(c, append(append(subs, rec.Proc), pubs...))
	sent := map[string]lab.Sent{}
	for _, p := range pubs {
		c.must(p.Wait(patience))
		for name, s := range lab.SentBy(p) {
			sent[name] = s
		}
	}
	time.Sleep(200 * time.Millisecond)
	c.must(rec.Stop(patience))
	for i := range subs {
		c.complete(c.end(subs[i], logs[i], all), sent)
	}
	whole(c.T, rec.Dir, all, sent)
	c.note("7 processes on one host, %d unicast ports, all samples everywhere", ports)
}

// distinctPorts checks that no two sockets of the processes are bound to the same unicast port, and returns how many
// there are.
func distinctPorts(c *cell, procs []*lab.Proc) int {
	c.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(procs[0].Pid()), "net", "udp"))
	c.must(err)
	count := map[string]int{}
	for _, line := range strings.Split(string(text), "\n")[1:] {
		if f := strings.Fields(line); len(f) > 1 {
			count[f[1]]++
		}
	}
	unicast := 0
	for address, k := range count {
		var ip, port int
		if _, err := fmt.Sscanf(address, "%x:%x", &ip, &port); err != nil {
			c.Fatalf("socket %q: %v", address, err)
		}
		if (port-7400)%250 == 0 || (port-7400)%250 == 1 {
			continue // multicast: shared
		}
		unicast++
		if k > 1 {
			c.Errorf("port %d is bound %d times", port, k)
		}
	}
	return unicast
}

// withoutMulticast: ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST finds peers that are set up alike, on a host where no datagram
// gets to a multicast group.
func withoutMulticast(c *cell) {
	n := c.net()
	if n.Namespace == "" {
		c.Skip("needs a network namespace of its own")
	}
	n.CycloneURI = `<CycloneDDS><Domain id="any"><General><Interfaces><NetworkInterface name="lo"/></Interfaces>` +
		`<AllowMulticast>false</AllowMulticast></General><Discovery><ParticipantIndex>auto</ParticipantIndex>` +
		`<MaxAutoParticipantIndex>32</MaxAutoParticipantIndex><Peers><Peer address="localhost"/></Peers></Discovery></Domain></CycloneDDS>`
	env := []string{"ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST", "CYCLONEDDS_URI="}
	var peer []string
	if c.peer == lab.Fast {
		peer = []string{"--peer", "127.0.0.1"}
	}
	c.must(n.WithoutMulticast())
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 100}}
	rec, err := gobag.RecordEnv(n, env, filepath.Join(c.TempDir(), "bag"), topics)
	c.must(err)
	c.Cleanup(rec.Kill)
	pub := c.publish(n, c.peer, topics, append(peer, "--wait", "1", "--seconds", "2")...)
	c.must(pub.Wait(patience))
	c.must(rec.Stop(patience))
	whole(c.T, rec.Dir, topics, lab.SentBy(pub))
	if !c.sending {
		return
	}
	sub, log := c.subscribe(n, c.peer, topics, peer...)
	play, err := n.Start(env, gobag.Path, "play", rec.Dir, "-d", "1", "--wait-for-all-acked", "5000")
	c.must(err)
	c.Cleanup(play.Kill)
	c.must(play.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	c.complete(c.end(sub, log, topics), lab.SentBy(pub))
}

// sameHost: a host with an address beside loopback. Fast DDS announces only that one, and sends by loopback all the same.
func sameHost(c *cell) {
	h := c.hosts(lab.EthernetMTU)
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 200, Count: 200}, {Kind: lab.Image, Name: "/image", Hz: 20, Count: 20, Size: 200_000}}
	crossed := 0
	h.Relay.SetTap(func(p *lab.Packet, _ lab.Fate) {
		if p.Has("DATA") || p.Has("DATA_FRAG") {
			crossed++
		}
	})
	p, s := c.roles()
	file := filepath.Join(c.TempDir(), "lo.pcap")
	capture, err := h.A.Capture(file)
	c.must(err)
	c.Cleanup(capture.Kill)
	sub, log := c.subscribe(h.A, s, topics)
	pub := c.publish(h.A, p, topics, "--wait", "1", "--linger", "5")
	c.must(pub.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	numbers := c.end(sub, log, topics)
	c.must(lab.StopCapture(capture))
	c.complete(numbers, lab.SentBy(pub))
	// All DATA of user topics on lo, by where it went.
	lines, err := lab.Dissect(file, "rtps.sm.id == 0x15 && rtps.sm.wrEntityId.entityKind == 0x03", "ip.dst")
	c.must(err)
	toLoopback := 0
	for _, line := range lines {
		if strings.HasPrefix(line, "127.") {
			toLoopback++
		}
	}
	c.note("%d samples by lo, %d of them to 127.0.0.1", len(lines), toLoopback)
	if len(lines) < 200 || crossed > 0 {
		c.Errorf("%d samples went by lo, %d datagrams with samples by the cable", len(lines), crossed)
	}
}

// besideSharedMemory: Fast DDS peers with shared memory among themselves; gobag is served by UDP and maps none of it.
func besideSharedMemory(c *cell) {
	c.only(lab.Fast, "Cyclone's shared memory (iceoryx) is off by default")
	n := c.net()
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 200}, {Kind: lab.Image, Name: "/image", Hz: 10, Size: 200_000}}
	maps := func(p *lab.Proc) string {
		b, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(p.Pid()), "maps"))
		c.must(err)
		return string(b)
	}
	theirs, theirLog := c.subscribe(n, lab.FastSHM, topics)
	p, s := lab.FastSHM, lab.Own
	if c.sending {
		p, s = lab.Own, lab.FastSHM
	}
	sub, log := c.subscribe(n, s, topics)
	pub := c.publish(n, p, topics, "--wait", "2", "--seconds", "2", "--linger", "5")
	_, err := pub.Await("start", 1, patience)
	c.must(err)
	ours, peer := sub, pub
	if c.sending {
		ours, peer = pub, sub
	}
	if !strings.Contains(maps(peer), "/dev/shm/fastrtps_") {
		c.Error("the peer has no shared memory: this shows nothing")
	}
	if strings.Contains(maps(ours), "/dev/shm/") {
		c.Error("gobag has mapped shared memory")
	}
	c.must(pub.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	c.complete(c.end(sub, log, topics), lab.SentBy(pub))
	c.complete(c.end(theirs, theirLog, topics), lab.SentBy(pub))
}
