package shred

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
)

var bases = []msg.Base{msg.Bool, msg.Byte, msg.Char, msg.Int8, msg.UInt8, msg.Int16, msg.UInt16, msg.Int32, msg.UInt32, msg.Int64,
	msg.UInt64, msg.Float, msg.Double, msg.String, msg.WString, msg.BoundedString, msg.Nested, msg.Nested}

// randomType makes a description of a few structs, each of which refers to later ones only.
func randomType(r *rand.Rand) *msg.Description {
	d := &msg.Description{}
	all := make([]msg.Message, 1+r.IntN(5))
	for i := range all {
		m := &all[i]
		m.Name = fmt.Sprintf("p/msg/T%d", i)
		for j := range r.IntN(7) {
			f := msg.Field{Name: fmt.Sprintf("f%d", j)}
			f.Type.Base = bases[r.IntN(len(bases))]
			if f.Type.Base == msg.Nested {
				switch k := i + 1 + r.IntN(3); {
				case k < len(all):
					f.Type.Name = fmt.Sprintf("p/msg/T%d", k)
				case r.IntN(2) == 0:
					f.Type.Name = "builtin_interfaces/msg/Time"
				default:
					f.Type.Name = "builtin_interfaces/msg/Duration"
				}
			}
			if f.Type.Array = msg.Array(max(0, r.IntN(7)-3)); f.Type.Array == msg.Fixed {
				f.Type.Capacity = 1 + r.Uint64N(4)
			}
			m.Fields = append(m.Fields, f)
		}
	}
	d.Type, d.Referenced = all[0], all[1:]
	for _, name := range []string{"Time", "Duration"} {
		d.Referenced = append(d.Referenced, msg.Message{Name: "builtin_interfaces/msg/" + name, Fields: []msg.Field{
			{Name: "sec", Type: msg.Type{Base: msg.Int32}}, {Name: "nanosec", Type: msg.Type{Base: msg.UInt32}}}})
	}
	return d
}

// generator encodes random values with the encoder of package cdr.
type generator struct {
	r     *rand.Rand
	d     *msg.Description
	e     *cdr.Encoder
	xcdr2 bool
}

func randomPayload(r *rand.Rand, d *msg.Description, kind cdr.Kind) []byte {
	g := generator{r: r, d: d, e: cdr.NewEncoder(nil, kind), xcdr2: kind.Version() == 2}
	g.message(d.Type.Name)
	if r.IntN(3) == 0 {
		g.e.Pad()
	}
	return g.e.Bytes()
}

func (g *generator) message(name string) {
	if name == "builtin_interfaces/msg/Time" || name == "builtin_interfaces/msg/Duration" {
		g.e.Int32(int32(g.r.Uint32()))
		g.e.Uint32(g.r.Uint32N(1e9))
		return
	}
	m := &g.d.Type
	for i := range g.d.Referenced {
		if g.d.Referenced[i].Name == name {
			m = &g.d.Referenced[i]
		}
	}
	for _, f := range m.WireFields() {
		g.field(f.Type)
	}
}

func (g *generator) field(t msg.Type) {
	start := -1
	primitive := t.Base != msg.Nested && t.Base != msg.String && t.Base != msg.WString && t.Base != msg.BoundedString
	if g.xcdr2 && t.Array != msg.Single && !primitive {
		g.e.Uint32(0)
		start = len(g.e.Bytes())
	}
	n := 1
	if t.Array == msg.Fixed {
		n = int(t.Capacity)
	} else if t.Array != msg.Single {
		n = max(0, g.r.IntN(6)-1)
		g.e.SeqLen(n)
	}
	for range n {
		g.element(t)
	}
	if start >= 0 { // the length in bytes of the collection
		b := g.e.Bytes()
		var size cdr.Encoder
		kind := cdr.Kind(b[1])
		size.ResetBody(nil, kind)
		size.Uint32(uint32(len(b) - start))
		copy(b[start-4:], size.Bytes())
	}
}

func (g *generator) element(t msg.Type) {
	r := g.r
	switch t.Base {
	case msg.Nested:
		g.message(t.Name)
	case msg.Bool:
		g.e.Bool(r.IntN(2) == 0)
	case msg.Byte, msg.Char, msg.Int8, msg.UInt8:
		g.e.Uint8(uint8(r.Uint32()))
	case msg.Int16, msg.UInt16:
		g.e.Uint16(uint16(r.Uint32()))
	case msg.Int32, msg.UInt32, msg.Float:
		g.e.Uint32(r.Uint32())
	case msg.Int64, msg.UInt64, msg.Double:
		g.e.Uint64(r.Uint64())
	case msg.WString:
		g.e.WStr(randomText(r))
	default:
		g.e.Str(randomText(r))
	}
}

func randomText(r *rand.Rand) string {
	var b []byte
	for range max(0, r.IntN(12)-2) {
		b = utf8.AppendRune(b, []rune{'a', 0, 'é', '€', '𝄞', '\uffff', '\ufffd'}[r.IntN(7)])
	}
	return string(b)
}

// TestRandom: of random types, every payload of an independent encoder comes back, in every encoding; one with a byte
// changed, cut or added comes back too or is refused and leaves the batch as it was.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	taken, refused := 0, 0
	for round := range 400 {
		d := randomType(r)
		p, err := Compile(d)
		if err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
		b := p.NewBatch()
		var want [][]byte
		add := func(payload []byte, must bool) {
			reason, err := p.AppendLoose(p.NewBatch(), payload)
			switch strict := p.Append(b, payload); {
			case strict == nil:
				want = append(want, payload)
				taken++
				if err != nil || reason != Canonical {
					t.Fatalf("seed %d round %d: taken, loosely %v, %v", seed, round, reason, err)
				}
			case must:
				t.Fatalf("seed %d round %d: %v\n%x", seed, round, strict, payload)
			default:
				refused++
				var not *NotCanonical
				if !errors.As(strict, &not) || not.Offset < 0 || not.Offset > len(payload) || not.Reason == Structure || not.Reason == Canonical {
					t.Fatalf("seed %d round %d: %v", seed, round, strict)
				}
				if (err != nil) != (not.Reason > Structure) {
					t.Fatalf("seed %d round %d: %v, loosely %v", seed, round, strict, err)
				}
			}
		}
		for range 12 {
			payload := randomPayload(r, d, []cdr.Kind{cdr.CDRLE, cdr.CDRBE, cdr.CDR2LE, cdr.CDR2BE}[r.IntN(4)])
			add(payload, true)
			for range 6 {
				bad := bytes.Clone(payload)
				switch i := r.IntN(len(bad)); r.IntN(5) {
				case 0:
					bad = bad[:i]
				case 1:
					bad = append(bad, byte(r.IntN(2)))
				case 2:
					bad[i] ^= 1 << r.IntN(8)
				default:
					bad[i] = byte(r.Uint32())
				}
				add(bad, false)
			}
		}
		checkLevels(t, p, b)
		if err := p.Check(b); err != nil {
			t.Fatalf("seed %d round %d: %v", seed, round, err)
		}
		checkSelected(t, r, p, b, want)
		c, v := p.NewCursor(), p.NewCursor()
		for i := range want {
			got, err := p.Assemble(nil, b, c)
			if err != nil || !bytes.Equal(got, want[i]) {
				t.Fatalf("seed %d round %d row %d: %v\n got %x\nwant %x", seed, round, i, err, got, want[i])
			}
			if _, err := p.Value(b, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d taken, %d refused", taken, refused)
	if refused < taken/10 {
		t.Errorf("seed %d: %d taken, only %d refused", seed, taken, refused)
	}
}

// held is the memory that the columns of b have.
func held(b *Batch) int {
	n := cap(b.scratch)
	for i := range b.Cols {
		v := &b.Cols[i]
		n += cap(v.U8) + 4*cap(v.I32) + 8*cap(v.I64) + 4*cap(v.F32) + 8*cap(v.F64) + cap(v.Data) + 4*cap(v.Ends)
	}
	for _, c := range b.Counts {
		n += 4 * cap(c)
	}
	return n
}

// checkSelected: a program that stores some columns stores the same in them.
func checkSelected(t *testing.T, r *rand.Rand, p *Program, b *Batch, payloads [][]byte) {
	t.Helper()
	keep := make([]bool, len(p.cols))
	for i := range keep {
		keep[i] = r.IntN(3) == 0
	}
	none := p.Select(make([]bool, len(p.cols)))
	q := none.Select(keep) // of the whole type all the same
	some := q.NewBatch()
	for _, payload := range payloads {
		if err := q.Append(some, payload[:len(payload)/2]); err == nil && p.Append(p.NewBatch(), payload[:len(payload)/2]) != nil {
			t.Fatalf("half of a payload was taken: %x", payload)
		}
		some.Reset()
	}
	for _, payload := range payloads {
		if err := q.Append(some, payload); err != nil {
			t.Fatal(err)
		}
		rows := some.Rows()
		if q.Append(some, payload[:len(payload)-1-some.Forms[rows-1].Tail()]) == nil {
			t.Fatal("a payload cut short was taken")
		}
	}
	all, part := p.NewCursor(), q.NewCursor()
	for range some.Rows() {
		x, err := p.Value(b, all)
		if err != nil {
			t.Fatal(err)
		}
		y, err := q.Value(some, part)
		if err != nil || !within(y, x) {
			t.Fatalf("value %v, of all columns %v, %v", y, x, err)
		}
	}
	for i, kept := range keep {
		if kept && !reflect.DeepEqual(some.Cols[i], b.Cols[i]) && fmt.Sprint(some.Cols[i]) != fmt.Sprint(b.Cols[i]) {
			t.Fatalf("column %s: %v, want %v", p.cols[i].Name(), some.Cols[i], b.Cols[i])
		}
		if kept && p.cols[i].List >= 0 {
			l := p.cols[i].List
			if fmt.Sprint(some.Counts[l]) != fmt.Sprint(b.Counts[l]) || some.Elements(l) != b.Elements(l) {
				t.Fatalf("list %s: %v, want %v", p.lists[l].Name(), some.Counts[l], b.Counts[l])
			}
		}
		if !kept && some.Cols[i].Len(&p.cols[i]) != 0 {
			t.Fatalf("column %s is stored", p.cols[i].Name())
		}
	}
}

// within tells whether a value is another, or leaves out fields of it.
func within(part, all any) bool {
	switch part := part.(type) {
	case Struct:
		for _, f := range part {
			v, there := all.(Struct).Get(f.Name)
			if !there || !within(f.Value, v) {
				return false
			}
		}
		return true
	case []Struct:
		other := all.([]Struct)
		if len(part) != len(other) {
			return false
		}
		for i := range part {
			if !within(part[i], other[i]) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(part) == fmt.Sprint(all) // NaN is NaN
}

// FuzzAppend: whatever the bytes, what is taken comes back, and nothing panics.
func FuzzAppend(f *testing.F) {
	r := rand.New(rand.NewPCG(7, 7))
	var types []*Program
	for i := range 24 {
		d := randomType(r)
		p, err := Compile(d)
		if err != nil {
			f.Fatal(err)
		}
		types = append(types, p)
		for _, kind := range []cdr.Kind{cdr.CDRLE, cdr.CDRBE, cdr.CDR2LE, cdr.CDR2BE} {
			f.Add(uint8(i), randomPayload(r, d, kind))
		}
	}
	f.Add(uint8(0), []byte{})
	f.Add(uint8(3), []byte{0, 1, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, i uint8, payload []byte) {
		p := types[int(i)%len(types)]
		b := p.NewBatch()
		err := p.Append(b, payload)
		if err != nil && b.Rows() != 0 {
			t.Fatal("refused, but there is a row")
		}
		if n := held(b); n > 64*len(payload)+512*(len(p.cols)+len(p.lists)) {
			t.Fatalf("%d bytes of memory for a payload of %d", n, len(payload))
		}
		if err == nil {
			got, err := p.Assemble(nil, b, p.NewCursor())
			if err != nil || !bytes.Equal(got, payload) {
				t.Fatalf("%v\n got %x\nwant %x", err, got, payload)
			}
		}
		if _, err := p.AppendLoose(b, payload); err != nil {
			return
		}
		if err := p.Check(b); err != nil {
			t.Fatal(err)
		}
		c := p.NewCursor()
		for range b.Rows() {
			got, err := p.Assemble(nil, b, c)
			if err == nil {
				err = p.Append(p.NewBatch(), got)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
