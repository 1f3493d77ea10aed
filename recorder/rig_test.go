package recorder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

// rig is a network with a talking node and a recorder that writes through a storage with faults.
type rig struct {
	*testing.T
	net     *rostest.Network
	talker  *rostest.Node
	node    *rostest.Node
	storage *storage
	dir     string

	mu     sync.Mutex
	events []Event

	rec    *Recorder
	cancel context.CancelFunc
	done   chan struct{}
	result Result
	err    error
}

func newRig(t *testing.T, o rostest.Options) *rig {
	g := &rig{T: t, net: rostest.NewNetwork(o), storage: newStorage(), dir: filepath.Join(t.TempDir(), "bag")}
	g.talker, g.node = g.net.Node("talker"), g.net.Node("recorder")
	return g
}

// inBubble runs a test on fake time.
func inBubble(t *testing.T, o rostest.Options, f func(g *rig)) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t, o)
		defer g.close()
		f(g)
	})
}

// close ends what is left and checks that every sample came back.
func (g *rig) close() {
	if g.cancel != nil {
		g.cancel()
		g.storage.thaw()
		<-g.done
	}
	g.talker.Close()
	g.node.Close()
	synctest.Wait()
	if n := g.net.Outstanding(); n != 0 && g.storage.abandoned.Load() == 0 {
		g.Errorf("%d samples were not released", n)
	}
}

// start starts recording; what o leaves open is filled in.
func (g *rig) start(o Options) {
	g.Helper()
	if o.Node == nil {
		o.Node = g.node
	}
	o.Output, o.Storage = g.dir, g.storage.Name()
	if o.FreeSpace == nil {
		o.FreeSpace = func(string) (int64, int64, error) { return 1e12, 1e12, nil }
	}
	o.Now = g.net.Clock().Now
	o.OnEvent = func(e Event) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.events = append(g.events, e)
	}
	rec, err := New(o)
	if err != nil {
		g.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	g.rec, g.cancel, g.done = rec, cancel, make(chan struct{})
	go func() {
		g.result, g.err = rec.Run(ctx)
		close(g.done)
	}()
	settled()
}

// settled lets everything that can happen now happen, discovery included.
func settled() {
	synctest.Wait()
	time.Sleep(300 * time.Millisecond)
	synctest.Wait()
}

// stop stops recording in order.
func (g *rig) stop() (Result, error) {
	g.cancel()
	<-g.done
	return g.result, g.err
}

// wait waits for the recording to end by itself.
func (g *rig) wait() (Result, error) {
	<-g.done
	return g.result, g.err
}

// advertise makes a publisher of strings.
func (g *rig) advertise(name string, change ...func(*ros.Topic, *ros.QoS)) ros.Publisher {
	g.Helper()
	t, q := ros.Topic{Name: name, Type: str, TypeHash: "RIHS01_" + strings.Repeat("ab", 32)}, ros.DefaultQoS()
	for _, c := range change {
		c(&t, &q)
	}
	p, err := g.talker.Advertise(t, q)
	if err != nil {
		g.Fatal(err)
	}
	return p
}

func bestEffort(_ *ros.Topic, q *ros.QoS) { q.Reliability = ros.BestEffort }

func latched(_ *ros.Topic, q *ros.QoS) { q.Durability, q.Depth = ros.TransientLocal, 3 }

// publish sends n messages of some size; the text says from which publisher and the how manieth.
func (g *rig) publish(p ros.Publisher, n, size int) {
	g.Helper()
	for i := range n {
		data := fmt.Appendf(nil, "%s %d ", p.Topic().Name, i)
		data = append(data, make([]byte, max(0, size-len(data)))...)
		if err := p.Publish(data, g.net.Clock().Now()); err != nil {
			g.Fatal(err)
		}
	}
}

// hasEvent says whether an event of that kind whose text contains part was emitted.
func (g *rig) hasEvent(kind EventKind, part string) bool { return g.countEvents(kind, part) > 0 }

func (g *rig) countEvents(kind EventKind, part string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.events {
		if e.Kind == kind && strings.Contains(e.Text, part) {
			n++
		}
	}
	return n
}

func (g *rig) wantEvent(kind EventKind, part string) {
	g.Helper()
	if !g.hasEvent(kind, part) {
		g.Errorf("no event %d with %q in %v", kind, part, g.events)
	}
}

// stored is what is in a bag.
type stored struct {
	meta   *bag.Metadata
	topics map[string]plugin.TopicInfo
	msgs   map[string][]plugin.Message // by topic, in order
	total  int
}

// read reads the bag through the storage itself.
func (g *rig) read() stored {
	g.Helper()
	s := stored{topics: map[string]plugin.TopicInfo{}, msgs: map[string][]plugin.Message{}}
	text, err := os.ReadFile(filepath.Join(g.dir, bag.MetadataFile))
	if err != nil {
		g.Fatal(err)
	}
	if s.meta, err = bag.ParseMetadata(text); err != nil {
		g.Fatal(err)
	}
	for _, path := range s.meta.Paths {
		r, err := g.storage.OpenReader(context.Background(), filepath.Join(g.dir, path), plugin.ReadOptions{})
		if err != nil {
			g.Fatal(err)
		}
		names := map[plugin.TopicID]string{}
		for _, t := range r.Info().Topics {
			names[t.ID] = t.Name
			s.topics[t.Name] = t
		}
		it, err := r.Messages(plugin.Query{})
		if err != nil {
			g.Fatal(err)
		}
		for {
			var m plugin.Message
			if err := it.Next(&m); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				g.Fatal(err)
			}
			m.Data = slices.Clone(m.Data)
			s.msgs[names[m.Topic]] = append(s.msgs[names[m.Topic]], m)
			s.total++
		}
		it.Close()
		r.Close()
	}
	return s
}

func (s *stored) ledger(t testing.TB) bag.Ledger {
	t.Helper()
	l, err := bag.ParseLedger(s.meta.CustomData[bag.KeyLedger])
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// checkSums checks what must always hold of a finished recording.
func (g *rig) checkSums(res Result) {
	g.Helper()
	s := g.read()
	if l := s.ledger(g); !equalLedgers(l, res.Ledger) {
		g.Errorf("ledger in the bag:\n%v\nof the result:\n%v", l, res.Ledger)
	}
	for name, l := range res.Ledger.Topics {
		if l.Received != l.Recorded+l.Lost.Queue+l.Lost.Storage {
			g.Errorf("%s: received is not recorded + queue + storage: %+v", name, l)
		}
		if n := len(s.msgs[name]); uint64(n) != l.Recorded {
			g.Errorf("%s: %d messages in the bag, %d counted as recorded", name, n, l.Recorded)
		}
	}
	if uint64(s.total) != res.Messages {
		g.Errorf("%d messages in the bag, result says %d", s.total, res.Messages)
	}
}

func equalLedgers(a, b bag.Ledger) bool { return a.Encode() == b.Encode() }

// storage is the reference format with faults.
type storage struct {
	plugin.Driver
	name string

	mu        sync.Mutex
	frozen    chan struct{} // closed when it thaws; nil while it is not frozen
	failAfter int           // messages until a write fails; negative = never
	failure   error
	closeErr  error
	swallow   bool // writes are taken and reach nothing

	writes    atomic.Int64 // batches begun
	abandoned atomic.Int64 // writes that stay frozen after the test
}

var storages atomic.Int64

func newStorage() *storage {
	s := &storage{Driver: plugintest.NewMemory(), failAfter: -1}
	s.name = fmt.Sprintf("faulty%d", storages.Add(1))
	plugin.Register(s)
	return s
}

func (s *storage) Name() string { return s.name }

func (s *storage) freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = make(chan struct{})
}

func (s *storage) thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen != nil {
		close(s.frozen)
		s.frozen = nil
	}
}

func (s *storage) wait() {
	s.mu.Lock()
	frozen := s.frozen
	s.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

func (s *storage) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	w, err := s.Driver.Create(ctx, path, o)
	if err != nil {
		return nil, err
	}
	fw := &faultyWriter{Writer: w, s: s}
	fw.size.Store(w.Size())
	return fw, nil
}

type faultyWriter struct {
	plugin.Writer
	s    *storage
	size atomic.Int64
}

func (w *faultyWriter) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	w.s.wait()
	return w.Writer.AddTopic(t)
}

func (w *faultyWriter) Write(batch []plugin.Message) error {
	w.s.writes.Add(1)
	w.s.wait()
	w.s.mu.Lock()
	fail := w.s.failAfter >= 0 && w.s.failAfter < len(batch)
	if w.s.failAfter >= 0 {
		w.s.failAfter -= len(batch)
	}
	swallow := w.s.swallow
	w.s.mu.Unlock()
	if fail {
		return w.s.failure
	}
	if swallow {
		return nil
	}
	err := w.Writer.Write(batch)
	w.size.Store(w.Writer.Size())
	return err
}

func (w *faultyWriter) Sync() error {
	w.s.wait()
	return w.Writer.Sync()
}

func (w *faultyWriter) Size() int64 { return w.size.Load() }

func (w *faultyWriter) Close(m plugin.Metadata) error {
	w.s.wait()
	return errors.Join(w.Writer.Close(m), w.s.closeErr)
}
