//go:build linux

package lab

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

func newTestHosts(t *testing.T, mtu int) *Hosts {
	t.Helper()
	newTestNet(t) // skips where the peers are not built
	h, err := NewHosts(mtu)
	if errors.Is(err, ErrNoHosts) && os.Getenv("GOBAG_INTEROP") != "required" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Peers of every vendor talk through the relay, with fragments of every size, and what they send is what Body computes.
func TestPeersThroughRelay(t *testing.T) {
	for _, mtu := range []int{LargeMTU, EthernetMTU} {
		h := newTestHosts(t, mtu)
		file := filepath.Join(t.TempDir(), "capture.pcap")
		if err := h.Relay.Capture(file); err != nil {
			t.Fatal(err)
		}
		for _, v := range []Vendor{Cyclone, Fast, Own} {
			topics := []Topic{
				{Kind: Imu, Name: "/imu", Hz: 200, Count: 60},
				{Kind: Blob, Name: "/sizes", Hz: 40, Count: 20, Size: 1, Grow: 7001},
				{Kind: Keyed, Name: "/keyed", Hz: 100, Count: 20},
			}
			want := 100
			if v == Own { // which has no keyed topics
				topics, want = topics[:2], 80
			}
			log := filepath.Join(t.TempDir(), "arrivals")
			sub, err := h.B.SubscribeAs(v, topics, "--log", log, "--expect", []string{"80", "100"}[want/100], "--seconds", "20")
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Kill()
			pub, err := h.A.PublishAs(v, topics, "--wait", "1")
			if err != nil {
				t.Fatal(err)
			}
			defer pub.Kill()
			for _, p := range []*Proc{pub, sub} {
				if err := p.Wait(40 * time.Second); err != nil {
					t.Fatal(err)
				}
			}
			arrivals, err := ReadArrivals(log)
			if err != nil {
				t.Fatal(err)
			}
			if len(arrivals) != want {
				t.Errorf("%s, mtu %d: %d arrivals, want %d", v, mtu, len(arrivals), want)
			}
			for _, a := range arrivals {
				for _, topic := range topics {
					if topic.Name == a.Topic {
						if err := (&Checker{Topic: topic}).CheckHash(a); err != nil {
							t.Errorf("%s, mtu %d: %v", v, mtu, err)
						}
					}
				}
			}
		}
		if lost, over := h.Relay.Lost.Load(), h.Relay.Overrun(); lost+over > 0 {
			t.Errorf("the relay itself lost %d and %d frames", lost, over)
		}
		if err := h.Relay.StopCapture(); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(file); err != nil || st.Size() < 1<<20 {
			t.Errorf("capture: %v, %v", st, err)
		}
	}
}

// What a rule says happens: losses are repaired, a changed payload arrives changed.
func TestRelayRules(t *testing.T) {
	h := newTestHosts(t, LargeMTU)
	dropped, seen, replaced := 0, 0, 0
	h.Relay.SetRule(func(p *Packet) Fate {
		s := p.Find("DATA")
		if s == nil || !p.FromA {
			return Fate{}
		}
		seen++
		switch {
		case s.Seq%10 == 5 && seen%2 == 0:
			dropped++
			return Drop
		case s.Seq%10 == 7:
			replaced++
			return Fate{Replace: bytes.Replace(p.Payload, []byte("imu_link"), []byte("IMU_LINK"), 1)}
		case s.Seq%10 == 3:
			return Fate{Copies: 2, Delay: 20 * time.Millisecond}
		}
		return Fate{}
	})
	topics := []Topic{{Kind: Imu, Name: "/imu", Hz: 200, Count: 100}}
	log := filepath.Join(t.TempDir(), "arrivals")
	sub, err := h.B.SubscribeAs(Cyclone, topics, "--log", log, "--expect", "100", "--seconds", "20")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Kill()
	pub, err := h.A.PublishAs(Cyclone, topics, "--wait", "1", "--linger", "10")
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Kill()
	for _, p := range []*Proc{pub, sub} {
		if err := p.Wait(40 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	arrivals, err := ReadArrivals(log)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for i, a := range arrivals {
		if a.Number != int64(i) {
			t.Fatalf("arrival %d has number %d", i, a.Number)
		}
		if (&Checker{Topic: topics[0]}).CheckHash(a) != nil {
			changed++
		}
	}
	if len(arrivals) != 100 || dropped == 0 || changed == 0 || changed > replaced {
		t.Errorf("%d arrivals, %d dropped, %d replaced and %d arrived changed", len(arrivals), dropped, replaced, changed)
	}
}

func TestPacketParse(t *testing.T) {
	// An Ethernet frame with IPv4 (no options), UDP and an RTPS ACKNACK of a user reader.
	rtps := wire.AppendHeader(nil, wire.Header{Version: wire.Protocol, Vendor: wire.VendorID{1, 0x10}})
	a := wire.AckNack{Reader: wire.EntityID{0, 0, 1, 4}, Writer: wire.EntityID{0, 0, 1, 3}, Set: wire.SeqSet{Base: 3}, Count: 7}
	a.Set.Add(3)
	a.Set.Add(35)
	rtps = wire.AppendAckNack(rtps, &a)
	frame := make([]byte, 14, 200)
	frame[12] = 8
	frame = append(frame, 0x45, 0, 0, byte(28+len(rtps)), 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2)
	frame = append(frame, 0x1c, 0xe9, 0x1c, 0xf3, 0, byte(8+len(rtps)), 0xab, 0xcd)
	frame = append(frame, rtps...)
	var p Packet
	if !p.parse(frame, true) || !p.RTPS || p.Multicast || p.From.Port() != 7401 || p.To.Port() != 7411 || p.Vendor != (wire.VendorID{1, 0x10}) {
		t.Fatalf("parsed %+v", p)
	}
	s := p.Find("ACKNACK")
	if s == nil || s.Seq != 3 || len(s.Set) != 2 || s.Set[1] != 35 || s.Count != 7 || s.Final {
		t.Fatalf("submessage %+v", s)
	}
	again := p.replace(append(append([]byte(nil), rtps...), make([]byte, 8)...))
	if !p.parse(again, true) || len(p.Payload) != len(rtps)+8 {
		t.Errorf("replaced: %d bytes of payload", len(p.Payload))
	}
	for n := range len(frame) {
		p.parse(frame[:n], true) // must not panic
	}
	if p.parse(frame[:40], true) {
		t.Error("a frame cut short was taken")
	}
}
