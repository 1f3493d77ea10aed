package msg

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// compiled is what a node built by rosidl_generator_c serves of a file (full__description.c.em).
func compiled(text string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, c := range []byte(line) {
			switch {
			case c == '\\' || c == '\'' && strings.Contains(line, `"`):
				b.WriteString(`\` + string(rune(c)))
			case c == '\t':
				b.WriteString(`\t`)
			case c == '\r':
				b.WriteString(`\r`)
			case c < ' ' || c > '~':
				fmt.Fprintf(&b, `\x%02x`, c)
			default:
				b.WriteByte(c)
			}
		}
	}
	s := b.String()
	return s[:min(len(s), len([]rune(text)))]
}

func TestUncompiled(t *testing.T) {
	for _, plain := range []string{"", "int32 a", "int32\ta\t# tab", "# 20 °C, 5 µm\nfloat64 t", `string s "a\tb" # 'both'`, `string path "C:\\x"`, "# cr\r\nint8 a", "# \x7f\x01"} {
		text := compiled(plain + strings.Repeat("\n# padding that may be cut off", 20))
		got, ok := uncompiled(text)
		if !ok || !strings.HasPrefix(got, plain) {
			t.Errorf("%q: %q %v", plain, got, ok)
		}
	}
	for _, text := range []string{"int32\ta", "# °", `# \n`, `# \q`, `# \xzz`, `# \u00b0`, "\x00"} {
		if got, ok := uncompiled(text); ok {
			t.Errorf("%q: %q", text, got)
		}
	}
	for cut, want := range map[string]string{`a\`: "a", `a\x`: "a", `a\xc`: "a"} {
		if got, ok := uncompiled(cut); !ok || got != want {
			t.Errorf("%q: %q %v", cut, got, ok)
		}
	}
}

// robot is a package as its author wrote it.
var robot = map[string]string{
	"robot_msgs/msg/State.msg": "# Temperature in °C, torque in N·m\nuint8 IDLE=0\t# a constant\nstring NAME=\"it's\\tso\"\nstd_msgs/Header\theader\nJoint[<=4]\tjoints\n" +
		"float64[3]\tposition\nstring<=8\tlabel \"x\"\nwstring wide\nbyte[] raw\nchar c\nEmpty nothing\nuint64\tlast\n",
	"robot_msgs/msg/Joint.msg":              "int8\tid\nfloat32 angle\n",
	"robot_msgs/msg/Empty.msg":              "# nothing\n",
	"std_msgs/msg/Header.msg":               "builtin_interfaces/Time stamp\nstring frame_id\n",
	"builtin_interfaces/msg/Time.msg":       "int32 sec\nuint32 nanosec\n",
	"robot_msgs/srv/Move.srv":               "# to\nrobot_msgs/Joint[] to\tx\n---\nbool ok\t# °°°°\nstring why\n",
	"service_msgs/msg/ServiceEventInfo.msg": "uint8 event_type\nbuiltin_interfaces/Time stamp\nchar[16] client_gid\nint64 sequence_number\n",
	"robot_msgs/action/Go.action":           "int32 goal\t# °°°°\n---\nint32 result\n---\nint32 feedback\n",
	"unique_identifier_msgs/msg/UUID.msg":   "uint8[16] uuid\n",
}

func robotSource(name string) ([]byte, error) {
	if text, ok := robot[name]; ok {
		return []byte(text), nil
	}
	return nil, &missingError{}
}

// serve is what a node answers for a type: a file for each, changed, and the fields of all of them.
func serve(t *testing.T, typ string, fields bool, change func(string) string) []Served {
	t.Helper()
	d, err := Describe(typ, robotSource)
	if err != nil {
		t.Fatal(err)
	}
	var out []Served
	for _, m := range append([]Message{d.Type}, d.Referenced...) {
		s := Served{Type: m.Name, Encoding: "implicit"}
		n, _ := splitName(m.Name)
		if n.file() == n {
			s.Encoding = n.folder
			s.Text = change(robot[m.Name+n.extension()])
		}
		if fields {
			s.Fields, _ = m.Text()
		}
		out = append(out, s)
		if n.file() != n && !slices.ContainsFunc(out, func(o Served) bool { return o.Type == n.file().String() }) {
			out = append(out, Served{Type: n.file().String(), Encoding: n.folder, Text: change(robot[n.file().String()+n.extension()])})
		}
	}
	return out
}

func same(s string) string { return s }

// What a node serves has the hash of the file, whatever was made of the file on the way.
func TestDefineServed(t *testing.T) {
	for _, typ := range []string{"robot_msgs/msg/State", "robot_msgs/srv/Move_Event", "robot_msgs/action/Go_FeedbackMessage", "robot_msgs/action/Go_SendGoal_Event"} {
		want, err := Define(typ, "", robotSource)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name   string
			change func(string) string
			fields bool
			text   bool // the text is that of the files
		}{
			{"as it is", same, false, true},
			{"as it is, with fields", same, true, true},
			{"with fields only", func(string) string { return "int32 another" }, true, false},
			{"compiled", compiled, true, false},
			{"compiled, without newlines only", func(s string) string { return strings.TrimSuffix(s, "\n") }, true, false},
		} {
			got, err := DefineServed(typ, want.Hash, serve(t, typ, c.fields, c.change))
			if err != nil || got.Hash != want.Hash || got.Encoding != "ros2msg" || c.text && got.Text != want.Text {
				t.Errorf("%s, %s: %v\n%s\nwant\n%s", typ, c.name, err, got.Text, want.Text)
			}
		}
	}
}

// A compiled file that is whole is turned back, one that was cut off is made of its fields.
func TestServedTexts(t *testing.T) {
	def, err := DefineServed("robot_msgs/msg/State", "", serve(t, "robot_msgs/msg/State", true, compiled))
	if err != nil {
		t.Fatal(err)
	}
	state, rest, _ := strings.Cut(def.Text, "\n===")
	if !strings.HasPrefix(state, "# fields of the type description") || !strings.Contains(state, "std_msgs/Header header\nrobot_msgs/Joint[<=4] joints\nfloat64[3] position\nstring<=8 label\nwstring wide\nbyte[] raw\nuint8 c\nrobot_msgs/Empty nothing\nuint64 last\n") {
		t.Errorf("a file that was cut off:\n%s", state)
	}
	if !strings.Contains(rest, "MSG: robot_msgs/Joint\nint8\tid\nfloat32 angle") {
		t.Errorf("a file that is whole:\n%s", rest)
	}
	// Without a description, what is left of the file has another hash.
	want, err := Define("robot_msgs/msg/State", "", robotSource)
	if err != nil {
		t.Fatal(err)
	}
	if def, err := DefineServed("robot_msgs/msg/State", want.Hash, serve(t, "robot_msgs/msg/State", false, compiled)); err == nil {
		t.Errorf("taken: %s", def.Text)
	}
	// Text that nobody has compiled keeps its backslashes.
	raw := []Served{{Type: "a/msg/B", Encoding: "msg", Text: "string s \"C:\\\\temp\" # \\t and a\ttab\n"}}
	if def, err := DefineServed("a/msg/B", "", raw); err != nil || def.Text != raw[0].Text {
		t.Errorf("%v %q", err, def.Text)
	}
}

func TestDefineServedErrors(t *testing.T) {
	want, err := Define("robot_msgs/msg/State", "", robotSource)
	if err != nil {
		t.Fatal(err)
	}
	more := func(s string) string { return s + "int32 more\n" }
	if _, err := DefineServed("robot_msgs/msg/State", want.Hash, serve(t, "robot_msgs/msg/State", false, more)); !errors.Is(err, ErrHash) {
		t.Error(err)
	}
	for name, files := range map[string][]Served{
		"nothing":       nil,
		"no root":       serve(t, "robot_msgs/msg/Joint", true, same),
		"odd names":     {{Type: "robot_msgs/msg/State", Encoding: "../x", Text: "int32 a"}, {Type: "../../etc/passwd", Encoding: "msg", Text: "x"}, {Type: "", Encoding: "msg"}},
		"dynamic":       {{Type: "robot_msgs/msg/State", Encoding: "dynamic"}},
		"broken fields": {{Type: "robot_msgs/msg/State", Encoding: "implicit", Fields: "not a message"}},
		"huge":          {{Type: "robot_msgs/msg/State", Encoding: "msg", Text: "#" + strings.Repeat("x", maxFile)}},
		"wrong folder":  {{Type: "robot_msgs/msg/State", Encoding: "srv", Text: "int32 a"}},
	} {
		if def, err := DefineServed("robot_msgs/msg/State", want.Hash, files); err == nil {
			t.Errorf("%s: %q", name, def.Text)
		}
	}
}

func TestMessageText(t *testing.T) {
	for _, f := range []Field{{Name: "a", Type: Type{Base: Char}}, {Name: "a", Type: Type{Base: LongDouble}}, {Name: "a", Type: Type{Base: WChar}},
		{Name: "a", Type: Type{Base: Nested, Name: "p/srv/S_Request"}}, {Name: "a", Type: Type{Base: Nested, Name: "bad name"}}} {
		m := Message{Name: "a/msg/B", Fields: []Field{f}}
		if text, err := m.Text(); err == nil {
			t.Errorf("%+v: %q", f, text)
		}
	}
	for _, typ := range []Type{{Base: Bool}, {Base: Byte}, {Base: UInt8}, {Base: String, Array: Unbounded}, {Base: BoundedWString, StringCapacity: 7, Array: Fixed, Capacity: 3},
		{Base: Nested, Name: "a/msg/B", Array: Bounded, Capacity: 9}} {
		got, err := TypeOf(uint8(typ.ID()), typ.Capacity, typ.StringCapacity, typ.Name)
		if err != nil || got != typ {
			t.Errorf("%+v: %+v %v", typ, got, err)
		}
		text, err := typ.text()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseROSType(text, "p"); err != nil || again != typ {
			t.Errorf("%q: %+v %v, want %+v", text, again, err, typ)
		}
	}
	for _, c := range []struct {
		id     uint8
		nested string
	}{{0, ""}, {48, ""}, {23, ""}, {1, ""}, {2, "a/msg/B"}, {255, ""}, {193, "a/msg/B"}} {
		if got, err := TypeOf(c.id, 0, 0, c.nested); err == nil {
			t.Errorf("%d %q: %+v", c.id, c.nested, got)
		}
	}
}

func FuzzDefineServed(f *testing.F) {
	f.Add("a/msg/B", "msg", `int32\ta # \xc2\xb0`, "int32 a\n")
	f.Add("a/srv/B", "srv", "int32 a\n---\n", "")
	f.Add("a/msg/B", "idl", "module a { module msg { struct B { long a; }; }; };", "int32 b\n")
	f.Fuzz(func(t *testing.T, typ, encoding, text, fields string) {
		files := []Served{{typ, encoding, text, fields}, {typ + "_Request", "implicit", "", fields}, {typ + "_Response", "implicit", "", fields}}
		for _, name := range []string{typ, typ + "_Event"} {
			def, err := DefineServed(name, "", files)
			if err != nil {
				continue
			}
			if again, err := DefineServed(name, def.Hash, files); err != nil || again != def {
				t.Fatalf("%v: %+v, %+v", err, def, again)
			}
		}
	})
}
