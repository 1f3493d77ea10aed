package rtps

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/internal/netsim"
	"github.com/gobag/gobag/rtps/wire"
)

// TestHold: a reader that refuses holds a writer that keeps all, and loses nothing when it goes on, whatever the network
// does meanwhile.
func TestHold(t *testing.T) {
	for _, loss := range []float64{0, 0.1} {
		for _, size := range []int{100, 20_000} {
			t.Run(fmt.Sprintf("%v%%/%d", 100*loss, size), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSim(t, netsim.Faults{Seed: 7, Loss: loss, Delay: 200 * time.Microsecond})
					defer s.close()
					c := newCollector()
					c.keep = true
					var room atomic.Int64
					room.Store(5)
					r, err := s.a.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0),
						Handler: func(Sample) { t.Error("a sample was not offered") },
						Offer: func(x Sample) bool {
							if room.Load() == 0 {
								return false
							}
							room.Add(-1)
							c.handle(x)
							return true
						}})
					if err != nil {
						t.Fatal(err)
					}
					q := reliable(Volatile, 0)
					q.MaxBlocking = time.Hour
					w, err := s.b.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: q, Window: 8 * size})
					if err != nil {
						t.Fatal(err)
					}
					until(t, "match", 10*time.Second, func() bool { return w.Stats().Ready == 1 })
					done := make(chan [][]byte)
					go func() { done <- s.write(w, 60, size, 0) }()
					time.Sleep(5 * time.Second)
					if n := c.len(); n != 5 {
						t.Fatalf("%d samples taken, 5 fit", n)
					}
					if st := w.Stats(); st.Sent > 5+9 || st.Unacked < 8 {
						t.Fatalf("the writer is not held: %+v", st)
					}
					if st := r.Stats(); st.Lost != 0 || st.Received != 5 {
						t.Fatalf("%+v", st)
					}
					room.Store(3)
					r.Resume()
					time.Sleep(time.Second)
					if n := c.len(); n != 8 {
						t.Fatalf("%d samples taken, 8 fit", n)
					}
					room.Store(1000)
					r.Resume()
					var sent [][]byte
					select {
					case sent = <-done:
					case <-time.After(time.Minute):
						t.Fatal("the writer is still held")
					}
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					defer cancel()
					if err := w.WaitAcked(ctx); err != nil {
						t.Fatal(err)
					}
					checkAll(t, c, sent)
					if st := r.Stats(); st.Lost != 0 || st.Received != 60 {
						t.Fatalf("%+v", st)
					}
					if st := s.a.Stats(); st.Reassembly != 0 {
						t.Fatalf("%d bytes kept", st.Reassembly)
					}
				})
			})
		}
	}
}

// TestHoldOvertaken: what a writer gives up while it is held is lost and counted, and what is here already is handed over.
func TestHoldOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := true
		var offered, handled []int64
		link := &silent{}
		p, r, send := victimOf(t, link, Config{}, reliable(Volatile, 0), wire.VendorCyclone, Volatile, func(s Sample) {
			handled = append(handled, s.Seq)
			s.Release()
		})
		defer p.Close()
		r.cfg.Offer = func(s Sample) bool {
			if open {
				offered = append(offered, s.Seq)
				s.Release()
			}
			return open
		}
		hb := uint32(0)
		heartbeat := func(first, last int64) {
			hb++
			send(func(b []byte, w wire.EntityID) []byte {
				return wire.AppendHeartbeat(b, &wire.Heartbeat{Writer: w, First: first, Last: last, Count: hb})
			})
		}
		data := func(seq int64) {
			send(func(b []byte, w wire.EntityID) []byte {
				return wire.AppendData(b, &wire.Data{Writer: w, Seq: seq, Payload: payload(20, int(seq))})
			})
		}
		data(1)
		heartbeat(1, 1)
		open = false
		for seq := int64(2); seq <= 6; seq++ {
			data(seq)
		}
		heartbeat(1, 6)
		heartbeat(5, 6) // 2 to 4 are given up; 2 is here
		if fmt.Sprint(offered, handled) != "[1] [2]" {
			t.Fatalf("offered %v, handled %v", offered, handled)
		}
		open = true
		r.Resume()
		data(5)
		data(6)
		if st := r.Stats(); fmt.Sprint(offered, handled) != "[1 5 6] [2]" || st.Lost != 2 || st.Received != 4 {
			t.Fatalf("offered %v, handled %v, %+v", offered, handled, st)
		}
		open = false
		data(7)
		send(func(b []byte, w wire.EntityID) []byte { // the writer leaves
			return wire.AppendData(b, &wire.Data{Writer: wire.EntityPubWriter, Seq: 2, Key: true, Payload: wire.AppendKey(nil, wire.MakeGUID(wire.Prefix{1, 2, 3}, w)),
				InlineQoS: wire.InlineQoS{Status: 3}})
		})
		if st := r.Stats(); fmt.Sprint(handled) != "[2 7]" || st.Writers[0].Matched {
			t.Fatalf("handled %v, %+v", handled, st)
		}
	})
}
