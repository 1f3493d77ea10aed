package plugintest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gobag/gobag/plugin"
)

var background = context.Background()

// storage is a storage under test together with what it must contain.
type storage struct {
	t      T
	d      plugin.Driver
	f      plugin.Features
	path   string
	w      plugin.Writer
	topics []plugin.Topic
	want   []plugin.Message // in the order of writing, Order as it must be read
	order  uint64
}

// newStorage creates a storage in a directory of its own.
func newStorage(t T, d plugin.Driver, o plugin.WriteOptions) *storage {
	t.Helper()
	s := &storage{t: t, d: d, f: d.Features(), path: newPath(t, d)}
	s.w = create(t, d, s.path, o)
	return s
}

func newPath(t T, d plugin.Driver) string { return filepath.Join(t.TempDir(), "storage"+d.Extension()) }

func create(t T, d plugin.Driver, path string, o plugin.WriteOptions) plugin.Writer {
	t.Helper()
	w, err := d.Create(background, path, o)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return w
}

// topic adds a topic with the given name and fields that can be told apart.
func (s *storage) topic(name string) plugin.TopicID {
	s.t.Helper()
	return s.addTopic(plugin.Topic{Name: name, Type: "std_msgs/msg/String", SerializationFormat: "cdr"})
}

func (s *storage) addTopic(t plugin.Topic) plugin.TopicID {
	s.t.Helper()
	id, err := s.w.AddTopic(t)
	if err != nil {
		s.t.Fatalf("add topic %q: %v", t.Name, err)
	}
	t.ID = id
	if i := slices.IndexFunc(s.topics, func(o plugin.Topic) bool { return o.ID == id }); i >= 0 {
		if s.topics[i].Name != t.Name || s.topics[i].Type != t.Type {
			s.t.Fatalf("add topic %q (%s): got the id %d of %q (%s)", t.Name, t.Type, id, s.topics[i].Name, s.topics[i].Type)
		}
		s.topics[i] = updated(s.topics[i], t)
		return id
	}
	if int(id) != len(s.topics)+1 {
		s.t.Fatalf("add topic %q: id %d, want %d", t.Name, id, len(s.topics)+1)
	}
	s.topics = append(s.topics, t)
	return id
}

// updated is what the contract says of a topic that is added again.
func updated(old, t plugin.Topic) plugin.Topic {
	old.OfferedQoS = cmp.Or(t.OfferedQoS, old.OfferedQoS)
	old.TypeHash = cmp.Or(t.TypeHash, old.TypeHash)
	if t.Definition.Text != "" {
		old.Definition = t.Definition
	}
	if t.Sources != nil {
		old.Sources = t.Sources
	}
	return old
}

// write writes one batch. The batch is scribbled over afterwards, as its owner may do.
func (s *storage) write(ms ...plugin.Message) {
	s.t.Helper()
	batch := slices.Clone(ms)
	for i := range batch {
		batch[i].Data = slices.Clone(batch[i].Data)
	}
	if err := s.w.Write(batch); err != nil {
		s.t.Fatalf("write %d messages: %v", len(ms), err)
	}
	for i := range batch {
		for k := range batch[i].Data {
			batch[i].Data[k] ^= 0xff
		}
		batch[i] = plugin.Message{Topic: 1, RecvTime: -77, Data: []byte("not yours")}
	}
	s.expect(ms...)
}

// expect notes messages that were written.
func (s *storage) expect(ms ...plugin.Message) {
	for _, m := range ms {
		if m.Order <= s.order || m.Order >= 1<<63 {
			m.Order = s.order + 1
		}
		s.order = m.Order
		if !s.f.SendTime {
			m.SendTime = 0
		}
		if !s.f.Source {
			m.Source, m.Seq = 0, 0
		}
		s.want = append(s.want, m)
	}
}

func (s *storage) sync() {
	s.t.Helper()
	if err := s.w.Sync(); err != nil {
		s.t.Fatalf("sync: %v", err)
	}
}

func (s *storage) close() {
	s.t.Helper()
	if err := s.w.Close(plugin.Metadata{}); err != nil {
		s.t.Fatalf("close: %v", err)
	}
}

// expected is what a query must return.
func (s *storage) expected(q plugin.Query) []plugin.Message {
	var ms []plugin.Message
	for _, m := range s.want {
		if q.Topics != nil && !slices.Contains(q.Topics, m.Topic) {
			continue
		}
		if q.Range != nil && (m.RecvTime < q.Range.Start || m.RecvTime > q.Range.End) {
			continue
		}
		ms = append(ms, m)
	}
	slices.SortFunc(ms, func(a, b plugin.Message) int {
		return cmp.Or(cmp.Compare(a.RecvTime, b.RecvTime), cmp.Compare(a.Order, b.Order))
	})
	if q.Reverse {
		slices.Reverse(ms)
	}
	return ms
}

// reopen closes the storage, opens it, and checks all of it.
func (s *storage) reopen() plugin.Reader {
	s.t.Helper()
	s.close()
	r := s.open()
	if i := r.Info(); i.Unclean {
		s.t.Errorf("closed in order, but Info says Unclean (warnings: %q)", i.Warnings)
	}
	s.checkInfo(r)
	s.check(r, plugin.Query{})
	return r
}

func (s *storage) open() plugin.Reader {
	s.t.Helper()
	return openReader(s.t, s.d, s.path)
}

func openReader(t T, d plugin.Driver, path string) plugin.Reader {
	t.Helper()
	r, err := d.OpenReader(background, path, plugin.ReadOptions{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return r
}

func closeReader(t T, r plugin.Reader) {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Errorf("close reader: %v", err)
	}
}

// check compares the answer to a query with what it must be.
func (s *storage) check(r plugin.Reader, q plugin.Query) {
	s.t.Helper()
	got, err := ReadAll(r, q)
	if err != nil {
		s.t.Fatalf("read %s: %v", describe(q), err)
	}
	compare(s.t, "read "+describe(q), got, s.expected(q))
}

// checkInfo compares Info with what was written.
func (s *storage) checkInfo(r plugin.Reader) {
	s.t.Helper()
	info := r.Info()
	all := s.expected(plugin.Query{})
	start, end := int64(plugin.NoStart), int64(0)
	if len(all) > 0 {
		start, end = all[0].RecvTime, all[len(all)-1].RecvTime
	}
	if info.Messages != uint64(len(all)) || info.Start != start || info.End != end {
		s.t.Errorf("info: %d messages from %d to %d, want %d from %d to %d", info.Messages, info.Start, info.End, len(all), start, end)
	}
	if info.Size <= 0 {
		s.t.Errorf("info: size %d", info.Size)
	}
	if info.Format == "" {
		s.t.Errorf("info: no format")
	}
	if len(info.Topics) != len(s.topics) {
		s.t.Fatalf("info: %d topics, want %d", len(info.Topics), len(s.topics))
	}
	for i, want := range s.topics {
		got := info.Topics[i]
		s.checkTopic(got.Topic, want)
		var n uint64
		var b int64
		for _, m := range s.want {
			if m.Topic == want.ID {
				n, b = n+1, b+int64(len(m.Data))
			}
		}
		if got.Count != n || got.Bytes != b && got.Bytes != -1 {
			s.t.Errorf("topic %q: %d messages of %d bytes, want %d of %d", want.Name, got.Count, got.Bytes, n, b)
		}
	}
}

func (s *storage) checkTopic(got, want plugin.Topic) {
	s.t.Helper()
	if !s.f.Definitions {
		got.Definition, want.Definition = plugin.Definition{}, plugin.Definition{}
	}
	if !s.f.Source {
		got.Sources, want.Sources = nil, nil
	}
	if got.Definition.Text == "" {
		got.Definition = plugin.Definition{}
	}
	if want.Definition.Text == "" {
		want.Definition = plugin.Definition{}
	}
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
		s.t.Errorf("topic: got\n%q\nwant\n%q", a, b)
	}
}

// compare reports the first difference.
func compare(t T, what string, got, want []plugin.Message) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if !SameMessage(&got[i], &want[i]) {
			t.Fatalf("%s: message %d of %d is\n%s\nwant\n%s", what, i+1, len(got), show(&got[i]), show(&want[i]))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%s: %d messages, want %d", what, len(got), len(want))
	}
}

// SameMessage says whether two messages agree in every field.
func SameMessage(a, b *plugin.Message) bool {
	return a.Topic == b.Topic && a.RecvTime == b.RecvTime && a.SendTime == b.SendTime && a.Source == b.Source &&
		a.Seq == b.Seq && a.Order == b.Order && bytes.Equal(a.Data, b.Data)
}

func show(m *plugin.Message) string {
	return fmt.Sprintf("topic %d recv %d send %d source %d seq %d order %d, %d bytes %.16x",
		m.Topic, m.RecvTime, m.SendTime, m.Source, m.Seq, m.Order, len(m.Data), m.Data)
}

func describe(q plugin.Query) string {
	s := "all"
	if q.Topics != nil {
		s = fmt.Sprintf("topics %d", q.Topics)
	}
	if q.Range != nil {
		s += fmt.Sprintf(" from %d to %d", q.Range.Start, q.Range.End)
	}
	if q.Reverse {
		s += " backwards"
	}
	return s
}

// payload is n bytes that differ for every seed.
func payload(seed uint64, n int) []byte {
	b := make([]byte, n)
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := range b {
		if i%8 == 0 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		b[i] = byte(x >> (i % 8 * 8))
	}
	return b
}
