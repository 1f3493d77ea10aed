package rtps

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/internal/netsim"
)

// The tests of this file use real sockets on loopback.

func TestSampleSizes(t *testing.T) {
	for _, fragment := range []int{0, 1344} {
		for _, rel := range []Reliability{Reliable, BestEffort} {
			t.Run(fmt.Sprintf("%v/%d", rel, fragment), func(t *testing.T) {
				d := domain(t)
				a, b := participant(t, Config{Domain: d}), participant(t, Config{Domain: d})
				q := reliable(Volatile, 0)
				q.Reliability = rel
				var mu sync.Mutex
				var got [][]byte
				more := make(chan struct{}, 100)
				r, err := a.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: q, Handler: func(s Sample) {
					mu.Lock()
					got = append(got, bytes.Clone(s.Data))
					mu.Unlock()
					s.Release()
					more <- struct{}{}
				}})
				if err != nil {
					t.Fatal(err)
				}
				w, err := b.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: q, FragmentSize: fragment})
				if err != nil {
					t.Fatal(err)
				}
				matched(t, w, 1)
				eventually(t, "reader matched", 5*time.Second, func() bool { return len(r.Stats().Writers) == 1 })
				sizes := []int{12, 13, 14, 15, 16, 1343, 1344, 1345, 1400, 13440, 13441, 59999, 60000, 60001, 65535, 65536, 120_000, 1 << 20, 3<<20 + 1, 8 << 20}
				if fragment != 0 && rel == BestEffort {
					sizes = sizes[:len(sizes)-2] // one lost datagram of six thousand loses the sample
				}
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				for i, n := range sizes {
					body := payload(n, i)
					if _, err := w.Write(body, 1); err != nil {
						t.Fatal(err)
					}
					select {
					case <-more:
					case <-ctx.Done():
						t.Fatalf("sample of %d bytes did not arrive: %+v, %+v", n, r.Stats(), a.Stats())
					}
					mu.Lock()
					g := got[i]
					mu.Unlock()
					if len(g) < n || len(g) > n+3 || !bytes.Equal(g[:n], body) {
						t.Fatalf("sample of %d bytes came with %d, changed", n, len(g))
					}
				}
			})
		}
	}
}

// Without multicast and without anybody named, participants of a host find each other by their ports.
func TestLocalhostRange(t *testing.T) {
	d := domain(t)
	a := participant(t, Config{Domain: d, Range: RangeLocalhost, NoMulticast: true})
	b := participant(t, Config{Domain: d, Range: RangeLocalhost})
	c := participant(t, Config{Domain: d, NoMulticast: true})
	off := participant(t, Config{Domain: d, Range: RangeOff})
	eventually(t, "three see each other", 5*time.Second, func() bool {
		return len(a.Peers()) == 2 && len(b.Peers()) == 2 && len(c.Peers()) == 2
	})
	for _, q := range a.Peers() {
		if !q.Reachable || len(q.Locators) == 0 || q.UserData != "enclave=/;" || q.Name != "/" {
			t.Errorf("%+v", q)
		}
	}
	if n := len(off.Peers()); n != 0 {
		t.Errorf("range off knows %d participants", n)
	}
}

// A static peer is found by its port, and by its host alone.
func TestStaticPeers(t *testing.T) {
	d := domain(t)
	a := participant(t, Config{Domain: d, NoMulticast: true, Interfaces: []string{"127.0.0.1"}})
	port := a.link.(*udpLink).disc.LocalAddr().(*net.UDPAddr).Port
	b := participant(t, Config{Domain: d, NoMulticast: true, Peers: []string{fmt.Sprintf("localhost:%d", port)}})
	eventually(t, "peer by port", 5*time.Second, func() bool { return len(b.Peers()) == 1 && len(a.Peers()) == 1 })
	c := participant(t, Config{Domain: d, NoMulticast: true, Peers: []string{"127.0.0.1"}})
	eventually(t, "peer by host", 5*time.Second, func() bool { return len(c.Peers()) == 2 })
}

// Each participant of a host has ports of its own.
func TestParticipantPorts(t *testing.T) {
	d := domain(t)
	seen := map[int]bool{}
	for range 4 {
		l, err := newUDPLink(Config{Domain: d}.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if seen[l.id] {
			t.Fatalf("participant id %d twice", l.id)
		}
		seen[l.id] = true
		disc, data := l.Locators(loopback)
		if len(disc) != 1 || disc[0] != netip.AddrPortFrom(loopback, uint16(portDiscovery(d, l.id))) || data[0].Port() != disc[0].Port()+1 {
			t.Fatalf("%v %v", disc, data)
		}
	}
}

// Loss around real sockets.
func TestWrappedSockets(t *testing.T) {
	d := domain(t)
	u, err := ListenUDP(Config{Domain: d, Interfaces: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	a := participant(t, Config{Domain: d, Transport: netsim.Wrap(u, netsim.Faults{Seed: 1, Loss: 0.05, Duplicate: 0.02})})
	b := participant(t, Config{Domain: d})
	c := newCollector()
	c.keep = true
	r, err := b.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0), Handler: c.handle})
	if err != nil {
		t.Fatal(err)
	}
	w, err := a.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0), FragmentSize: 1344})
	if err != nil {
		t.Fatal(err)
	}
	matched(t, w, 1)
	var sent [][]byte
	for i := range 100 {
		sent = append(sent, payload(100+i%10*2000, i))
		if _, err := w.Write(sent[i], 1); err != nil {
			t.Fatal(err)
		}
	}
	c.wait(t, 100, 20*time.Second)
	for i := range sent {
		n := len(sent[i])
		c.data[i] = c.data[i][:n]
	}
	checkAll(t, c, sent)
	if st := r.Stats(); st.Lost != 0 {
		t.Fatalf("%+v", st)
	}
}

func TestStatsOfSockets(t *testing.T) {
	d := domain(t)
	a, b := participant(t, Config{Domain: d, RecvBuffer: 1 << 20}), participant(t, Config{Domain: d})
	eventually(t, "datagrams", 5*time.Second, func() bool { return a.Stats().Datagrams > 0 && len(b.Peers()) == 1 })
	st := a.Stats()
	if st.Bytes == 0 || st.SentPackets == 0 || st.Malformed != 0 {
		t.Errorf("%+v", st)
	}
	if runtime.GOOS == "linux" && st.RecvBuffer < 128<<10 {
		t.Errorf("receive buffer of %d bytes", st.RecvBuffer)
	}
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		return
	}
	// Stand still while more arrives than fits.
	a.mu.Lock()
	for range 200 {
		_ = b.link.sendBatch([]outMsg{{dst: netip.AddrPortFrom(loopback, a.link.(*udpLink).data.LocalAddr().(*net.UDPAddr).AddrPort().Port()), bufs: [][]byte{make([]byte, 50_000)}}})
	}
	a.mu.Unlock()
	if st := a.Stats(); st.KernelDrops == 0 || st.RecvBuffer != 2<<20 {
		t.Errorf("%+v", st)
	}
}

// Closing is idempotent, from several goroutines, while everything is busy.
func TestCloseWhileBusy(t *testing.T) {
	d := domain(t)
	a, b := participant(t, Config{Domain: d}), participant(t, Config{Domain: d})
	var closed sync.Mutex
	over := false
	r, err := a.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0), Handler: func(s Sample) {
		closed.Lock()
		if over {
			t.Error("handler runs after Close")
		}
		closed.Unlock()
		s.Release()
	}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0)})
	if err != nil {
		t.Fatal(err)
	}
	matched(t, w, 1)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				if _, err := w.Write(payload(50_000, i), 1); err != nil {
					return
				}
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	r.Close()
	closed.Lock()
	over = true
	closed.Unlock()
	time.Sleep(20 * time.Millisecond)
	for range 3 {
		wg.Go(func() { w.Close(); b.Close(); a.Close(); r.Close() })
	}
	wg.Wait()
	if _, err := w.Write(payload(10, 1), 1); err == nil {
		t.Error("writing to a closed writer")
	}
	if _, err := a.NewReader(ReaderConfig{Topic: topic, Type: typ, Handler: func(Sample) {}}); err == nil {
		t.Error("reader of a closed participant")
	}
	if err := w.WaitAcked(context.Background()); err == nil && w.Stats().Unacked > 0 {
		t.Error("closed writer has everything acknowledged")
	}
}
