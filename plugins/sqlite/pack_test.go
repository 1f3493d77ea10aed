package sqlite

import (
	"math"
	"reflect"
	"testing"

	"github.com/gobag/gobag/plugin"
)

func packed(ms ...plugin.Message) (int64, []byte) {
	var p packer
	for i := range ms {
		p.add(int64(ms[i].Order), &ms[i])
	}
	first, row := p.take()
	return first, append([]byte(nil), row...)
}

var packSamples = [][]plugin.Message{
	{{Topic: 1, Order: 1, RecvTime: 1000, SendTime: 900, Source: 1, Seq: 1, Data: []byte("abc")}},
	{{Topic: 1, Order: 5}, {Topic: 2, Order: 6, Data: []byte("x")}, {Topic: 1, Order: 1 << 62, Seq: math.MaxUint64, Source: math.MaxUint32}},
	{{Topic: 3, Order: 7, RecvTime: math.MinInt64, SendTime: math.MaxInt64}, {Topic: 3, Order: 9, RecvTime: math.MaxInt64, SendTime: math.MinInt64}, {Topic: math.MaxUint32, Order: 10, SendTime: -1}},
}

func TestPack(t *testing.T) {
	for _, ms := range packSamples {
		first, row := packed(ms...)
		totals, extras, err := parsePack(first, row, false)
		if err != nil || len(extras) != len(ms) {
			t.Fatal(err, extras)
		}
		at := -1
		sum := map[plugin.TopicID]packTotal{}
		for i, m := range ms {
			e := find(extras, int64(m.Order), &at)
			if e == nil || at != i || e.source != m.Source || e.seq != m.Seq || e.hasSend != (m.SendTime != 0) {
				t.Fatalf("%+v of %+v", e, m)
			}
			if e.hasSend && m.RecvTime+e.sendDelta != m.SendTime {
				t.Errorf("send time %d, want %d", m.RecvTime+e.sendDelta, m.SendTime)
			}
			s := sum[m.Topic]
			sum[m.Topic] = packTotal{m.Topic, s.count + 1, s.bytes + uint64(len(m.Data))}
		}
		for i := len(ms) - 1; i >= 0; i-- { // backwards, by search
			if e := find(extras, int64(ms[i].Order), &at); e == nil || at != i {
				t.Errorf("message %d not found backwards", ms[i].Order)
			}
		}
		if e := find(extras, 1<<62+1, &at); e != nil {
			t.Errorf("found %+v", e)
		}
		only, none, err := parsePack(first, row, true)
		if err != nil || none != nil || !reflect.DeepEqual(only, totals) || len(totals) != len(sum) {
			t.Errorf("%v %v %v", only, none, err)
		}
		for _, total := range totals {
			if total != sum[total.topic] {
				t.Errorf("%+v, want %+v", total, sum[total.topic])
			}
		}
		for n := range row {
			if _, _, err := parsePack(first, row[:n], false); err == nil {
				t.Errorf("cut off at %d of %d bytes: no error", n, len(row))
			}
		}
	}
}

// The packer is used again and again without what was before shining through, and without allocating.
func TestPackerReuse(t *testing.T) {
	var p packer
	m := plugin.Message{Topic: 1, RecvTime: 10, SendTime: 9, Source: 1, Seq: 1, Data: []byte("abc")}
	fill := func() {
		for i := range int64(100) {
			p.add(i+1, &m)
		}
		p.take()
	}
	fill()
	p.add(7, &m)
	first, row := p.take()
	totals, extras, err := parsePack(first, row, false)
	if first != 7 || err != nil || len(extras) != 1 || len(totals) != 1 || totals[0].count != 1 {
		t.Errorf("%d %v %v %v", first, totals, extras, err)
	}
	if n := testing.AllocsPerRun(10, fill); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTopicRow(t *testing.T) {
	for _, r := range []topicRow{{}, {sources: []string{"a", "", "\x00\xff"}}, {typeHash: "RIHS01_", definition: plugin.Definition{Encoding: "ros2msg", Text: "int8 x\n"}, sources: []string{"w"}}} {
		row := r.encode()
		got, err := parseTopicRow(-1, row)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v, want %+v (%v)", got, r, err)
		}
		for n := range row {
			if _, err := parseTopicRow(-1, row[:n]); err == nil {
				t.Errorf("cut off at %d of %d bytes: no error", n, len(row))
			}
		}
	}
}

func FuzzPack(f *testing.F) {
	for _, ms := range packSamples {
		_, row := packed(ms...)
		f.Add(row)
	}
	f.Add((&topicRow{typeHash: "h", sources: []string{"a", "b"}}).encode())
	f.Fuzz(func(t *testing.T, row []byte) {
		totals, extras, err := parsePack(1, row, false)
		if len(extras) > len(row) || len(totals) > len(row) || cap(extras) > len(row)+1 {
			t.Errorf("%d totals and %d entries from %d bytes (%v)", len(totals), cap(extras), len(row), err)
		}
		if r, err := parseTopicRow(1, row); err == nil && len(r.sources) > len(row) {
			t.Errorf("%d sources from %d bytes", len(r.sources), len(row))
		}
	})
}

// Writing allocates nothing per message.
func TestWriteAllocs(t *testing.T) {
	if copyBinds {
		t.Skip("the race detector's builds copy")
	}
	path := t.TempDir() + "/a.db3"
	w, err := create(t.Context(), path, plugin.WriteOptions{Preset: plugin.PresetFast})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(plugin.Metadata{})
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "std_msgs/msg/String"})
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]plugin.Message, 1000)
	for i := range batch {
		batch[i] = plugin.Message{Topic: id, RecvTime: int64(i), SendTime: int64(i), Source: 1, Seq: uint64(i), Data: make([]byte, 200)}
	}
	if n := testing.AllocsPerRun(10, func() {
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
	}); n > 20 {
		t.Errorf("%v allocations for 1000 messages", n)
	}
}

// Reading allocates nothing per message.
func TestReadAllocs(t *testing.T) {
	path := t.TempDir() + "/a.db3"
	writeSimple(t, path, plugin.WriteOptions{}, 3000)
	it, err := open(t, path).Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var m plugin.Message
	if n := testing.AllocsPerRun(2000, func() {
		if err := it.Next(&m); err != nil {
			t.Fatal(err)
		}
	}); n > 0.5 {
		t.Errorf("%v allocations per message", n)
	}
}
