package shred

import (
	"strings"
	"testing"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
)

// sample encodes a message of a type with lists of n elements and byte sequences of size bytes.
type sample struct {
	d       *msg.Description
	e       *cdr.Encoder
	n, size int
}

func (s *sample) message(name string) {
	m := &s.d.Type
	for i := range s.d.Referenced {
		if s.d.Referenced[i].Name == name {
			m = &s.d.Referenced[i]
		}
	}
	for _, f := range m.WireFields() {
		n := 1
		switch f.Type.Array {
		case msg.Fixed:
			n = int(f.Type.Capacity)
		case msg.Bounded, msg.Unbounded:
			if n = s.n; f.Type.Base == msg.UInt8 {
				n = s.size
			}
			s.e.SeqLen(n)
		}
		for range n {
			switch f.Type.Base {
			case msg.Nested:
				s.message(f.Type.Name)
			case msg.Bool, msg.Byte, msg.Int8, msg.UInt8:
				s.e.Uint8(1)
			case msg.Int16, msg.UInt16:
				s.e.Uint16(77)
			case msg.Int32, msg.UInt32, msg.Float:
				s.e.Uint32(1234567)
			case msg.Int64, msg.UInt64, msg.Double:
				s.e.Uint64(0x3ff0123456789abc)
			default:
				s.e.Str(strings.Repeat("n", 5+len(f.Name)))
			}
		}
	}
}

var benchTypes = []struct {
	typ     string
	n, size int
}{{"sensor_msgs/msg/Imu", 0, 0}, {"geometry_msgs/msg/TransformStamped", 0, 0}, {"tf2_msgs/msg/TFMessage", 5, 0}, {"sensor_msgs/msg/JointState", 12, 0},
	{"diagnostic_msgs/msg/DiagnosticArray", 4, 0}, {"tsbs_msgs/msg/Cpu", 0, 0}, {"sensor_msgs/msg/PointCloud2", 5, 40000}, {"sensor_msgs/msg/Image", 0, 76800}}

const cpuText = "builtin_interfaces/Time time\nstring hostname\nstring region\nstring datacenter\nstring rack\nstring os\nstring arch\nstring team\n" +
	"string service\nstring service_version\nstring service_environment\nint64 usage_user\nint64 usage_system\nint64 usage_idle\nint64 usage_nice\n" +
	"int64 usage_iowait\nint64 usage_irq\nint64 usage_softirq\nint64 usage_steal\nint64 usage_guest\nint64 usage_guest_nice\n"

func benchProgram(tb testing.TB, typ string, n, size int) (*Program, []byte) {
	var d msg.Description
	var err error
	if typ == "tsbs_msgs/msg/Cpu" {
		d, err = msg.DescribeText(typ, "ros2msg", cpuText)
	} else {
		d, err = msg.NewFinder(msg.Options{}).Describe(typ, "", "", "")
	}
	if err != nil {
		tb.Fatal(err)
	}
	p, err := Compile(&d)
	if err != nil {
		tb.Fatal(err)
	}
	s := sample{d: &d, e: cdr.NewEncoder(nil, cdr.CDRLE), n: n, size: size}
	s.message(d.Type.Name)
	return p, s.e.Bytes()
}

func BenchmarkAppend(b *testing.B) {
	for _, c := range benchTypes {
		b.Run(c.typ, func(b *testing.B) {
			p, payload := benchProgram(b, c.typ, c.n, c.size)
			batch := p.NewBatch()
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			for b.Loop() {
				if batch.Size() > 8<<20 {
					batch.Reset()
				}
				if err := p.Append(batch, payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAssemble(b *testing.B) {
	for _, c := range benchTypes {
		b.Run(c.typ, func(b *testing.B) {
			p, payload := benchProgram(b, c.typ, c.n, c.size)
			batch := p.NewBatch()
			for batch.Size() < 8<<20 {
				if err := p.Append(batch, payload); err != nil {
					b.Fatal(err)
				}
			}
			cursor := p.NewCursor()
			b.SetBytes(int64(len(payload)))
			b.ReportAllocs()
			dst := make([]byte, 0, len(payload))
			for b.Loop() {
				if cursor.Row() == batch.Rows() {
					cursor.Rewind()
				}
				if _, err := p.Assemble(dst, batch, cursor); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestNoAllocation: with grown columns neither direction allocates.
func TestNoAllocation(t *testing.T) {
	for _, c := range benchTypes {
		p, payload := benchProgram(t, c.typ, c.n, c.size)
		for _, form := range []Form{0, FormBigEndian | FormXCDR2} {
			payload := recode(t, p, payload, form)
			b, cursor := p.NewBatch(), p.NewCursor()
			for range 300 {
				if err := p.Append(b, payload); err != nil {
					t.Fatal(err)
				}
			}
			b.Reset()
			if n := testing.AllocsPerRun(100, func() {
				if err := p.Append(b, payload); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s: Append allocates %v times", c.typ, n)
			}
			dst := make([]byte, 0, len(payload))
			if n := testing.AllocsPerRun(100, func() {
				if _, err := p.Assemble(dst, b, cursor); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s: Assemble allocates %v times", c.typ, n)
			}
		}
	}
}
