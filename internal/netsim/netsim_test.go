package netsim

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gobag/gobag/rtps/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	addrA = netip.MustParseAddr("10.0.0.1")
	addrB = netip.MustParseAddr("10.0.0.2")
)

// inbox collects numbered datagrams with the time of their arrival.
type inbox struct {
	mu      sync.Mutex
	began   time.Time
	numbers []uint32
	times   []time.Duration
}

func (i *inbox) receive(datagrams [][]byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, b := range datagrams {
		i.numbers = append(i.numbers, binary.BigEndian.Uint32(b))
		i.times = append(i.times, time.Since(i.began))
	}
}

func numbered(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// exchange sends count datagrams, a millisecond apart, from one host to another through faults.
func exchange(t *testing.T, f Faults, count int) (in *inbox, s Stats) {
	synctest.Test(t, func(t *testing.T) {
		n := New(f)
		defer n.Close()
		a, b := n.Host(addrA), n.Host(addrB)
		in = &inbox{began: time.Now()}
		if err := b.Start(in.receive); err != nil {
			t.Fatal(err)
		}
		_, data := b.Locators(addrA)
		buf := make([]byte, 4)
		for i := range count {
			binary.BigEndian.PutUint32(buf, uint32(i)) // Send keeps nothing
			if err := a.Send(data[0], buf); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		s = n.Stats()
	})
	return in, s
}

func TestPerfect(t *testing.T) {
	in, s := exchange(t, Faults{}, 100)
	for i, n := range in.numbers {
		if n != uint32(i) || in.times[i] != time.Duration(i)*time.Millisecond {
			t.Fatalf("datagram %d arrives as number %d at %v", n, i, in.times[i])
		}
	}
	if len(in.numbers) != 100 || s != (Stats{Sent: 100}) {
		t.Errorf("%d arrived, %+v", len(in.numbers), s)
	}
}

func TestDelay(t *testing.T) {
	in, _ := exchange(t, Faults{Delay: 50 * time.Millisecond}, 10)
	for i, n := range in.numbers {
		if n != uint32(i) || in.times[i] != time.Duration(50+i)*time.Millisecond {
			t.Fatalf("datagram %d arrives as number %d at %v", n, i, in.times[i])
		}
	}
	in, _ = exchange(t, Faults{Jitter: 20 * time.Millisecond, Seed: 1}, 200)
	if len(in.numbers) != 200 || slices.IsSorted(in.numbers) {
		t.Errorf("%d arrived, in order: %v", len(in.numbers), slices.IsSorted(in.numbers))
	}
	for i, at := range in.times {
		if late := at - time.Duration(in.numbers[i])*time.Millisecond; late < 0 || late > 20*time.Millisecond {
			t.Fatalf("datagram %d is %v late", in.numbers[i], late)
		}
	}
}

// TestChance has loss, doubling and reordering: about as many as asked for, and the same ones for the same seed.
func TestChance(t *testing.T) {
	f := Faults{Seed: 7, Loss: 0.1, Duplicate: 0.05, Reorder: 0.1}
	in, s := exchange(t, f, 2000)
	if s.Sent != 2000 || s.Lost < 150 || s.Lost > 250 || s.Duplicated < 60 || s.Duplicated > 140 || len(in.numbers) != s.Sent-s.Lost+s.Duplicated {
		t.Errorf("%d arrived, %+v", len(in.numbers), s)
	}
	inversions := 0
	for i := 1; i < len(in.numbers); i++ {
		if in.numbers[i] < in.numbers[i-1] {
			inversions++
		}
	}
	if inversions < 120 || inversions > 260 {
		t.Errorf("%d inversions", inversions)
	}
	again, s2 := exchange(t, f, 2000)
	if !slices.Equal(again.numbers, in.numbers) || s2 != s {
		t.Error("the same seed makes other faults")
	}
	f.Seed++
	if other, _ := exchange(t, f, 2000); slices.Equal(other.numbers, in.numbers) {
		t.Error("another seed makes the same faults")
	}
	// What is lost does not depend on the other settings.
	lost := func(f Faults) []uint32 {
		in, _ := exchange(t, f, 500)
		slices.Sort(in.numbers)
		return slices.Compact(in.numbers)
	}
	if !slices.Equal(lost(Faults{Seed: 3, Loss: 0.2}), lost(Faults{Seed: 3, Loss: 0.2, Duplicate: 0.3, Jitter: time.Millisecond})) {
		t.Error("doubling changes what is lost")
	}
}

func TestHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Faults{})
		defer n.Close()
		a, a2, b := n.Host(addrA), n.Host(addrA), n.Host(addrB)
		if d, u := a2.Locators(addrB); d[0] != netip.MustParseAddrPort("10.0.0.1:7412") || u[0] != netip.MustParseAddrPort("10.0.0.1:7413") {
			t.Errorf("second participant of a host at %v, %v", d, u)
		}
		if !a.Local(addrA) || a.Local(addrB) || !a.Local(netip.MustParseAddr("127.0.0.1")) {
			t.Error("which addresses are local")
		}
		boxes := map[*Host]*inbox{}
		for _, h := range []*Host{a, a2, b} {
			boxes[h] = new(inbox)
			if err := h.Start(boxes[h].receive); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Announce(func(discovery, data []netip.AddrPort) []byte {
			if discovery[0] != b.discovery || data[0] != b.data {
				t.Errorf("announced at %v, %v", discovery, data)
			}
			return numbered(1)
		}); err != nil {
			t.Fatal(err)
		}
		a.Send(netip.MustParseAddrPort("127.0.0.1:7413"), numbered(2)) // to a2 over loopback
		b.Send(netip.MustParseAddrPort("127.0.0.1:7413"), numbered(3)) // to nobody
		b.Send(netip.MustParseAddrPort("10.0.0.1:7410"), numbered(4))
		b.Send(netip.MustParseAddrPort("10.9.9.9:7410"), numbered(5)) // to nobody
		if err := a.Send(b.data, make([]byte, 65508)); err == nil {
			t.Error("a datagram of 65508 bytes was taken")
		}
		synctest.Wait()
		for h, want := range map[*Host][]uint32{a: {1, 4}, a2: {1, 2}, b: {1}} {
			if got := boxes[h].numbers; !slices.Equal(got, want) {
				t.Errorf("%s got %v, %v expected", h.discovery, got, want)
			}
		}
		// A closed host gets nothing and sends nothing; closing again is fine.
		if errors.Join(a.Close(), a.Close()) != nil {
			t.Error("close")
		}
		b.Send(a.discovery, numbered(6))
		if a.Send(b.data, numbered(7)) == nil || a.Announce(nil) == nil || a.Start(boxes[a].receive) == nil {
			t.Error("a closed host works")
		}
		synctest.Wait()
		if len(boxes[a].numbers) != 2 || len(boxes[b].numbers) != 1 {
			t.Errorf("after close: %v, %v", boxes[a].numbers, boxes[b].numbers)
		}
	})
}

// TestClose waits for a receive that is running, and loses what is on its way.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Faults{})
		a, b := n.Host(addrA), n.Host(addrB)
		running, calls := false, 0
		b.Start(func([][]byte) {
			running = true
			calls++
			time.Sleep(time.Second)
			running = false
		})
		a.Send(b.data, numbered(1))
		synctest.Wait()
		a.Send(b.data, numbered(2))
		n.SetFaults(Faults{Delay: time.Minute})
		a.Send(b.data, numbered(3))
		began := time.Now()
		n.Close()
		if running || calls != 1 || time.Since(began) != time.Second {
			t.Errorf("running %v, %d calls, closed after %v", running, calls, time.Since(began))
		}
	})
}

func TestOverflow(t *testing.T) {
	n := New(Faults{})
	defer n.Close()
	a, b := n.Host(addrA), n.Host(addrB) // nobody drains b
	const size = 60000
	for range queueBytes/size + 10 {
		if err := a.Send(b.data, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	if s := n.Stats(); s.Overflowed != 10 {
		t.Errorf("%+v", s)
	}
}

// user and builtin writers and the datagrams of the rule tests.
var (
	writer = wire.EntityID{0, 0, 1, 3}
	reader = wire.EntityID{0, 0, 1, 4}
)

func datagram(build func(b []byte) []byte) []byte {
	return build(wire.AppendHeader(nil, wire.Header{Vendor: wire.VendorGobag}))
}

func TestRules(t *testing.T) {
	var tapped []Datagram
	lost := func(rule func(*Datagram) bool, list ...[]byte) (which []int) {
		synctest.Test(t, func(t *testing.T) {
			tapped = nil
			n := New(Faults{Drop: rule, Tap: func(d *Datagram, lost bool) {
				c := *d
				c.Submessages = slices.Clone(d.Submessages)
				tapped = append(tapped, c)
				if lost {
					which = append(which, d.N)
				}
			}})
			defer n.Close()
			a, b := n.Host(addrA), n.Host(addrB)
			for _, d := range list {
				if err := a.Send(b.data, d); err != nil {
					t.Fatal(err)
				}
			}
		})
		return which
	}
	heartbeat := func(w wire.EntityID) []byte {
		return datagram(func(b []byte) []byte {
			return wire.AppendHeartbeat(b, &wire.Heartbeat{Reader: reader, Writer: w, First: 1, Last: 9, Count: 1})
		})
	}
	data := datagram(func(b []byte) []byte {
		b = wire.AppendInfoTS(b, 1)
		b = wire.AppendData(b, &wire.Data{Writer: writer, Seq: 5, Payload: []byte{0, 1, 0, 0}})
		return wire.AppendHeartbeat(b, &wire.Heartbeat{Writer: writer, First: 1, Last: 5, Count: 2})
	})
	all := datagram(func(b []byte) []byte {
		b = wire.AppendDataFrag(b, &wire.DataFrag{Reader: reader, Writer: writer, Seq: 2, First: 3, Count: 1, Size: 4, SampleSize: 12, Payload: make([]byte, 4)})
		b = wire.AppendHeartbeatFrag(b, &wire.HeartbeatFrag{Reader: reader, Writer: writer, Seq: 2, LastFrag: 3, Count: 1})
		b = wire.AppendAckNack(b, &wire.AckNack{Reader: reader, Writer: writer, Set: wire.SeqSet{Base: 2}, Count: 1})
		b = wire.AppendNackFrag(b, &wire.NackFrag{Reader: reader, Writer: writer, Seq: 2, Set: wire.FragSet{Base: 2}, Count: 1})
		return wire.AppendGap(b, &wire.Gap{Reader: reader, Writer: writer, Start: 7, Set: wire.SeqSet{Base: 8}})
	})
	user, builtin, noise := heartbeat(writer), heartbeat(wire.EntityPubWriter), []byte{0}
	for _, c := range []struct {
		name string
		rule func(*Datagram) bool
		want []int
	}{
		{"any heartbeat, the second and the fourth", DropNth(Any(Heartbeat), 2, 4), []int{2, 6}},
		{"user heartbeats, the first two", DropNth(User(Heartbeat), 1, 2), []int{1, 5}},
		{"every second with data or a gap", DropEvery(Any(Data, Gap), 2), []int{5}},
		{"all of one writer", DropEvery(From(wire.EntityPubWriter, Heartbeat, Data), 1), []int{2, 6}},
		{"nothing", DropEvery(From(writer, Kind(99)), 1), nil},
		{"by hand", func(d *Datagram) bool { return len(d.Bytes) == 1 }, []int{3}},
	} {
		if got := lost(c.rule, user, builtin, noise, all, data, builtin, data); !slices.Equal(got, c.want) {
			t.Errorf("%s: lost %v, %v expected", c.name, got, c.want)
		}
	}
	want := Datagram{From: netip.MustParseAddrPort("10.0.0.1:7410"), To: netip.MustParseAddrPort("10.0.0.2:7411"), N: 4, Bytes: all, Submessages: []Submessage{
		{DataFrag, reader, writer, 2, 3}, {HeartbeatFrag, reader, writer, 2, 3}, {AckNack, reader, writer, 2, 0}, {NackFrag, reader, writer, 2, 2}, {Gap, reader, writer, 7, 0}}}
	if !reflect.DeepEqual(tapped[3], want) {
		t.Errorf("tapped\n got %+v\nwant %+v", tapped[3], want)
	}
	if s := NackFrag.String() + " " + Kind(0).String() + " " + Kind(99).String(); s != "NACK_FRAG kind 0 kind 99" {
		t.Error(s)
	}
}

// TestWrap puts faults around a host of a perfect network, as around real sockets.
func TestWrap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Faults{})
		defer n.Close()
		a, b := n.Host(addrA), n.Host(addrB)
		w := Wrap(a, Faults{Drop: DropEvery(func(*Submessage) bool { return true }, 1), Delay: 10 * time.Millisecond})
		inA, inB := &inbox{began: time.Now()}, &inbox{began: time.Now()}
		if err := w.Start(inA.receive); err != nil {
			t.Fatal(err)
		}
		if err := b.Start(inB.receive); err != nil {
			t.Fatal(err)
		}
		w.Send(b.data, numbered(1))
		b.Send(a.data, numbered(2))
		time.Sleep(20 * time.Millisecond)
		w.SetFaults(Faults{Loss: 1})
		w.Send(b.data, numbered(3))
		b.Send(a.data, numbered(4))
		synctest.Wait()
		w.SetFaults(Faults{Duplicate: 1})
		w.Send(b.data, numbered(5))
		b.Send(a.data, numbered(6))
		synctest.Wait()
		w.Announce(func(discovery, data []netip.AddrPort) []byte { return numbered(7) })
		synctest.Wait()
		if !slices.Equal(inA.numbers, []uint32{2, 6, 6, 7, 7}) || !slices.Equal(inB.numbers, []uint32{1, 5, 5, 7}) {
			t.Errorf("got %v and %v", inA.numbers, inB.numbers)
		}
		if inA.times[0] != 10*time.Millisecond || inB.times[0] != 10*time.Millisecond {
			t.Errorf("delays %v, %v", inA.times, inB.times)
		}
		if s := w.Stats(); s != (Stats{Sent: 7, Lost: 2, Duplicated: 3}) {
			t.Errorf("%+v", s)
		}
		w.SetFaults(Faults{Delay: time.Minute})
		w.Send(b.data, numbered(8))
		if errors.Join(w.Close(), w.Close()) != nil {
			t.Error("close")
		}
		if w.Send(b.data, numbered(9)) != nil { // delayed: nobody to tell
			t.Error("delayed send")
		}
		w.SetFaults(Faults{})
		if w.Send(b.data, numbered(10)) == nil {
			t.Error("a closed transport sends")
		}
	})
}
