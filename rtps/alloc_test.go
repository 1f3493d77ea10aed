package rtps

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/gobag/gobag/rtps/wire"
)

// Receiving allocates nothing per sample once the pools are warm.
func TestReceiveAllocatesNothing(t *testing.T) {
	for _, size := range []int{100, 4000, 40_000, 500_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			_, r, send := victim(t, Config{}, reliable(Volatile, 0))
			step, n := sampleFeeder(size, send)
			for range 100 {
				step()
			}
			allocs := testing.AllocsPerRun(300, step)
			if raceDetector {
				return // sync.Pool drops at random there
			}
			if allocs > 0.5 {
				t.Errorf("%v allocations per sample", allocs)
			}
			if st := r.Stats(); st.Received != uint64(*n) || st.Lost != 0 {
				t.Errorf("%d samples sent, %+v", *n, st)
			}
		})
	}
}

// sampleFeeder returns a function that sends the next sample of a size in order, with a HEARTBEAT.
func sampleFeeder(size int, send func(func([]byte, wire.EntityID) []byte)) (step func(), count *int64) {
	var seq int64
	body := payload(size, 1)
	const frag = 60_000
	var d wire.Data
	var f wire.DataFrag
	var h wire.Heartbeat
	whole := func(b []byte, w wire.EntityID) []byte {
		d = wire.Data{Writer: w, Seq: seq, Payload: body}
		h = wire.Heartbeat{Writer: w, First: 1, Last: seq, Count: uint32(seq)}
		return wire.AppendHeartbeat(wire.AppendData(b, &d), &h)
	}
	var at int
	part := func(b []byte, w wire.EntityID) []byte {
		f = wire.DataFrag{Writer: w, Seq: seq, First: uint32(at/frag + 1), Count: 1, Size: frag, SampleSize: uint32(size), Payload: body[at:min(at+frag, size)]}
		h = wire.Heartbeat{Writer: w, First: 1, Last: seq, Count: uint32(seq)}
		b = wire.AppendDataFrag(b, &f)
		if at+frag >= size {
			b = wire.AppendHeartbeat(b, &h)
		}
		return b
	}
	return func() { // nothing here allocates: the closures are made once
		seq++
		if size <= frag {
			send(whole)
			return
		}
		for at = 0; at < size; at += frag {
			send(part)
		}
	}, &seq
}

// Writing allocates nothing per sample once the pools are warm.
func TestWriteAllocatesNothing(t *testing.T) {
	for _, size := range []int{100, 4000, 40_000} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			d := domain(t)
			a, b := participant(t, Config{Domain: d}), participant(t, Config{Domain: d})
			c := newCollector()
			c.seqs = make([]int64, 0, 10_000)
			if _, err := a.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: QoS{}, Handler: c.handle}); err != nil {
				t.Fatal(err)
			}
			w, err := b.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: QoS{}})
			if err != nil {
				t.Fatal(err)
			}
			matched(t, w, 1)
			body := payload(size, 1)
			for range 200 {
				w.Write(body, 1)
			}
			if n := testing.AllocsPerRun(500, func() { w.Write(body, 1) }); n > 0.5 && !raceDetector {
				t.Errorf("%v allocations per sample", n)
			}
		})
	}
}

func BenchmarkReceive(b *testing.B) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			_, _, send := victim(b, Config{}, reliable(Volatile, 0))
			step, _ := sampleFeeder(size, send)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				step()
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			u, err := newUDPLink(Config{Domain: 19}.withDefaults())
			if err != nil {
				b.Fatal(err)
			}
			defer u.Close()
			p, err := NewParticipant(Config{Transport: &silent{}})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			p.link, p.pause = u, pause
			w, err := p.NewWriter(WriterConfig{Topic: topic, Type: typ})
			if err != nil {
				b.Fatal(err)
			}
			q := &peer{prefix: wire.Prefix{9}, local: true}
			p.lock()
			w.match(wire.MakeGUID(q.prefix, wire.EntityID{0, 0, 1, 4}), q, netip.MustParseAddrPort("127.0.0.1:9"), QoS{})
			p.unlock()
			body := payload(size, 1)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.Write(body, 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
