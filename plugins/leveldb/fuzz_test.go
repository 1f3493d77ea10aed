package leveldb

import (
	"bytes"
	"testing"

	"github.com/gobag/gobag/plugin"
)

func FuzzValue(f *testing.F) {
	for _, m := range []plugin.Message{{Topic: 1}, {Topic: 300, RecvTime: 1000, SendTime: 990, Source: 2, Seq: 129, Data: []byte{0, 1}}, {Topic: 1<<32 - 1, Source: 1<<32 - 1, Seq: 1<<64 - 1, SendTime: -1 << 63}} {
		f.Add(append(appendHeader(nil, &m), m.Data...), m.RecvTime)
	}
	f.Fuzz(func(t *testing.T, b []byte, recv int64) {
		m := plugin.Message{RecvTime: recv}
		if parseValue(b, &m) != nil {
			return
		}
		var again plugin.Message
		again.RecvTime = recv
		if err := parseValue(append(appendHeader(nil, &m), m.Data...), &again); err != nil {
			t.Fatal(err)
		}
		if m.Topic != again.Topic || m.Source != again.Source || m.Seq != again.Seq || m.SendTime != again.SendTime || !bytes.Equal(m.Data, again.Data) || valueTopic(b) != m.Topic {
			t.Fatalf("%+v becomes %+v", m, again)
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add(int64(0), uint64(1), int64(-1), uint64(2))
	f.Add(int64(1<<62), uint64(1)<<63, int64(1<<62), uint64(3))
	f.Fuzz(func(t *testing.T, t1 int64, o1 uint64, t2 int64, o2 uint64) {
		a, b := stamp{t1, o1}, stamp{t2, o2}
		ka, kb := appendMessageKey(nil, a), appendMessageKey(nil, b)
		if got, err := parseMessageKey(ka); got != a || err != nil {
			t.Fatalf("%+v becomes %+v, %v", a, got, err)
		}
		if a.less(b) != (bytes.Compare(ka, kb) < 0) {
			t.Fatalf("%+v and %+v are in another order than their keys", a, b)
		}
	})
}

// Every parser of what lies on a disk takes any bytes.
func FuzzParsers(f *testing.F) {
	var e edit
	e.comparator(bytewiseComparator)
	e.number(tagLogNumber, 3)
	e.newFile(tableRef{level: 6, num: 5, size: 100, smallest: make([]byte, 25), largest: make([]byte, 25)})
	f.Add(e.b)
	f.Add(encodeCounts(counts{1: {3, 4, -5, 6}, 7: {1, 0, 0, 0}}))
	f.Add(encodeTopic(&plugin.Topic{Name: "/a", Type: "b", Sources: []string{"x", ""}}, 2))
	f.Add(encodeDefinition(plugin.Definition{Encoding: "ros2msg", Text: "int32 x"}))
	batch := appendBatchHeader(nil, 7, 1)
	f.Add(appendBytes(appendBytes(append(batch, typeValue), "key"), "value"))
	f.Add([]byte{0, 9, 2, 'a', 0, 0, 0, 0, 0, 0, 0, 0, 'v', 'w', 3, 0, 0, 0, 0, 0, 1, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, b []byte) {
		v := version{tables: map[uint64]tableRef{}}
		_ = v.apply(b)
		_, _ = decodeCounts(b)
		_, _, _ = decodeTopic(b)
		_, _ = decodeDefinition(b)
		_, _ = decodeMetadata(b)
		_, _, _ = decodeFormat(b)
		_ = readBatch(b, func(uint64, byte, []byte, []byte) error { return nil })
		_ = parseBlock(b, func(_, _ []byte) error { return nil }, func(err error) error { return err })
		_, _ = readJournal("x", b, func([]byte, int64) error { return nil })
		_ = rawBlockLen(&tableFile{size: int64(len(b))}, b, 0)
	})
}
