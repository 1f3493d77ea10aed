package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// effort is how much is tried: less with the race detector, under which SQLite is slow.
func effort(plain, race int) int {
	if copyBinds {
		return race
	}
	return plain
}

// checkDatabase has SQLite look at every page of a database.
func checkDatabase(path string) error {
	c, err := openConn(path, sqlite3.SQLITE_OPEN_READWRITE, "")
	if err != nil {
		return err
	}
	defer c.close()
	said := ""
	if err := c.query("PRAGMA integrity_check", func(s *stmt) error { said += s.text(0) + "\n"; return nil }); err != nil {
		return err
	}
	if said != "ok\n" {
		return fmt.Errorf("integrity_check: %s", said)
	}
	return nil
}

func TestEncode(t *testing.T) {
	for s := range 64 {
		for _, v := range []uint64{1 << s, 1<<s - 1, 1<<s + 1, math.MaxUint64 >> s} {
			b := appendVarint(nil, v)
			if got, n := varint(b); got != v || n != len(b) || n != varintSize(v) {
				t.Errorf("varint %x: %x, %d of %d bytes, size %d", v, got, n, len(b), varintSize(v))
			}
			for _, i := range []int64{int64(v), -int64(v)} {
				serial, size := intSerial(i)
				c := column{serial: uint64(serial), size: int64(size)}
				if got := c.int(appendInt(nil, i, size)); got != i || uint64(size) != serialSize(c.serial) {
					t.Errorf("integer %d: %d of type %d", i, got, serial)
				}
			}
		}
	}
}

// Whatever is written in whatever order, with pages of any size, SQLite finds the file in order and reads what was
// written; so do we.
func TestOwnPages(t *testing.T) {
	orders := map[string]func(i, n int, r *rand.Rand) int64{
		"ascending":  func(i, _ int, _ *rand.Rand) int64 { return 1_700_000_000_000_000_000 + int64(i)*1000 },
		"equal":      func(int, int, *rand.Rand) int64 { return 7 },
		"descending": func(i, n int, _ *rand.Rand) int64 { return int64(n - i) },
		"shuffled":   func(_, _ int, r *rand.Rand) int64 { return int64(r.Uint64()) },
		"jitter":     func(i, _ int, r *rand.Rand) int64 { return int64(i)*1000 + r.Int64N(5000) - 100_000 },
	}
	for _, size := range []int{512, 8192, 65536}[:effort(3, 2)] {
		for name, stamp := range orders {
			t.Run(fmt.Sprint(name, size), func(t *testing.T) {
				t.Parallel()
				testOwnPages(t, size, stamp)
			})
		}
	}
}

func testOwnPages(t *testing.T, size int, stamp func(i, n int, r *rand.Rand) int64) {
	r := rand.New(rand.NewPCG(uint64(size), 1))
	path := filepath.Join(t.TempDir(), "a.db3")
	o := plugin.WriteOptions{Config: map[string]any{"pragmas": []any{fmt.Sprintf("page_size = %d", size)}}}
	w, err := create(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	e, ok := w.e.(*pageEngine)
	if !ok {
		t.Fatalf("written by a %T", w.e)
	}
	e.stamps.most = 5 // pages are put away and read again
	n := effort(1500, 300)
	var want []plugin.Message
	topics := 0
	pool := make([]byte, 100_000)
	for i := range pool {
		pool[i] = byte(r.Uint32())
	}
	order := uint64(0)
	for i := 0; i < n; {
		if topics == 0 || r.IntN(200) == 0 {
			if _, err := w.AddTopic(plugin.Topic{Name: fmt.Sprint("/t", topics), Type: "a/msg/B", Sources: slices.Repeat([]string{"source"}, r.IntN(300))}); err != nil {
				t.Fatal(err)
			}
			topics++
		}
		var batch []plugin.Message
		for range r.IntN(40) {
			order += 1 + uint64(r.IntN(3))*uint64(r.IntN(1000))
			k := r.IntN(60)
			switch r.IntN(40) {
			case 0:
				k = r.IntN(len(pool))
			case 1, 2, 3, 4:
				k = r.IntN(min(2*size, len(pool)))
			}
			m := plugin.Message{Topic: plugin.TopicID(1 + r.IntN(topics)), RecvTime: stamp(i, n, r), SendTime: int64(r.Uint32()), Source: r.Uint32(), Seq: r.Uint64(),
				Order: order, Data: pool[r.IntN(len(pool)-k+1):][:k]}
			batch = append(batch, m)
			i++
		}
		want = append(want, batch...)
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
		if r.IntN(15) == 0 {
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := w.Size()
	if err := w.Close(plugin.Metadata{Version: 9, Text: "x"}); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil || fi.Size() < before-int64(10*size) || fi.Size() > before+int64(20*size) {
		t.Errorf("closed it has %d bytes, %d were foretold (%v)", fi.Size(), before, err)
	}
	if err := checkDatabase(path); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(want, func(a, b plugin.Message) int {
		return key{a.RecvTime, int64(a.Order)}.compare(key{b.RecvTime, int64(b.Order)})
	})
	rd, err := openReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil || !rd.settled || rd.tree == nil && mapped() {
		t.Fatal("not settled, or not mapped: ", err)
	}
	defer rd.Close()
	same := func(what string, got []plugin.Message, want []plugin.Message) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %d messages, want %d", what, len(got), len(want))
		}
		for i := range got {
			g, w := got[i], want[i]
			if !bytes.Equal(g.Data, w.Data) {
				t.Fatalf("%s: message %d: %d bytes differ from %d", what, i, len(g.Data), len(w.Data))
			}
			if g.Data, w.Data = nil, nil; fmt.Sprint(g) != fmt.Sprint(w) {
				t.Fatalf("%s: message %d is\n%+v\nwant\n%+v", what, i, g, w)
			}
		}
	}
	got, err := plugintest.ReadAll(rd, plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	same("all", got, want)
	for range effort(200, 40) {
		at := r.IntN(n)
		lo := want[at].RecvTime + r.Int64N(3) - 1
		hi := lo + r.Int64N(pointRange)
		if hi < lo {
			continue
		}
		q := plugin.Query{Range: &plugin.TimeRange{Start: lo, End: hi}, Reverse: r.IntN(2) == 0}
		if r.IntN(3) == 0 {
			q.Topics = []plugin.TopicID{plugin.TopicID(1 + r.IntN(topics))}
		}
		var some []plugin.Message
		for _, m := range want {
			if m.RecvTime >= lo && m.RecvTime <= hi && (q.Topics == nil || q.Topics[0] == m.Topic) {
				some = append(some, m)
			}
		}
		if q.Reverse {
			slices.Reverse(some)
		}
		got, err := plugintest.ReadAll(rd, q)
		if err != nil {
			t.Fatal(err)
		}
		same(fmt.Sprintf("%+v", q), got, some)
	}
}

func mapped() bool { return runtime.GOOS != "windows" }

// powerCuts watches what is made durable. Each time that something is about to be, it takes what a power cut could
// leave: of every file what was durable, with any part of what has been written since.
type powerCuts struct {
	t       *testing.T
	path    string
	mu      sync.Mutex
	r       *rand.Rand
	durable [3][]byte // database, journal and log of syncs
	safe    func() int
	cuts    int
}

var powerFiles = []string{"", "-journal", logSuffix}

func (p *powerCuts) file(i int) string { return p.path + powerFiles[i] }

// mix returns what could be there of a file.
func (p *powerCuts) mix(old, now []byte) []byte {
	share := []float64{0, 0.1, 0.5, 0.9, 1}[p.r.IntN(5)]
	out := slices.Clone(old)
	if len(now) > len(out) && p.r.IntN(3) > 0 {
		out = append(out, make([]byte, len(now)-len(out))...)
	}
	for at := 0; at < len(out); at += 512 {
		if at < len(now) && p.r.Float64() < share {
			copy(out[at:min(at+512, len(out))], now[at:])
		}
	}
	return out
}

func (p *powerCuts) sync(f *os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var now [3][]byte
	for i := range now {
		var err error
		if now[i], err = os.ReadFile(p.file(i)); err != nil && !(i == 2 && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	for range effort(3, 1) {
		dir := p.t.TempDir()
		path := filepath.Join(dir, "a.db3")
		for i, side := range powerFiles {
			if i == 2 && now[i] == nil {
				continue
			}
			if err := os.WriteFile(path+side, p.mix(p.durable[i], now[i]), 0o644); err != nil {
				return err
			}
		}
		p.check(path)
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		p.cuts++
	}
	i := max(0, slices.IndexFunc(powerFiles, func(side string) bool { return f.Name() == p.path+side }))
	p.durable[i] = now[i]
	return nil
}

// check reads what a power cut left, first as it is, then after SQLite has put it in order.
func (p *powerCuts) check(path string) {
	for _, who := range []string{"as it is", "rolled back"} {
		r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
		if err != nil {
			p.t.Errorf("%s: %v", who, err)
			return
		}
		ms, err := plugintest.ReadAll(r, plugin.Query{})
		r.Close()
		if err != nil || len(ms) < p.safe() || uint64(len(ms)) != r.Info().Messages {
			p.t.Errorf("%s: %d messages, %d were synced, info says %d: %v", who, len(ms), p.safe(), r.Info().Messages, err)
		}
		slices.SortFunc(ms, func(a, b plugin.Message) int { return cmp.Compare(a.Seq, b.Seq) })
		for i, m := range ms {
			if m.Seq != uint64(i) || len(m.Data) != i*37%20_000 {
				p.t.Errorf("%s: message %d: %d, %d bytes", who, i, m.Seq, len(m.Data))
				break
			}
		}
		if who == "as it is" {
			if err := checkDatabase(path); err != nil {
				p.t.Error(err)
			}
		}
	}
}

// A power cut at any moment leaves what was synced, and a file that opens.
func TestPowerCut(t *testing.T) {
	for _, size := range []int{1024, 8192} {
		for _, disorder := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "a.db3")
			w, err := create(context.Background(), path, plugin.WriteOptions{Config: map[string]any{"pragmas": []any{fmt.Sprintf("page_size = %d", size)}}})
			if err != nil {
				t.Fatal(err)
			}
			safe := 0
			p := &powerCuts{t: t, path: path, r: rand.New(rand.NewPCG(1, uint64(size))), safe: func() int { return safe }}
			for i := range 2 {
				if p.durable[i], err = os.ReadFile(p.file(i)); err != nil {
					t.Fatal(err)
				}
			}
			e := w.e.(*pageEngine)
			e.st.sync, w.log.sync = p.sync, p.sync
			records := 0
			if disorder {
				e.stamps.most = 3
			}
			n := 0
			for round := range effort(6, 3) {
				if round%4 == 0 {
					if _, err := w.AddTopic(plugin.Topic{Name: fmt.Sprint("/t", round), Type: "a/msg/B", Sources: slices.Repeat([]string{"source"}, 100)}); err != nil {
						t.Fatal(err)
					}
				}
				write := func(count int) {
					for range count {
						stamp := int64(n)
						if disorder {
							stamp = int64(p.r.Uint64())
						}
						if err := w.Write([]plugin.Message{{Topic: 1, RecvTime: stamp, Seq: uint64(n), Data: bytes.Repeat([]byte{byte(n)}, n*37%20_000)}}); err != nil {
							t.Fatal(err)
						}
						n++
					}
					if err := w.Sync(); err != nil {
						t.Fatal(err)
					}
					p.mu.Lock()
					safe = n
					p.mu.Unlock()
				}
				write(p.r.IntN(200))
				for range p.r.IntN(5) { // which go to the log
					w.log.committed = time.Now() // however slow the checks are
					write(1 + p.r.IntN(3))
				}
				records += int(w.log.next)
			}
			if err := w.Close(plugin.Metadata{}); err != nil {
				t.Fatal(err)
			}
			if err := checkDatabase(path); err != nil {
				t.Error(err)
			}
			if records == 0 {
				t.Error("nothing went to the log of syncs")
			}
			t.Logf("%d power cuts, %d records", p.cuts, records)
			if t.Failed() {
				return
			}
		}
	}
}
