package msg

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"testing"
)

// TestDescribeText: the description of a definition text is that of the files it was made of, for every type of the
// built-in table.
func TestDescribeText(t *testing.T) {
	n := 0
	root := "interfaces/jazzy"
	src := FromFS(subFS(t, root))
	err := fs.WalkDir(tables, root, func(p string, d fs.DirEntry, err error) error {
		ext := path.Ext(p)
		if err != nil || d.IsDir() || ext == ".md" {
			return err
		}
		typ := strings.TrimSuffix(strings.TrimPrefix(p, root+"/"), ext)
		for _, suffix := range map[string][]string{".msg": {""}, ".srv": {"_Event", "_Request"}, ".action": {"_FeedbackMessage", "_SendGoal_Event"}}[ext] {
			def, err := Define(typ+suffix, "", src)
			if errors.Is(err, fs.ErrNotExist) { // depends on a file that is .idl only
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", typ+suffix, err)
				continue
			}
			got, err := DescribeText(typ+suffix, def.Encoding, def.Text)
			if err != nil || got.Hash() != def.Hash {
				t.Errorf("%s: %v, %s instead of %s", typ+suffix, err, got.Hash(), def.Hash)
			}
			n++
		}
		return nil
	})
	if err != nil || n < 300 {
		t.Errorf("%d types, %v", n, err)
	}
}

func subFS(t *testing.T, dir string) fs.FS {
	sub, err := fs.Sub(tables, dir)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

const line80 = "================================================================================\n"

func TestTextSource(t *testing.T) {
	cases := []struct {
		name, typ, encoding, text string
		want                      string // names of fields, or a part of the error
	}{
		{"two-part names", "a/msg/T", "ros2msg", "b/U u\n\n" + line80 + "MSG: b/U\nint32 x\n", "u"},
		{"three-part names", "a/T", "ros2msg", "b/U u\n" + line80 + "MSG: b/msg/U\nint32 x\n", "u"},
		{"begins with a separator", "a/msg/T", "ros2msg", line80 + "MSG: a/T\nint32 y\n", "y"},
		{"idl", "a/msg/T", "ros2idl", line80 + "IDL: a/msg/T\nmodule a { module msg { struct T { long z; }; }; };\n", "z"},
		{"service of unknown encoding", "a/srv/S_Request", "unknown", line80 + "SRV: a/srv/S\nint32 q\n---\n", "q"},
		{"bare service", "a/srv/S_Response", "ros2msg", "---\nint32 r\n", "r"},
		{"event", "a/srv/S_Event", "ros2msg", line80 + "SRV: a/srv/S\nint32 q\n---\n", "info request response"},
		{"empty", "a/msg/T", "ros2msg", "", ""},
		{"comment with a line of equals signs", "a/msg/T", "ros2msg", "# x\n# " + line80 + "int32 y\n", "y"},
		{"separator of a .msg that was not found", "a/srv/S_Request", "ros2idl", line80 + "SRV: a/srv/S\nb/U u\n---\n\n" + line80 + "MSG: b/U\n\n" +
			line80 + "IDL: b/msg/U\nmodule b { module msg { struct U { long z; }; }; };\n", "u z"},

		{"no text", "a/msg/T", "", "", "error: file does not exist"},
		{"ros1", "a/msg/T", "ros1msg", "int32 x\n", "error: encoding"},
		{"missing part", "a/msg/T", "ros2msg", "b/U u\n", "error: file does not exist"},
		{"wrong name of a part", "a/msg/T", "ros2msg", "int32 x\n" + line80 + "MSG: ../U\n", "error: type name"},
		{"too long", "a/msg/T", "ros2msg", strings.Repeat("#", maxText+1), "error: more than the limit"},
		{"too many parts", "a/msg/T", "ros2msg", "", "error: more than 1000 parts"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "too many parts" {
				var b strings.Builder
				for i := range maxTypes + 1 {
					b.WriteString("\n" + line80 + "MSG: a/A" + strings.Repeat("b", i%200) + strings.Repeat("c", i/200) + "\n")
				}
				c.text = b.String()
			}
			d, err := DescribeText(c.typ, c.encoding, c.text)
			if want, bad := strings.CutPrefix(c.want, "error: "); bad {
				notExist := want == "file does not exist" && errors.Is(err, fs.ErrNotExist)
				if err == nil || !notExist && !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, f := range d.Type.Fields {
				names = append(names, f.Name)
			}
			if strings.HasPrefix(c.name, "separator") {
				names = append(names, d.Referenced[0].Fields[0].Name)
			}
			if got := strings.Join(names, " "); got != c.want {
				t.Errorf("fields %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzDescribeText: definition texts come from bags.
func FuzzDescribeText(f *testing.F) {
	f.Add("a/msg/T", "ros2msg", "b/U u\n\n"+line80+"MSG: b/U\nint32 x\n")
	f.Add("a/msg/T", "ros2idl", line80+"IDL: a/msg/T\nmodule a { module msg { struct T { long z; }; }; };\n")
	f.Add("a/srv/S_Event", "unknown", line80+"SRV: a/srv/S\nint32 q\n---\nT t\n"+line80+"MSG: a/T\n"+line80+"IDL: a/msg/T\n")
	f.Add("a/action/A_Goal", "ros2msg", line80+"ACTION: a/action/A\nint32 q\n---\n---\n")
	f.Fuzz(func(t *testing.T, typ, encoding, text string) {
		d, err := DescribeText(typ, encoding, text)
		if err == nil && (d.Type.Name == "" || !validHash(d.Hash())) {
			t.Errorf("%q: %+v", text, d)
		}
	})
}
