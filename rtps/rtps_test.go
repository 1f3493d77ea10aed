package rtps

import (
	"context"
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// domain gives every test its own, so that tests and other processes do not see each other: 61 to 101 and 215 to 232, whose
// ports are not ephemeral ones either.
var domains struct {
	sync.Mutex
	n int
}

func domain(t *testing.T) int {
	t.Helper()
	domains.Lock()
	defer domains.Unlock()
	domains.n++
	d := 61 + (os.Getpid()*7+domains.n)%59
	if d > 101 {
		d += 215 - 102
	}
	return d
}

const (
	topic = "rt/chatter"
	typ   = "std_msgs::msg::dds_::String_"
)

func participant(t *testing.T, cfg Config) *Participant {
	t.Helper()
	if cfg.Interfaces == nil && cfg.Transport == nil {
		cfg.Interfaces = []string{"127.0.0.1"}
	}
	p, err := NewParticipant(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// collector gathers samples.
type collector struct {
	mu   sync.Mutex
	seqs []int64
	data [][]byte
	keep bool
	more chan struct{}
}

func newCollector() *collector { return &collector{more: make(chan struct{}, 1)} }

func (c *collector) handle(s Sample) {
	c.mu.Lock()
	c.seqs = append(c.seqs, s.Seq)
	if c.keep {
		c.data = append(c.data, append([]byte(nil), s.Data...))
	}
	c.mu.Unlock()
	s.Release()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *collector) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seqs)
}

// list is the sequence numbers received, in order.
func (c *collector) list() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seqs)
}

func (c *collector) wait(t *testing.T, n int, limit time.Duration) {
	t.Helper()
	end := time.After(limit)
	for c.len() < n {
		select {
		case <-c.more:
		case <-end:
			t.Fatalf("%d of %d samples after %v", c.len(), n, limit)
		}
	}
}

func eventually(t *testing.T, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func payload(n int, seq int) []byte {
	b := make([]byte, max(n, 12))
	b[1] = 1
	binary.LittleEndian.PutUint64(b[4:], uint64(seq))
	for i := 12; i < len(b); i++ {
		b[i] = byte(i*7 + i>>8*13 + seq)
	}
	return b
}

func reliable(d Durability, depth int) QoS {
	q := QoS{Reliability: Reliable, Durability: d, History: KeepAll, MaxBlocking: 10 * time.Second}
	if depth > 0 {
		q.History, q.Depth = KeepLast, depth
	}
	return q
}

func matched(t *testing.T, w *Writer, n int) {
	t.Helper()
	eventually(t, "writer matched", 5*time.Second, func() bool { return w.Stats().Matched >= n })
}

func TestReliableLoopback(t *testing.T) {
	d := domain(t)
	a, b := participant(t, Config{Domain: d}), participant(t, Config{Domain: d})
	c := newCollector()
	r, err := a.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0), Handler: c.handle})
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.NewWriter(WriterConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0)})
	if err != nil {
		t.Fatal(err)
	}
	matched(t, w, 1)
	const n = 2000
	for i := range n {
		if _, err := w.Write(payload(100+i%50, i), time.Now().UnixNano()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := w.WaitAcked(ctx); err != nil {
		t.Fatal(err)
	}
	c.wait(t, n, 5*time.Second)
	st := r.Stats()
	if st.Received != n || st.Lost != 0 {
		t.Fatalf("stats %+v", st)
	}
	for i, s := range c.list() {
		if s != int64(i+1) {
			t.Fatalf("sample %d has sequence number %d", i, s)
		}
	}
}
