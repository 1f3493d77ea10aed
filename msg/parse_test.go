package msg

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

func TestParseMsg(t *testing.T) {
	f, err := Parse("p/msg/T.msg", []byte(
		"# comment\n\n  uint8   X =  7 # seven\nstring S=\"a=b\"\nint32 plain\nfloat64[36] fixed 1.5\r\n"+
			"byte[] bytes [1, 2]\nchar[<=5] chars\nstring<=10[<=3] texts\nwstring<=4 wide \"a b\"\nstring eq x=y\n"+
			"Own own\nq/Other[] other\nq/msg/Third[2] third"))
	if err != nil {
		t.Fatal(err)
	}
	want := []Message{{
		Name:      "p/msg/T",
		Constants: []Constant{{"X", Type{Base: UInt8}, "7"}, {"S", Type{Base: String}, `"a=b"`}},
		Fields: []Field{
			{"plain", Type{Base: Int32}, ""},
			{"fixed", Type{Base: Double, Array: Fixed, Capacity: 36}, "1.5"},
			{"bytes", Type{Base: Byte, Array: Unbounded}, "[1, 2]"},
			{"chars", Type{Base: UInt8, Array: Bounded, Capacity: 5}, ""},
			{"texts", Type{Base: BoundedString, Array: Bounded, Capacity: 3, StringCapacity: 10}, ""},
			{"wide", Type{Base: BoundedWString, StringCapacity: 4}, `"a b"`},
			{"eq", Type{Base: String}, "x=y"},
			{"own", Type{Base: Nested, Name: "p/msg/Own"}, ""},
			{"other", Type{Base: Nested, Name: "q/msg/Other", Array: Unbounded}, ""},
			{"third", Type{Base: Nested, Name: "q/msg/Third", Array: Fixed, Capacity: 2}, ""},
		},
	}}
	if !reflect.DeepEqual(f.Messages, want) {
		t.Errorf("\n got %+v\nwant %+v", f.Messages, want)
	}
}

func TestDerivedTypes(t *testing.T) {
	names := func(f *File, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		s := ""
		for _, m := range f.Messages {
			if fullName, _ := splitName(m.Name); fullName.file().String() != f.Messages[0].Name {
				t.Errorf("%s is looked for in %v", m.Name, fullName.file())
			}
			s += " " + strings.TrimPrefix(m.Name, f.Messages[0].Name)
		}
		return s
	}
	if got := names(Parse("p/srv/S.srv", []byte("---\n"))); got != "  _Request _Response _Event" {
		t.Errorf("service: %s", got)
	}
	want := "  _Goal _Result _Feedback _SendGoal _SendGoal_Request _SendGoal_Response _SendGoal_Event" +
		" _GetResult _GetResult_Request _GetResult_Response _GetResult_Event _FeedbackMessage"
	if got := names(Parse("p/action/A.action", []byte("---\n---\n"))); got != want {
		t.Errorf("action: %s", got)
	}
	for name, want := range map[string]string{
		"p/msg/T_Request": "p/msg/T_Request", "p/srv/_Event": "", "p/action/A_Request": "p/action/A_Request",
		"p/srv/S_Goal": "p/srv/S_Goal", "p/T": "p/msg/T",
	} {
		n, err := splitName(name)
		if got := n.file().String(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s: file of %s, want %q (%v)", name, got, want, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"p/msg/T.msg", "int32 a\nint32", `parse p/msg/T.msg:2: "int32": want a type and a name`},
		{"p/msg/T.msg", "int32 a\n\nint32 b c\nint33 d", `parse p/msg/T.msg:4: type "int33": neither a primitive type nor the name of a message`},
		{"p/msg/T.msg", "time t", `:1: type "time": neither`},
		{"p/msg/T.msg", "a/b/c/D x", `type "a/b/c/D": neither`},
		{"p/msg/T.msg", "../../etc/Passwd x", `neither`},
		{"p/msg/T.msg", "int32[0] a", `array size "0": want a number from 1 to 4294967295`},
		{"p/msg/T.msg", "int32[<=] a", `array size "": want a number`},
		{"p/msg/T.msg", "int32[-1] a", `array size "-1": want a number`},
		{"p/msg/T.msg", "int32[99999999999999999999] a", `want a number`},
		{"p/msg/T.msg", "int32] a", `] without [`},
		{"p/msg/T.msg", "string<=x a", `string bound "x": want a number`},
		{"p/msg/T.msg", "int32 9a", `field name "9a"`},
		{"p/msg/T.msg", "int32[2] A=1", `constant A: its type must be a plain primitive`},
		{"p/msg/T.msg", "T A=1", `constant A: its type must be a plain primitive`},
		{"p/msg/T.msg", "int32 a\nint64 a", `parse p/msg/T.msg: p/msg/T has two fields named a`},
		{"p/msg/T.msg", "int32 A=1\nint64 A=2", `two members named A`},
		{"p/msg/T.msg", "int32 a\n---\n", `1 separators ---, want 0 in a .msg file`},
		{"p/srv/T.srv", "int32 a", `0 separators ---, want 1 in a .srv file`},
		{"p/action/T.action", "---\n---\n---", `parse p/action/T.action:3: more separators`},
		{"p/msg/T.srv", "---", `extension ".srv" in folder "msg"`},
		{"p/msg/T", "", `extension "" in folder "msg"`},
		{"msg/T.msg", "x", ``}, // the old form, package msg
		{"T.msg", "", `want package/msg/Type`},
		{"p/msg/../T.msg", "", `want package/msg/Type`},
		{"p/msg/T.msg", strings.Repeat("\n", maxFile+1), `more than the limit of 1048576`},
		{"p/msg/T.msg", manyFields(maxFields + 1), `has 65537 fields, more than the limit of 65536`},

		{"p/msg/T.idl", "module p {\n module msg {\n  struct T { int32 a };\n };\n};", `parse p/msg/T.idl:3: found "}", want ";"`},
		{"p/msg/T.idl", "module p { module msg { struct U { long a; }; }; };", `no struct p::msg::T, nor those of a service or action`},
		{"p/msg/T.idl", "module p {", `found end of file, want "}"`},
		{"p/msg/T.idl", "module p { }; }", `found "}", want a definition`},
		{"p/msg/T.idl", "/* x", `comment /* without end`},
		{"p/msg/T.idl", "\n@verbatim(\"x)\nstruct", `:2: literal without closing quote`},
		{"p/msg/T.idl", "@verbatim(x", `( without )`},
		{"p/msg/T.idl", "#include foo\n", `want #include`},
		{"p/msg/T.idl", "module p { module msg { union T switch(long) {}; }; };", `found "union", want module, struct`},
		{"p/msg/T.idl", idlStruct("map<string, long> a"), `map is not a type that ROS 2 messages can have`},
		{"p/msg/T.idl", idlStruct("sequence<sequence<long>> a"), `sequence of arrays or sequences`},
		{"p/msg/T.idl", idlStruct("long a[2][3]"), `a: array with two dimensions`},
		{"p/msg/T.idl", idlStruct("sequence<long> a[2]"), `a: array of arrays or sequences`},
		{"p/msg/T.idl", idlStruct("long a[N]"), `found "N", want a number from 1 to 4294967295 or a constant`},
		{"p/msg/T.idl", idlStruct("string<0> a"), `found "0", want a number`},
		{"p/msg/T.idl", idlStruct("unsigned octet a"), `found "octet", want short or long`},
		{"p/msg/T.idl", idlStruct("a::b::c::D a"), `type "a::b::c::D": want package::msg::Type`},
		{"p/msg/T.idl", idlStruct("long a; long a"), `two fields named a`},
		{"p/msg/T.idl", "const long X = ;", `want the value of X`},
		{"p/msg/T.idl", strings.Repeat("module m {", 20), `modules nested deeper than 16`},
		{"p/msg/T.idl", idlStruct(strings.Repeat("sequence<", 20) + "long"), `sequences nested deeper than 16`},
		{"p/msg/T.idl", "module p\x00", `unexpected character '\x00'`},
		{"p/msg/T.idl", "module " + strings.Repeat("m", 300), `name of 300 characters`},
	} {
		_, err := Parse(c.name, []byte(c.text))
		if c.want == "" {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: error %v\nwant %s", c.text, err, c.want)
		}
	}
}

func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "int8 f%x\n", i)
	}
	return b.String()
}

func idlStruct(member string) string {
	return "module p { module msg { struct T { " + member + "; }; }; };"
}

func TestParseErrorIsTyped(t *testing.T) {
	_, err := Parse("p/msg/T.msg", []byte("\nint32\n"))
	var pe *ParseError
	if !errors.As(err, &pe) || pe.File != "p/msg/T.msg" || pe.Line != 2 {
		t.Errorf("%#v", err)
	}
}

func TestParseIDL(t *testing.T) {
	f, err := Parse("rosidl_parser/msg/MyMessage.idl", []byte(`
// A file with everything that rosidl reads.
#include "OtherMessage.idl"
#include <pkgname/msg/OtherMessage.idl>
#pragma once
module rosidl_parser { module msg {
  enum Colour { RED, GREEN };
  typedef geometry_msgs::msg::Point geometry_msgs__msg__Point;
  typedef geometry_msgs__msg__Point geometry_msgs__msg__Point__3[3];
  typedef sequence<octet> Blob;
  module MyMessage_Constants {
    const short SHORT = -23;
    const unsigned long BOUND = 0x17;
    @verbatim (language="comment", text="a ; ) \" b" "c")
    const wstring W = L"w \u2122";
    const string EMPTY = "" "x";
    const boolean B = TRUE;
  };
  /* struct MyMessage { } ; */
  struct Later;
  @verbatim (language="comment", text="}")
  @transfer_mode(SHMEM_REF)
  @final
  struct MyMessage {
    short a, b[4];
    @default (value=123) unsigned short c;
    @key @range ( min=-10, max=10 ) long d;
    @default(value=-1.5e-3) double e;
    @default(value="it's") string<5> f;
    unsigned long g; long long h; unsigned long long i; long double j;
    char k; wchar l; boolean m; octet n; float o;
    int8 p; uint8 q; int16 r; uint16 s; int32 t; uint32 u; int64 v; uint64 w;
    string x; wstring y; wstring<BOUND> z; wstring<MyMessage_Constants::BOUND> z2;
    sequence<short> aa; sequence<string<3>, 4> bb; Blob cc;
    geometry_msgs__msg__Point__3 dd; geometry_msgs::msg::Point ee; ::other::msg::T ff;
    sequence<Sibling> gg; msg::Sibling hh; sequence<geometry_msgs__msg__Point, BOUND> ii;
  };
}; };`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Includes); got != "[OtherMessage.idl pkgname/msg/OtherMessage.idl]" {
		t.Errorf("includes %s", got)
	}
	point := Type{Base: Nested, Name: "geometry_msgs/msg/Point"}
	array := func(t Type, a Array, n uint64) Type { t.Array, t.Capacity = a, n; return t }
	sibling := Type{Base: Nested, Name: "rosidl_parser/msg/Sibling"}
	want := []Message{{
		Name: "rosidl_parser/msg/MyMessage",
		Constants: []Constant{{"SHORT", Type{Base: Int16}, "-23"}, {"BOUND", Type{Base: UInt32}, "0x17"},
			{"W", Type{Base: WString}, `L"w \u2122"`}, {"EMPTY", Type{Base: String}, `"" "x"`}, {"B", Type{Base: Bool}, "TRUE"}},
		Fields: []Field{
			{"a", Type{Base: Int16}, ""}, {"b", Type{Base: Int16, Array: Fixed, Capacity: 4}, ""},
			{"c", Type{Base: UInt16}, "123"}, {"d", Type{Base: Int32}, ""}, {"e", Type{Base: Double}, "-1.5e-3"},
			{"f", Type{Base: BoundedString, StringCapacity: 5}, `"it's"`}, {"g", Type{Base: UInt32}, ""},
			{"h", Type{Base: Int64}, ""}, {"i", Type{Base: UInt64}, ""}, {"j", Type{Base: LongDouble}, ""},
			{"k", Type{Base: Char}, ""}, {"l", Type{Base: WChar}, ""}, {"m", Type{Base: Bool}, ""}, {"n", Type{Base: Byte}, ""},
			{"o", Type{Base: Float}, ""}, {"p", Type{Base: Int8}, ""}, {"q", Type{Base: UInt8}, ""}, {"r", Type{Base: Int16}, ""},
			{"s", Type{Base: UInt16}, ""}, {"t", Type{Base: Int32}, ""}, {"u", Type{Base: UInt32}, ""}, {"v", Type{Base: Int64}, ""},
			{"w", Type{Base: UInt64}, ""}, {"x", Type{Base: String}, ""}, {"y", Type{Base: WString}, ""},
			{"z", Type{Base: BoundedWString, StringCapacity: 23}, ""}, {"z2", Type{Base: BoundedWString, StringCapacity: 23}, ""},
			{"aa", Type{Base: Int16, Array: Unbounded}, ""}, {"bb", Type{Base: BoundedString, Array: Bounded, Capacity: 4, StringCapacity: 3}, ""},
			{"cc", Type{Base: Byte, Array: Unbounded}, ""}, {"dd", array(point, Fixed, 3), ""}, {"ee", point, ""},
			{"ff", Type{Base: Nested, Name: "other/msg/T"}, ""}, {"gg", array(sibling, Unbounded, 0), ""}, {"hh", sibling, ""},
			{"ii", array(point, Bounded, 23), ""},
		},
	}}
	if !reflect.DeepEqual(f.Messages, want) {
		for i := range want[0].Fields {
			if i < len(f.Messages[0].Fields) && f.Messages[0].Fields[i] != want[0].Fields[i] {
				t.Errorf("got %+v, want %+v", f.Messages[0].Fields[i], want[0].Fields[i])
			}
		}
		t.Errorf("\n got %+v\nwant %+v", f.Messages, want)
	}
	if id := want[0].Fields[9].Type.ID(); id != 12 {
		t.Errorf("long double has id %d", id)
	}
}

// TestIDLOfEveryInterface writes each interface of the table as rosidl_adapter would and reads it back.
func TestIDLOfEveryInterface(t *testing.T) {
	n := 0
	forEachInterface(t, func(name string, data []byte) {
		if strings.HasSuffix(name, ".idl") {
			return
		}
		n++
		f, err := Parse(name, data)
		if err != nil {
			t.Error(err)
			return
		}
		idl := toIDL(f)
		back, err := Parse(name[:strings.LastIndexByte(name, '.')]+".idl", []byte(idl))
		if err != nil {
			t.Errorf("%v\n%s", err, idl)
			return
		}
		for i := range f.Messages {
			for j := range f.Messages[i].Fields { // values are kept as written, but for blanks between tokens
				unblank(&f.Messages[i].Fields[j].Default, &back.Messages[i].Fields[j].Default)
			}
			for j := range f.Messages[i].Constants {
				unblank(&f.Messages[i].Constants[j].Value, &back.Messages[i].Constants[j].Value)
			}
			if len(f.Messages[i].Fields) == 0 {
				f.Messages[i].Fields = dummyField
			}
			if !reflect.DeepEqual(f.Messages[i], back.Messages[i]) {
				t.Errorf("%s:\n got %+v\nwant %+v", name, back.Messages[i], f.Messages[i])
			}
		}
	})
	if n != 308+4+7 {
		t.Errorf("%d interfaces", n)
	}
}

func unblank(values ...*string) {
	for _, v := range values {
		*v = strings.ReplaceAll(*v, " ", "")
	}
}

// forEachInterface calls f with every file of the built-in table, its name without the part of the table.
func forEachInterface(t testing.TB, f func(name string, data []byte)) {
	err := fs.WalkDir(tables, "interfaces", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := tables.ReadFile(p)
		f(strings.SplitN(p, "/", 3)[2], data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

var idlNames = map[Base]string{Int8: "int8", UInt8: "uint8", Int16: "int16", UInt16: "uint16", Int32: "int32", UInt32: "uint32",
	Int64: "int64", UInt64: "uint64", Float: "float", Double: "double", Bool: "boolean", Byte: "octet", String: "string",
	WString: "wstring", BoundedString: "string", BoundedWString: "wstring"}

// toIDL writes the structs of f in the form of rosidl_adapter: arrays by way of typedefs, constants in modules.
func toIDL(f *File) string {
	var typedefs, b strings.Builder
	done := map[string]bool{}
	typedef := func(of, name, size string) {
		if !done[name] {
			done[name] = true
			fmt.Fprintf(&typedefs, "    typedef %s %s%s;\n", of, name, size)
		}
	}
	first, _ := splitName(f.Messages[0].Name)
	for _, m := range f.Messages {
		n, _ := splitName(m.Name)
		declared := len(f.Messages) == 1 || len(f.Messages) == 4 && (strings.HasSuffix(n.name, "_Request") || strings.HasSuffix(n.name, "_Response")) ||
			n.name == first.name+"_Goal" || n.name == first.name+"_Result" || n.name == first.name+"_Feedback"
		if !declared {
			continue
		}
		if len(m.Constants) > 0 {
			fmt.Fprintf(&b, "    module %s_Constants {\n", n.name)
			for _, c := range m.Constants {
				fmt.Fprintf(&b, "      @verbatim (language=\"comment\", text=\n        \"x;\" \"\\n\"\n        \"y\")\n      const %s %s = %s;\n", idlNames[c.Type.Base], c.Name, c.Value)
			}
			b.WriteString("    };\n")
		}
		fmt.Fprintf(&b, "    struct %s {\n", n.name)
		if len(m.Fields) == 0 {
			b.WriteString("      uint8 structure_needs_at_least_one_member;\n")
		}
		for _, field := range m.Fields {
			t := field.Type
			name := idlNames[t.Base]
			if t.Base == Nested {
				name = strings.ReplaceAll(t.Name, "/", "::")
			}
			if t.StringCapacity > 0 {
				name = fmt.Sprintf("%s<%d>", name, t.StringCapacity)
			}
			switch t.Array {
			case Fixed:
				id := strings.NewReplacer("::", "__", "<", "__", ">", "").Replace(name)
				if id != name {
					typedef(name, id, "")
				}
				typedef(id, fmt.Sprintf("%s__%d", id, t.Capacity), fmt.Sprintf("[%d]", t.Capacity))
				name = fmt.Sprintf("%s__%d", id, t.Capacity)
			case Bounded:
				name = fmt.Sprintf("sequence<%s, %d>", name, t.Capacity)
			case Unbounded:
				name = fmt.Sprintf("sequence<%s>", name)
			}
			if field.Default != "" {
				// Quotes as in IDL; what is between them does not matter here.
				fmt.Fprintf(&b, "      @default (value=%s)\n", field.Default)
			}
			fmt.Fprintf(&b, "      %s %s;\n", name, field.Name)
		}
		b.WriteString("    };\n")
	}
	return fmt.Sprintf("module %s {\n  module %s {\n%s%s  };\n};\n", first.pkg, first.folder, typedefs.String(), b.String())
}

func FuzzParse(f *testing.F) {
	forEachInterface(f, func(name string, data []byte) { f.Add(name, data) })
	f.Add("p/msg/T.idl", []byte("#include \"a/msg/B.idl\"\nmodule p { module msg { typedef a::msg::B x[3]; const long N = 3;\n@default(value=\"x\") struct T { x y; sequence<wstring<N>, 2> z; }; }; };"))
	f.Add("p/srv/T.idl", []byte("module p { module srv { struct T_Request { long a; }; struct T_Response { long b[2]; }; }; };"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		file, err := Parse(name, data)
		if err != nil {
			if file != nil || err.Error() == "" {
				t.Fatal("error and file")
			}
			return
		}
		src := func(n string) ([]byte, error) {
			if n != name {
				return nil, fs.ErrNotExist
			}
			return data, nil
		}
		for _, m := range file.Messages {
			d := Description{Type: m}
			if h := d.Hash(); !validHash(h) {
				t.Fatalf("hash %s", h)
			}
			Define(m.Name, "", src)
			if n, err := splitName(m.Name); err != nil || strings.Contains(n.String(), "..") {
				t.Fatalf("name %q", m.Name)
			}
			for _, field := range m.Fields {
				if field.Type.Base == Nested {
					if _, err := splitName(field.Type.Name); err != nil {
						t.Fatalf("field %+v", field)
					}
				}
			}
		}
		references(string(data), fullName{"p", "msg", "T"}, false)
		references(string(data), fullName{"p", "msg", "T"}, true)
	})
}
