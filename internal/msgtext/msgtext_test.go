package msgtext

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/msg/shred"
)

// TestPyYAML compares scalars with what PyYAML 6.0.3 writes of them (testdata/pyyaml.json), in block and flow style. A
// string with line breaks is in double quotes here, which PyYAML folds.
func TestPyYAML(t *testing.T) {
	data, err := os.ReadFile("testdata/pyyaml.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Strings [][3]string
		Floats  [][2]string
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Strings) < 80 || len(golden.Floats) < 15 {
		t.Fatal("golden values are missing")
	}
	for _, g := range golden.Strings {
		if strings.ContainsAny(g[0], "\n\u0085\u2028") {
			continue
		}
		if got := string(appendString(nil, g[0], false)); got != g[1] {
			t.Errorf("%q in a block: %s, want %s", g[0], got, g[1])
		}
		if got := string(appendString(nil, g[0], true)); got != g[2] {
			t.Errorf("%q in flow: %s, want %s", g[0], got, g[2])
		}
	}
	for _, g := range golden.Floats {
		f, err := strconv.ParseFloat(g[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := Plain(f); got != g[0] {
			t.Errorf("repr %s, want %s", got, g[0])
		}
		if got := string(appendYAMLFloat(nil, f)); got != g[1] {
			t.Errorf("%s: %s, want %s", g[0], got, g[1])
		}
	}
}

const text = "std_msgs/Header header\nbyte level\nbool ok\nfloat64[3] p\nfloat32 f\nuint8[] data\nstring[] names\nEmpty e\nPoint[] points\nint8[<=2] i\n" +
	"================================================================================\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n" +
	"================================================================================\nMSG: t/Empty\n" +
	"================================================================================\nMSG: t/Point\nint64 x\nstring s\nint16[] l\n"

// message is a value of the type of text.
func message(t *testing.T) shred.Struct {
	d, err := msg.DescribeText("t/msg/T", "ros2msg", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := shred.CompileWith(&d, shred.Options{SplitTimes: true})
	if err != nil {
		t.Fatal(err)
	}
	e := cdr.NewEncoder(nil, cdr.CDRBE)
	e.Int32(12)
	e.Uint32(34)
	e.Str("map, \"b\"")
	e.Uint8(2)
	e.Bool(true)
	e.Float64(1)
	e.Float64(-0.5)
	e.Float64(1e-7)
	e.Float32(0.1)
	e.ByteSeq([]byte{1, 2, 255})
	e.SeqLen(2)
	e.Str("")
	e.Str("long enough")
	e.Uint8(0)
	e.SeqLen(2)
	for i := range 2 {
		e.Int64(int64(i))
		e.Str("s")
		e.SeqLen(i)
		for range i {
			e.Int16(-7)
		}
	}
	e.SeqLen(0)
	s, reason, err := p.Decode(e.Bytes())
	if err != nil || reason != shred.Canonical {
		t.Fatal(err, reason)
	}
	return s
}

func TestMessage(t *testing.T) {
	s := message(t)
	root := msg.Type{Base: msg.Nested}
	cases := []struct {
		name string
		o    Options
		want string
	}{
		{"all", Options{}, `header:
  stamp:
    sec: 12
    nanosec: 34
  frame_id: map, "b"
level: "\x02"
ok: true
p:
- 1.0
- -0.5
- 1.0e-07
f: 0.10000000149011612
data:
- 1
- 2
- 255
names:
- ''
- long enough
e: {}
points:
- x: 0
  s: s
  l: []
- x: 1
  s: s
  l:
  - -7
i: []
`},
		{"shortened", Options{Truncate: 2, NoStr: true}, `header:
  stamp:
    sec: 12
    nanosec: 34
  frame_id: '<string length: <8>>'
level: "\x02"
ok: true
p:
- 1.0
- -0.5
- '...'
f: 0.10000000149011612
data:
- 1
- 2
- '...'
names:
- '<string length: <0>>'
- '<string length: <11>>'
e: {}
points:
- x: 0
  s: '<string length: <1>>'
  l: []
- x: 1
  s: '<string length: <1>>'
  l:
  - -7
i: []
`},
		{"no arrays", Options{NoArr: true, Truncate: 4}, `header:
  stamp:
    sec: 12
    nanosec: 34
  frame_id: map,...
level: "\x02"
ok: true
p: '<array type: double[3]>'
f: 0.10000000149011612
data: '<sequence type: uint8, length: 3>'
names: '<sequence type: string, length: 2>'
e: {}
points: '<sequence type: t/msg/Point, length: 2>'
i: '<sequence type: int8, length: 0>'
`},
		{"flow", Options{Flow: true}, `{header: {stamp: {sec: 12, nanosec: 34}, frame_id: 'map, "b"'}, level: "\x02", ok: true, p: [1.0, -0.5, 1.0e-07], ` +
			`f: 0.10000000149011612, data: [1, 2, 255], names: ['', long enough], e: {}, points: [{x: 0, s: s, l: []}, {x: 1, s: s, l: [-7]}], i: []}` + "\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := string(c.o.AppendYAML(nil, s, root)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	want := `12,34,"map, ""b""",` + "\x02" + `,True,1.0,-0.5,1e-07,0.10000000149011612,1,2,255,,long enough,0,s,,1,s,-7,`
	if got := string(Options{}.AppendCSV(nil, s, root)); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestField(t *testing.T) {
	s := message(t)
	for path, want := range map[string]string{
		"header.stamp.sec": "12\n",
		"header.stamp":     "sec: 12\nnanosec: 34\n",
		"p":                "- 1.0\n- -0.5\n- 1.0e-07\n",
		"p[-1]":            "1.0e-07\n",
		"points[1].l[0]":   "-7\n",
		"points[0]":        "x: 0\ns: s\nl: []\n",
		"level":            "\"\\x02\"\n",
		"e":                "{}\n",
	} {
		v, typ, err := Field(s, path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := string(Options{}.AppendYAML(nil, v, typ)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{
		"nothing": "there is: header, level", "header.x": "there is: stamp, frame_id", "ok.x": "nothing below", "p[3]": "length is 3", "p[-4]": "length is 3",
		"p[x]": "want an index", "p[0": "want an index", "p[0]x": "want an index", "ok[0]": "length is 0", "": "no \"\"", "e." + dummy: "no ",
	} {
		if _, _, err := Field(s, path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
