package transcode

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/gobag/gobag/msg"
)

const seq = 7 // of every header that random makes

// random appends a random payload of a type of ROS 1.
func random(rng *rand.Rand, d *msg.ROS1Definition, name string, b []byte) []byte {
	m := d.Messages[name]
	for _, f := range m.Fields {
		n := 1
		switch f.Array {
		case msg.Fixed:
			n = int(f.Capacity)
		case msg.Unbounded:
			n = rng.IntN(5)
			b = le.AppendUint32(b, uint32(n))
		}
		for range n {
			switch {
			case f.Nested:
				b = random(rng, d, f.Type, b)
			case name == headerROS1 && f.Name == "seq":
				b = le.AppendUint32(b, seq)
			case name == logROS1 && f.Name == "level":
				b = append(b, 1<<rng.IntN(5))
			case f.Type == "string":
				s := "abc\xc3\xa4 0123456789"[:rng.IntN(16)]
				b = append(le.AppendUint32(b, uint32(len(s))), s...)
			case f.Type == "bool":
				b = append(b, byte(rng.IntN(2)))
			case f.Type == "time":
				b = le.AppendUint32(b, rng.Uint32N(1<<31))
				b = le.AppendUint32(b, rng.Uint32N(1e9))
			case f.Type == "duration":
				b = le.AppendUint32(b, rng.Uint32())
				b = le.AppendUint32(b, rng.Uint32N(1e9))
			case f.Type == "float32":
				b = le.AppendUint32(b, math.Float32bits(rng.Float32()*1000))
			case f.Type == "float64":
				b = le.AppendUint64(b, math.Float64bits(rng.NormFloat64()))
			default:
				size, _ := msg.ROS1Size(f.Type)
				for range size {
					b = append(b, byte(rng.Uint32()))
				}
			}
		}
	}
	return b
}

// types are those of the built-in table of ROS 1.
func types(t *testing.T) (out []string) {
	t.Helper()
	b, err := os.ReadFile("../../msg/testdata/ros1-md5.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		name, _, _ := strings.Cut(l, "\t")
		out = append(out, name)
	}
	return out
}

// lossy are the types whose way back does not give the same: what ROS 2 does not have is gone.
var lossy = map[string]string{logROS1: "frame_id and topics"}

// Random messages of every common type survive the way to ROS 2 and back.
func TestRoundTrip(t *testing.T) {
	c := New(msg.Options{})
	rng := rand.New(rand.NewPCG(1, 1))
	done := 0
	for _, name := range types(t) {
		d, err := msg.BuiltinROS1(name)
		if err != nil {
			t.Fatal(err)
		}
		there, err := c.ToROS2(name, d.Text())
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if !strings.HasPrefix(there.Hash, msg.HashPrefix) || there.Type != NameROS2(name) {
			t.Errorf("%s became %s, %s", name, there.Type, there.Hash)
		}
		back, err := c.ToROS1(there.Type, there.Hash, there.Encoding, there.Definition)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if name != "tf/tfMessage" && name != "std_msgs/Header" && (back.Type != name || back.Hash != d.MD5()) {
			t.Errorf("%s came back as %s, %s", name, back.Type, back.Hash)
		}
		for i := range 50 {
			one := random(rng, d, name, nil)
			two, err := there.Append(nil, one, 0)
			if err != nil && strings.Contains(err.Error(), "ROS 2 takes 3 at most") { // SolidPrimitive.dimensions
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			again, err := back.Append(nil, two, seq)
			if err != nil {
				t.Fatalf("%s back: %v", name, err)
			}
			if lossy[name] == "" && !bytes.Equal(one, again) {
				t.Fatalf("%s: %x became %x", name, one, again)
			}
			for n := range one { // what is too short is refused
				if i > 0 || len(one) > 5000 {
					break
				}
				if _, err := there.Append(nil, one[:n], 0); err == nil {
					t.Fatalf("%s: %d of %d bytes were accepted", name, n, len(one))
				}
			}
			if _, err := there.Append(nil, append(one, 0), 0); err == nil {
				t.Fatalf("%s: a byte too many was accepted", name)
			}
		}
		done++
	}
	if done < 130 {
		t.Errorf("only %d types", done)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Byte for byte, by hand.
func TestBytes(t *testing.T) {
	c := New(msg.Options{})
	for _, x := range []struct{ name, text, one, two string }{
		{"std_msgs/String", "string data\n", "03000000 616263", "00010000 04000000 61626300"},
		{"std_msgs/Empty", "\n", "", "00010000 00"},
		{"std_msgs/Time", "time data\n", "01000000 02000000", "00010000 01000000 02000000"},
		{"std_msgs/Duration", "duration data\n", "ffffffff fe000000", "00010000 ffffffff fe000000"}, // -1 s and 254 ns
		{"a/Mixed", "uint8 A\nfloat64 b\nbool c\nint16 d\nuint8[3] e\nfloat64[] f\ntime[] g\n", // alignment
			"01 0000000000000840 05 0200 010203 00000000 01000000 0900000008000000",
			"00010000 01 00000000000000 0000000000000840 01 00 0200 010203 00 00000000 01000000 09000000 08000000"},
		{"a/Lists", "string[] s\nEmpty[2] e\nIn[] in\n" + strings.Repeat("=", 80) + "\nMSG: a/Empty\n\n" + strings.Repeat("=", 80) + "\nMSG: a/In\nuint8 x\nint64 y\n",
			"02000000 00000000 01000000 41 02000000 07 0100000000000000 08 0200000000000000",
			"00010000 02000000 01000000 00000000 02000000 4100 00 00 02000000 07 00000000000000 0100000000000000 08 00000000000000 0200000000000000"},
	} {
		p, err := c.ToROS2(x.name, x.text)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := p.Append([]byte{9}, unhex(t, x.one), 0)
		if err != nil || !bytes.Equal(got, append([]byte{9}, unhex(t, x.two)...)) {
			t.Errorf("%s: %x, %v\nwant      %s", x.name, got, err, strings.ReplaceAll(x.two, " ", ""))
		}
	}
}

// The types whose fields differ between ROS 1 and ROS 2.
func TestDifferingTypes(t *testing.T) {
	c := New(msg.Options{})
	rng := rand.New(rand.NewPCG(3, 3))
	for name, grown := range map[string]string{"sensor_msgs/Range": "variance", "visualization_msgs/Marker": "texture", "shape_msgs/SolidPrimitive": "polygon"} {
		d, err := msg.BuiltinROS1(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.ToROS2(name, d.Text())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(p.Definition, grown) {
			t.Errorf("the definition of %s has no %s", p.Type, grown)
		}
		two, err := p.Append(nil, random(rng, d, name, nil), 0)
		if err != nil {
			t.Fatal(err)
		}
		back, err := c.ToROS1(p.Type, p.Hash, p.Encoding, p.Definition)
		if err != nil {
			t.Fatal(err)
		}
		two[len(two)-1] ^= 1 // the last field is one of those that ROS 2 has added, but for Marker
		if _, err := back.Append(nil, two, 0); (err == nil) != (name == "visualization_msgs/Marker") {
			t.Errorf("%s with a value that ROS 1 has no place for: %v", name, err)
		}
	}
}

func TestLog(t *testing.T) {
	c := New(msg.Options{})
	p, err := c.ToROS2(logROS1, "")
	if err != nil {
		t.Fatal(err)
	}
	s := func(s string) string { return hex.EncodeToString(append(le.AppendUint32(nil, uint32(len(s))), s...)) }
	one := unhex(t, "01000000 02000000 03000000"+s("frame")+"04"+s("/n")+s("hello")+s("f.c")+s("main")+"09000000 01000000"+s("/rosout"))
	two, err := p.Append(nil, one, 0)
	if err != nil || two[12] != 30 {
		t.Fatalf("%x, %v", two, err)
	}
	back, err := c.ToROS1(logROS2, "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.Append(nil, two, 1)
	want := unhex(t, "01000000 02000000 03000000"+s("")+"04"+s("/n")+s("hello")+s("f.c")+s("main")+"09000000 00000000")
	if err != nil || !bytes.Equal(again, want) {
		t.Errorf("%x, %v\nwant %x", again, err, want)
	}
	one[4+8+4+5] = 3
	if _, err := p.Append(nil, one, 0); err == nil || !strings.Contains(err.Error(), "no level") {
		t.Errorf("level 3: %v", err)
	}
	two[12] = 31
	if _, err := back.Append(nil, two, 0); err == nil {
		t.Error("level 31 was accepted")
	}
}

// What cannot be turned is refused with a reason: types, and values.
func TestRefused(t *testing.T) {
	c := New(msg.Options{})
	for name, x := range map[string][2]string{
		"sensor_msgs/Imu":          {"uint8 other\n", "has no field other"},
		"a/Twice":                  {"uint8 x\nuint8 X\n", "lower case"},
		"std_msgs/String":          {"int32 data\n", "int32 in ROS 1 and string in ROS 2"},
		"std_msgs/ColorRGBA":       {"float32 g\nfloat32 r\nfloat32 b\nfloat32 a\n", "order"},
		"geometry_msgs/Quaternion": {"float64[] x\nfloat64 y\nfloat64 z\nfloat64 w\n", "array of another kind"},
		"a/Gone":                   {"Missing x\n", "not defined"},
	} {
		if _, err := c.ToROS2(name, x[0]); err == nil || !strings.Contains(err.Error(), x[1]) {
			t.Errorf("%s: %v, want %q", name, err, x[1])
		}
	}
	for _, x := range [][3]string{
		{"std_msgs/String", "03000000 610062", "NUL"},
		{"std_msgs/String", "ffffffff", "ends before"},
		{"std_msgs/Time", "00000080 00000000", "more than ROS 2's times"},
		{"std_msgs/Duration", "00000000 ffffffff", "a duration with -1 ns"},
		{"std_msgs/Header", "01000000 ffffffff 00000000 00000000", "field stamp"},
		{"geometry_msgs/Polygon", "ffffffff 00", "more than the payload has room"},
	} {
		p, err := c.ToROS2(x[0], "")
		if err != nil {
			t.Fatal(err)
		}
		if out, err := p.Append([]byte{1}, unhex(t, x[1]), 0); err == nil || !strings.Contains(err.Error(), x[2]) || len(out) != 1 {
			t.Errorf("%v: %v", x, err)
		}
	}
	for name, want := range map[string]string{"std_srvs/srv/Empty": "no message type", "std_msgs/msg/Nothing": "no std_msgs/msg/Nothing.msg",
		"test_msgs/msg/WStrings": "wide strings"} {
		if _, err := c.ToROS1(name, "", "", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for _, x := range [][3]string{
		{"std_msgs/msg/String", "00010000 04000000 61006200", "NUL in it"},
		{"std_msgs/msg/String", "00010000 04000000 61626364", "does not end with NUL"},
		{"builtin_interfaces/msg/Time", "00010000 ffffffff 00000000", "before 1970"},
		{"builtin_interfaces/msg/Duration", "00010000 ffffffff ffffffff", "a duration with 4294967295 ns"},
		{"std_msgs/msg/Bool", "00010000 02", "bool with the value 2"},
		{"std_msgs/msg/Int32", "00020000 01000000", "not plain CDR"},
		{"std_msgs/msg/Int32", "00010000 01000000 00000000", "left behind"},
	} {
		p, err := c.ToROS1(x[0], "", "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Append(nil, unhex(t, x[1]), 0); err == nil || !strings.Contains(err.Error(), x[2]) {
			t.Errorf("%v: %v", x, err)
		}
	}
}

// The other encodings that ROS 2's payloads can have give the same.
func TestEncodings(t *testing.T) {
	c := New(msg.Options{})
	p, err := c.ToROS1("geometry_msgs/msg/PointStamped", "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	want := unhex(t, "05000000 01000000 02000000 01000000 61 000000000000f03f 0000000000000040 0000000000000840")
	for _, two := range []string{
		"00010000 01000000 02000000 02000000 6100 0000 000000000000f03f 0000000000000040 0000000000000840",
		"00000000 00000001 00000002 00000002 6100 0000 3ff0000000000000 4000000000000000 4008000000000000",
		"00070000 01000000 02000000 02000000 6100 0000 000000000000f03f 0000000000000040 0000000000000840",
	} {
		got, err := p.Append(nil, unhex(t, two), 5)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, %v", two, got, err)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	c := New(msg.Options{})
	d, _ := msg.BuiltinROS1("sensor_msgs/Imu")
	p, err := c.ToROS2("sensor_msgs/Imu", "")
	if err != nil {
		t.Fatal(err)
	}
	back, err := c.ToROS1(p.Type, "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	one := random(rand.New(rand.NewPCG(1, 1)), d, d.Name, nil)
	buf, buf2 := make([]byte, 0, 4096), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		two, err := p.Append(buf, one, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := back.Append(buf2, two, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever the bytes are, nothing panics, and what is accepted survives another round.
func FuzzAppend(f *testing.F) {
	c := New(msg.Options{})
	names := []string{"sensor_msgs/Imu", "visualization_msgs/MarkerArray", "rosgraph_msgs/Log", "diagnostic_msgs/DiagnosticArray", "std_msgs/Empty"}
	rng := rand.New(rand.NewPCG(5, 5))
	for i, n := range names {
		d, err := msg.BuiltinROS1(n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(i, random(rng, d, n, nil))
	}
	f.Fuzz(func(t *testing.T, which int, payload []byte) {
		name := names[uint(which)%uint(len(names))]
		p, err := c.ToROS2(name, "")
		if err != nil {
			t.Fatal(err)
		}
		back, err := c.ToROS1(p.Type, p.Hash, p.Encoding, p.Definition)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = back.Append(nil, payload, 0) // any bytes
		two, err := p.Append(nil, payload, 0)
		if err != nil {
			return
		}
		one, err := back.Append(nil, two, 3)
		if err != nil {
			t.Fatalf("back: %v", err)
		}
		again, err := p.Append(nil, one, 0)
		if err != nil || !bytes.Equal(again, two) {
			t.Fatalf("%x, then %x, %v", two, again, err)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	c := New(msg.Options{})
	for _, name := range []string{"sensor_msgs/Imu", "sensor_msgs/LaserScan", "sensor_msgs/Image"} {
		d, _ := msg.BuiltinROS1(name)
		p, err := c.ToROS2(name, "")
		if err != nil {
			b.Fatal(err)
		}
		one := random(rand.New(rand.NewPCG(1, 1)), d, name, nil)
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 0, 1<<16)
			b.SetBytes(int64(len(one)))
			for b.Loop() {
				if _, err := p.Append(buf, one, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
