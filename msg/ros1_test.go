package msg

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// The md5sums of all types of the built-in table are those of ROS 1, and survive being written as text and read again.
func TestROS1MD5(t *testing.T) {
	b, err := os.ReadFile("testdata/ros1-md5.tsv")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for l := range strings.Lines(string(b)) {
		name, want, _ := strings.Cut(strings.TrimSpace(l), "\t")
		d, err := BuiltinROS1(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := d.MD5(); got != want {
			t.Errorf("%s: md5sum is %s, want %s", name, got, want)
		}
		again, err := ParseROS1(name, d.Text())
		if err != nil || again.MD5() != want {
			t.Errorf("%s written and read again: %v", name, err)
		}
		n++
	}
	if n < 130 {
		t.Errorf("only %d types were compared", n)
	}
}

func TestParseROS1(t *testing.T) {
	sep := strings.Repeat("=", 80)
	d, err := ParseROS1("a/T", "# comment\r\nstring S = x # y \nint32 N=-3 # three\n Header  h # head\nuint8[4] raw\nInner[] in\n"+sep+"\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n"+sep+"\r\nMSG: a/Inner\nbyte[] b\n")
	if err != nil {
		t.Fatal(err)
	}
	m := d.Root()
	if len(m.Constants) != 2 || m.Constants[0].Value != "x # y" || m.Constants[1].Value != "-3" {
		t.Errorf("constants are %+v", m.Constants)
	}
	if len(m.Fields) != 3 || m.Fields[0].Type != "std_msgs/Header" || m.Fields[1].Capacity != 4 || m.Fields[2].Type != "a/Inner" || m.Fields[2].Array != Unbounded {
		t.Errorf("fields are %+v", m.Fields)
	}
	for text, want := range map[string]string{
		"Other x\n":                         "a/Other is referred to and not defined",
		"T x\n":                             "contains itself",
		"uint8\n":                           "want a type and a name",
		"uint8[ x\n":                        "neither a built-in type",
		"uint8[-1] x\n":                     "array size",
		"uint8 1x\n":                        "field name",
		"uint8 x\nuint8 x\n":                "once",
		"x\\y z\n":                          "neither a built-in type",
		"time T=3\n":                        "not a constant",
		"Q q\n" + sep + "\nMSG a/Q\n":       "want MSG:",
		"Q q\n" + sep + "\nMSG: a/Q\nT t\n": "contains itself",
		"../b/C x\n":                        "neither a built-in type",
		"uint8 x\n" + sep + "\nMSG: a/Q\nrubbish": "",
	} {
		_, err := ParseROS1("a/T", text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ParseROS1("nopackage", "uint8 x\n"); err == nil {
		t.Error("a name without package was accepted")
	}
	if _, err := BuiltinROS1("../../x/Y"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func FuzzParseROS1(f *testing.F) {
	d, err := BuiltinROS1("sensor_msgs/Imu")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(d.Text())
	f.Add("uint8[3] x\nstring S=#\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseROS1("a/T", text)
		if err != nil {
			return
		}
		again, err := ParseROS1("a/T", d.Text())
		if err != nil {
			t.Fatalf("%v in %q", err, d.Text())
		}
		if again.MD5() != d.MD5() {
			t.Fatal("the md5sum changed")
		}
	})
}
