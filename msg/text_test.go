package msg

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// files makes a Source of name and content pairs.
func files(pairs ...string) Source {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return FromFS(m)
}

const eq80 = "================================================================================\n"

// TestTextsOfBags rebuilds every definition text of public bags from the interface files that their machines had.
func TestTextsOfBags(t *testing.T) {
	data, err := os.ReadFile("testdata/definitions.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Rows []struct {
			Bag, Type, Encoding, Files string
			Text                       int
		}
		Texts []string
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	explained := 0 // of numbered bags
	for _, row := range golden.Rows {
		want := golden.Texts[row.Text]
		src := FromFS(os.DirFS("testdata/share/" + row.Files))
		numbered := row.Bag[0] >= '0' && row.Bag[0] <= '9' // the bags whose texts were counted when the rules were found
		if strings.Contains(row.Type, "/action/") || strings.HasPrefix(row.Type, "action_msgs/") {
			// rosbag2 of 2024 has no text for the topics of an action.
			got, err := BuildText(row.Type, builtinSource("jazzy"))
			if want != "" || row.Encoding != "" || err != nil || got.Text == "" {
				t.Errorf("%s: text of action %s %q, ours %q %v", row.Bag, row.Type, want, got.Text, err)
			}
			count["no text for actions"]++
			continue
		}
		got, err := BuildText(row.Type, src)
		if err != nil {
			t.Errorf("%s: %v", row.Bag, err)
			continue
		}
		if got.Text != want {
			why := notOurs(row.Bag, row.Type, got.Text, want)
			if why == "" {
				t.Errorf("%s: %s differs\n got %q\nwant %q", row.Bag, row.Type, got.Text, want)
			}
			count[why]++
			if numbered && why != "" {
				explained++
			}
			continue
		}
		if got.Encoding != row.Encoding && !(row.Encoding == "unknown" && strings.Contains(row.Type, "/srv/") && !strings.Contains(want, "MSG: ")) {
			// rosbag2 of 2024 says "unknown" of a service that refers to no other type.
			t.Errorf("%s: %s has encoding %s, want %s", row.Bag, row.Type, got.Encoding, row.Encoding)
		}
		if count["equal"]++; numbered {
			count["equal in numbered bags"]++
		}
	}
	t.Logf("%d of %d texts of numbered bags are equal, %d are explained", count["equal in numbered bags"], count["equal in numbered bags"]+explained, explained)
	want := map[string]int{"equal": 47, "equal in numbered bags": 41, "no text for actions": 6,
		"placeholder": 3, "written by another tool": 2, "service without separator": 5}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", count, want)
	}
}

// notOurs says why the text of a bag cannot be rebuilt by the rules of today's rosbag2, "" if it should be.
func notOurs(bag, typ, ours, bags string) string {
	switch {
	case strings.HasPrefix(bag, "13-") && !strings.Contains(bags, "\n") && strings.Contains(ours, bags):
		// Written by a Python script: one line of the file stands for the whole.
		return "placeholder"
	case strings.HasPrefix(bag, "14-") && strings.Contains(bags, "\n"+eq80) && !strings.Contains(bags, "\n\n"+eq80):
		// The Go tool that converted this bag leaves out the empty line before separators and repeats types; the files
		// are those of eloquent.
		return "written by another tool"
	case strings.Contains(typ, "/srv/") && ours == eq80+"SRV: "+strings.TrimSuffix(typ, "_Event")+"\n"+bags:
		// rosbag2 of 2023: the .srv file alone.
		return "service without separator"
	}
	return ""
}

func TestTextOrder(t *testing.T) {
	toy := []string{
		"toy_msgs/msg/Robot.msg", "toy_msgs/Wheel[4] wheels\nBattery battery\nstd_msgs/ColorRGBA paint\n",
		"toy_msgs/msg/Wheel.msg", "float64 speed\n",
		"toy_msgs/msg/Battery.msg", "Cell[] cells\n",
		"toy_msgs/msg/Cell.msg", "float32 volts\n",
		"std_msgs/msg/ColorRGBA.msg", "float32 r\nfloat32 g\nfloat32 b\nfloat32 a\n",
		"toy_msgs/msg/Robot.idl", "#include <toy_msgs/msg/Wheel.idl>\n  #include \"toy_msgs/msg/NotAtLineStart.idl\"\n#include \"std_msgs/msg/ColorRGBA.idl\"\n#include \"Battery.idl\"\n",
		"toy_msgs/msg/Wheel.idl", "// wheel\n",
		"toy_msgs/msg/Battery.idl", "#include \"toy_msgs/msg/Wheel.idl\"\n",
		"std_msgs/msg/ColorRGBA.idl", "// colour\n",
	}
	want := "toy_msgs/Wheel[4] wheels\nBattery battery\nstd_msgs/ColorRGBA paint\n" +
		"\n" + eq80 + "MSG: std_msgs/ColorRGBA\nfloat32 r\nfloat32 g\nfloat32 b\nfloat32 a\n" +
		"\n" + eq80 + "MSG: toy_msgs/Battery\nCell[] cells\n" +
		"\n" + eq80 + "MSG: toy_msgs/Cell\nfloat32 volts\n" +
		"\n" + eq80 + "MSG: toy_msgs/Wheel\nfloat64 speed\n"
	got, err := BuildText("toy_msgs/msg/Robot", files(toy...))
	if err != nil || got.Text != want || got.Encoding != "ros2msg" {
		t.Errorf("%v\n got %s %q\nwant %q", err, got.Encoding, got.Text, want)
	}

	// One .msg missing: everything from .idl.
	toy[6] = "toy_msgs/msg/Gone.msg"
	want = eq80 + "IDL: toy_msgs/msg/Robot\n" + toy[11] +
		"\n" + eq80 + "IDL: std_msgs/msg/ColorRGBA\n// colour\n" +
		"\n" + eq80 + "IDL: toy_msgs/msg/Battery\n" + toy[15] +
		"\n" + eq80 + "IDL: toy_msgs/msg/Wheel\n// wheel\n"
	got, err = BuildText("toy_msgs/msg/Robot", files(toy...))
	if err != nil || got.Text != want || got.Encoding != "ros2idl" {
		t.Errorf("%v\n got %s %q\nwant %q", err, got.Encoding, got.Text, want)
	}

	// And that missing too.
	toy[10] = "toy_msgs/msg/Gone.idl"
	_, err = BuildText("toy_msgs/msg/Robot", files(toy...))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no toy_msgs/msg/Cell.msg and no .idl") {
		t.Errorf("error %v", err)
	}
}

func TestTextOfServicesAndActions(t *testing.T) {
	src := files(
		"a/srv/S.srv", "b/B x\n---\nA y\nb/B z\n",
		"a/srv/Plain.srv", "---\n",
		"a/srv/OnlyIDL.idl", "#include \"b/msg/I.idl\"\n",
		"a/action/Act.action", "A a\n---\nb/B b\n---\n",
		"a/srv/Mixed.srv", "b/I i\nb/J j\n---\n",
		"a/srv/Missing.srv", "b/Nowhere i\n---\n",
		"a/msg/A.msg", "b/B b\n",
		"b/msg/B.msg", "int8 b\n",
		"b/msg/J.msg", "int8 j\n",
		"b/msg/I.idl", "// i\n",
		"x/other/Folder.idl", "// folder\n",
	)
	ref := "\n" + eq80 + "MSG: a/A\nb/B b\n\n" + eq80 + "MSG: b/B\nint8 b\n"
	mixed := eq80 + "SRV: a/srv/Mixed\nb/I i\nb/J j\n---\n"
	for _, c := range []struct{ typ, encoding, want string }{
		{"a/srv/S", "ros2msg", eq80 + "SRV: a/srv/S\nb/B x\n---\nA y\nb/B z\n" + ref},
		{"a/srv/S_Event", "ros2msg", eq80 + "SRV: a/srv/S\nb/B x\n---\nA y\nb/B z\n" + ref},
		{"a/srv/S_Request", "ros2msg", eq80 + "SRV: a/srv/S\nb/B x\n---\nA y\nb/B z\n" + ref},
		{"a/srv/Plain", "ros2msg", eq80 + "SRV: a/srv/Plain\n---\n"},
		{"a/srv/OnlyIDL_Event", "ros2idl", eq80 + "IDL: a/srv/OnlyIDL\n#include \"b/msg/I.idl\"\n\n" + eq80 + "IDL: b/msg/I\n// i\n"},
		{"a/action/Act_FeedbackMessage", "ros2msg", eq80 + "ACTION: a/action/Act\nA a\n---\nb/B b\n---\n" + ref},
		{"a/action/Act_SendGoal_Event", "ros2msg", eq80 + "ACTION: a/action/Act\nA a\n---\nb/B b\n---\n" + ref},
		// The separator of the .msg that is missing stays, the encoding is that of the last reference.
		{"a/srv/Mixed", "ros2msg", mixed + "\n" + eq80 + "MSG: b/I\n\n" + eq80 + "IDL: b/I\n// i\n\n" + eq80 + "MSG: b/J\nint8 j\n"},
		{"x/other/Folder", "ros2idl", eq80 + "IDL: x/other/Folder\n// folder\n"},
	} {
		got, err := BuildText(c.typ, src)
		if err != nil || got.Text != c.want || got.Encoding != c.encoding {
			t.Errorf("%s: %v\n got %s %q\nwant %s %q", c.typ, err, got.Encoding, got.Text, c.encoding, c.want)
		}
	}
	if _, err := BuildText("a/srv/Missing_Event", src); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestTextReferences has the lines that rosbag2 takes, or does not take, for a reference to another type.
func TestTextReferences(t *testing.T) {
	file := "# pkg/Comment x\n  Indented i\nuint8 PRIMITIVE=1\nstring<=8 bounded\nwstring<=8 wbounded\n" +
		"other_msgs/T[<=3] a\nother_msgs/msg/T3[] b\nOwn[4]\tc\nOwn d # Own\nLineEnd\r\n---\nfloat64[9] e\nLast"
	got := fmt.Sprint(references(file, fullName{"pkg", "msg", "T"}, false))
	want := "[other_msgs/T other_msgs/msg/T3 pkg/Indented pkg/LineEnd pkg/Own]"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTextWithPlainWString(t *testing.T) {
	pairs := []string{"p/msg/W.msg", "wstring w\nQ q\n", "p/msg/Q.msg", "int8 q\n"}
	got, err := BuildText("p/msg/W", files(pairs...))
	want := "wstring w\nQ q\n\n" + eq80 + "MSG: p/Q\nint8 q\n"
	if err != nil || got.Text != want || got.Encoding != "ros2msg" {
		t.Errorf("without .idl: %v %s %q", err, got.Encoding, got.Text)
	}
	// rosbag2 falls back to .idl where it can.
	got, err = BuildText("p/msg/W", files(append(pairs, "p/msg/W.idl", "// w\n")...))
	if err != nil || got.Text != eq80+"IDL: p/msg/W\n// w\n" || got.Encoding != "ros2idl" {
		t.Errorf("with .idl: %v %s %q", err, got.Encoding, got.Text)
	}
	got, err = BuildText("p/srv/W_Event", files("p/srv/W.srv", "wstring[] w\n---\n"))
	if err != nil || got.Text != eq80+"SRV: p/srv/W\nwstring[] w\n---\n" || got.Encoding != "ros2msg" {
		t.Errorf("service: %v %s %q", err, got.Encoding, got.Text)
	}
}

func TestTextLimits(t *testing.T) {
	var deep, wide []string
	for i := range 60 {
		deep = append(deep, fmt.Sprintf("p/msg/T%d.msg", i), fmt.Sprintf("T%d next\n", i+1))
	}
	all := ""
	for i := range maxTypes + 1 {
		all += fmt.Sprintf("W%d w%d\n", i, i)
		wide = append(wide, fmt.Sprintf("p/msg/W%d.msg", i), "int8 x\n")
	}
	wide = append(wide, "p/msg/All.msg", all)
	big := files("p/msg/A.msg", strings.Repeat("#", maxFile-100)+"\nB b\nC c\nD d\nE e\nF f\nG g\nH h\nI i\n",
		"p/msg/B.msg", strings.Repeat("#", maxFile), "p/msg/C.msg", strings.Repeat("#", maxFile), "p/msg/D.msg", strings.Repeat("#", maxFile),
		"p/msg/E.msg", strings.Repeat("#", maxFile), "p/msg/F.msg", strings.Repeat("#", maxFile), "p/msg/G.msg", strings.Repeat("#", maxFile),
		"p/msg/H.msg", strings.Repeat("#", maxFile), "p/msg/I.msg", strings.Repeat("#", maxFile))
	for _, c := range []struct {
		typ, want string
		src       Source
	}{
		{"p/msg/T0", "nested deeper than 50", files(deep...)},
		{"p/msg/All", "more than 1000 types", files(wide...)},
		{"p/msg/A", "larger than 8388608 bytes", big},
		{"p/msg/Broken", "read error", func(string) ([]byte, error) { return nil, errors.New("read error") }},
	} {
		if _, err := BuildText(c.typ, c.src); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.typ, err, c.want)
		}
	}
	if _, err := Describe("p/msg/All", files(wide...)); err == nil || !strings.Contains(err.Error(), "more than 1000 types") {
		t.Errorf("error %v", err)
	}
	// A type that refers to itself ends; no ROS type does that.
	got, err := BuildText("p/msg/R", files("p/msg/R.msg", "R[] r\n"))
	if err != nil || strings.Count(got.Text, "MSG: p/R") != 1 {
		t.Errorf("%v %q", err, got.Text)
	}
}
