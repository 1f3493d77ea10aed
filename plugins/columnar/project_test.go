package columnar

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
)

const projectText = "int32 a\nstring s\nInner[] list\nInner[2] two\nfloat64[3] fixed\nuint8[4] raw\nInner one\nuint8[] data\n" +
	"================================================================================\nMSG: t/Inner\nuint16 x\nstring[] names\n"

func projectPayload(n int) []byte {
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	inner := func(i int) {
		e.Uint16(uint16(i))
		e.SeqLen(i % 3)
		for j := range i % 3 {
			e.Str(fmt.Sprint("name ", i, j))
		}
	}
	e.Int32(int32(n))
	e.Str(fmt.Sprint("text ", n))
	e.SeqLen(n % 4)
	for i := range n % 4 {
		inner(n + i)
	}
	inner(n)
	inner(n + 1)
	for i := range 3 {
		e.Float64(float64(n * i))
	}
	e.Raw([]byte{1, 2, 3, byte(n)})
	inner(n + 2)
	e.ByteSeq(make([]byte, n%7))
	if n%5 == 0 {
		e.Raw([]byte{9}) // what is behind the value makes a patch
	}
	return e.Bytes()
}

// TestFields: with a hint which fields matter, these come back as they are, and everything else of the messages.
func TestFields(t *testing.T) {
	topic := plugin.Topic{Name: "/p", Type: "t/msg/P", SerializationFormat: "cdr", Definition: plugin.Definition{Encoding: "ros2msg", Text: projectText}}
	dir := filepath.Join(t.TempDir(), "x")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	id, err := w.AddTopic(topic)
	if err != nil {
		t.Fatal(err)
	}
	var batch []plugin.Message
	for i := range 5000 {
		batch = append(batch, plugin.Message{Topic: id, RecvTime: int64(1000 + i), SendTime: int64(i), Data: projectPayload(i)})
	}
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	d, err := msg.DescribeText(topic.Type, "ros2msg", projectText)
	if err != nil {
		t.Fatal(err)
	}
	p, err := shred.Compile(&d)
	if err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, dir)
	whole, err := readAll(t, r, plugin.Query{})
	if err != nil || len(whole) != len(batch) {
		t.Fatal(len(whole), err)
	}
	for _, fields := range [][]string{{}, {"a"}, {"list"}, {"list.names"}, {"two.x", "s"}, {"fixed"}, {"raw", "data"}, {"one"}, {"on", "lis"}, {"a", "s", "list", "two", "fixed", "raw", "one"}} {
		got, err := readAll(t, r, plugin.Query{Fields: fields})
		if err != nil || len(got) != len(whole) {
			t.Fatal(fields, len(got), err)
		}
		if size(got) >= size(whole) {
			t.Errorf("%v: %d bytes of %d", fields, size(got), size(whole))
		}
		dec := decoder{fields: fields}
		q := p.Select(dec.wanted(p))
		for i := range got {
			if got[i].RecvTime != whole[i].RecvTime || got[i].SendTime != whole[i].SendTime || got[i].Order != whole[i].Order {
				t.Fatalf("%v: message %d is %v", fields, i, got[i])
			}
			have, _, err := q.Decode(got[i].Data)
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := q.Decode(whole[i].Data)
			if err != nil || fmt.Sprint(have) != fmt.Sprint(want) {
				t.Fatalf("%v: message %d has %v, want %v, %v", fields, i, have, want, err)
			}
		}
	}
}

func size(ms []plugin.Message) (n int) {
	for _, m := range ms {
		n += len(m.Data)
	}
	return n
}

// TestFillRest: a definition in a damaged file may claim arrays of any size.
func TestFillRest(t *testing.T) {
	for _, text := range []string{"uint8[4294967295] a\n", "float64[4294967295] a\n", "B[4294967295] b\n================================================================================\nMSG: t/B\nuint8[4294967295] a\nfloat32[4294967295] c\n"} {
		d, err := msg.DescribeText("t/msg/T", "ros2msg", text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := shred.Compile(&d)
		if err != nil {
			t.Fatal(err)
		}
		if err := fillRest(p, p.NewBatch(), 1000, make([]bool, len(p.Columns())), make([]bool, len(p.Lists()))); !errors.Is(err, errTooMany) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
