package main

import (
	bytesof "encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// Odd bags in MCAP. M… is an issue of ros-tooling/rosbag2_storage_mcap or foxglove/mcap.

func needsStorage(t *testing.T, name string) {
	t.Helper()
	if _, err := plugin.Lookup(name); err != nil {
		t.Skip(err)
	}
}

// mcapFile puts together a file without chunks and without a summary.
type mcapFile struct{ b []byte }

const mcapMagic = "\x89MCAP0\r\n"

func newMCAP() *mcapFile {
	f := &mcapFile{[]byte(mcapMagic)}
	f.record(1, mcapString("ros2"), mcapString("by hand"))
	return f
}

func mcapString(s string) []byte {
	return append(bytesof.LittleEndian.AppendUint32(nil, uint32(len(s))), s...)
}

func le16(n uint16) []byte { return bytesof.LittleEndian.AppendUint16(nil, n) }
func le32(n uint32) []byte { return bytesof.LittleEndian.AppendUint32(nil, n) }
func le64(n uint64) []byte { return bytesof.LittleEndian.AppendUint64(nil, n) }

func (f *mcapFile) record(opcode byte, parts ...[]byte) {
	var body []byte
	for _, p := range parts {
		body = append(body, p...)
	}
	f.b = append(f.b, opcode)
	f.b = append(f.b, le64(uint64(len(body)))...)
	f.b = append(f.b, body...)
}

func (f *mcapFile) schema(id uint16, name, encoding, text string) {
	f.record(3, le16(id), mcapString(name), mcapString(encoding), mcapString(text))
}

func (f *mcapFile) channel(id, schema uint16, topic string) {
	f.record(4, le16(id), le16(schema), mcapString(topic), mcapString("cdr"), le32(0))
}

func (f *mcapFile) message(channel uint16, stamp uint64, data string) {
	f.record(5, le16(channel), le32(0), le64(stamp), le64(stamp), []byte(data))
}

// file closes the file and writes it.
func (f *mcapFile) file(t *testing.T) string {
	t.Helper()
	f.record(15, le32(0))
	f.record(2, le64(0), le64(0), le32(0))
	path := filepath.Join(t.TempDir(), "odd_0.mcap")
	if err := os.WriteFile(path, append(f.b, mcapMagic...), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// 05, R2175: reindex writes no storage identifier.
func TestOddReindexIdentifier(t *testing.T) {
	needsStorage(t, "mcap")
	dir := oddFixture(t, "14-talker-mcap")
	removeYAML(t, dir)
	if err := os.Rename(filepath.Join(dir, "talker.mcap"), filepath.Join(dir, "t_0.mcap")); err != nil {
		t.Fatal(err)
	}
	if text := oddReindex(t, dir); !strings.Contains(text, "storage_identifier: mcap") {
		t.Errorf("%s", text)
	}
	wantCounts(t, oddInfo(t, dir), 20, map[string]int{"/rosout": 10, "/topic": 10, "/parameter_events": 0})
}

// 20, M697, M385, M1220: files that were cut off, and one with a record of 2^63 bytes. F-32 has 3000844 bytes; its second
// chunk spans 815926 to 1602776.
func TestOddTruncated(t *testing.T) {
	needsStorage(t, "mcap")
	whole, err := os.ReadFile(filepath.Join(oddFixture(t, "32-jazzy-v9-recorded-mcap"), "rosbag2_2025_05_09-18_01_02_0.mcap"))
	if err != nil {
		t.Fatal(err)
	}
	const all = 6578
	huge := append([]byte(nil), whole...)
	bytesof.LittleEndian.PutUint64(huge[815927:], 1<<63) // of the second chunk
	for _, c := range []struct {
		name    string
		data    []byte
		least   int // messages that are in whole records
		most    int
		refused bool
	}{
		{"in the header", whole[:20], 0, 0, true},
		{"in the second chunk", whole[:1200000], 1, all - 1, false},
		{"before the second chunk's indexes", whole[:1602776], 1, all - 1, false},
		{"in DataEnd", whole[:2994730], all, all, false},
		{"in the summary", whole[:2999500], all, all, false},
		{"without the closing magic", whole[:3000836], all, all, false},
		{"record of 2^63 bytes", huge, 1, all - 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "cut_0.mcap")
			if err := os.WriteFile(path, c.data, 0o644); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r := cli(nil, "info", path, "--json")
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 256<<20 {
				t.Errorf("info allocated %d bytes", grown)
			}
			if c.refused && r.code != 0 {
				if r.code != exitFailure || !strings.Contains(r.errOut, path) {
					t.Errorf("exit %d\n%s", r.code, r.errOut)
				}
				return
			}
			j := oddInfo(t, path)
			if n := int(j.Messages); n < c.least || n > c.most {
				t.Errorf("%d messages, want %d to %d", n, c.least, c.most)
			}
			if !j.CutOff || len(j.Warnings) == 0 {
				t.Errorf("cut off %v, warnings %q", j.CutOff, j.Warnings)
			}
			checkRepaired(t, path, int(j.Messages))
		})
	}
}

// checkRepaired repairs a bag and finds at least n messages in the new one, which is whole; the original stays as it is.
func checkRepaired(t *testing.T, path string, n int) {
	t.Helper()
	t.Run("repair", func(t *testing.T) {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "repaired")
		if r := cli(nil, "repair", path, "-o", out); r.code != 0 && r.code != exitFailure { // 1: something was lost
			t.Fatalf("repair: exit %d\n%s%s", r.code, r.out, r.errOut)
		}
		j := oddInfo(t, out)
		if int(j.Messages) < n || j.CutOff {
			t.Errorf("repaired: %d messages, want at least %d; cut off %v", j.Messages, n, j.CutOff)
		}
		if got := len(oddMessages(t, out)); got != int(j.Messages) {
			t.Errorf("repaired: %d messages read, %d counted", got, j.Messages)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("repair changed the original: %v", err)
		}
	})
}

// 22, M943, M698, M709: schemas without text, with an unknown encoding, and none at all.
func TestOddSchemas(t *testing.T) {
	needsStorage(t, "mcap")
	f := newMCAP()
	f.schema(1, "std_msgs/msg/Empty", "ros2msg", "")
	f.schema(2, "x/msg/Y", "", "")
	f.schema(3, "x/msg/Z", "unknown", "nothing that anybody reads")
	f.schema(4, "x/msg/NameOnly", "ros2msg", "x/msg/NameOnly") // cloudini#21: the text is the name of the type
	f.channel(1, 1, "/empty")
	f.channel(2, 2, "/y")
	f.channel(3, 3, "/z")
	f.channel(4, 4, "/name")
	f.channel(5, 0, "/none")
	for i := range uint16(5) {
		f.message(i+1, 1000+uint64(i), "\x00\x01\x00\x00\x00")
	}
	path := f.file(t)
	j := oddInfo(t, path)
	wantCounts(t, j, 5, map[string]int{"/empty": 1, "/y": 1, "/z": 1, "/name": 1, "/none": 1})
	types := map[string]string{}
	for _, tp := range j.Topics {
		types[tp.Name] = tp.Type
	}
	if fmt.Sprint(types) != "map[/empty:std_msgs/msg/Empty /name:x/msg/NameOnly /none: /y:x/msg/Y /z:x/msg/Z]" {
		t.Errorf("%v", types)
	}
	for _, m := range oddMessages(t, path) {
		if string(m.Data) != "\x00\x01\x00\x00\x00" {
			t.Errorf("%x", m.Data)
		}
	}
	t.Run("converted", func(t *testing.T) {
		for _, storage := range []string{"mcap", "sqlite3"} {
			out, c := oddConvert(t, path, "-s", storage)
			wantCounts(t, c, 5, map[string]int{"/empty": 1, "/none": 1})
			for _, m := range oddMessages(t, out) {
				if string(m.Data) != "\x00\x01\x00\x00\x00" {
					t.Errorf("%x", m.Data)
				}
			}
		}
	})
	t.Run("fixture", func(t *testing.T) {
		wantCounts(t, oddInfo(t, oddFixture(t, "20-actions-services-v9-mcap")), 218, map[string]int{"/rosout": 112})
	})
}

// 24 in MCAP: a serialization that nobody knows.
func TestOddFormatMCAP(t *testing.T) {
	needsStorage(t, "mcap")
	dir := oddFixture(t, "30-wrong-serialization-v6-mcap")
	wantCounts(t, oddInfo(t, dir), 7, map[string]int{"/test_topic": 3, "/array_topic": 4})
	if r := cli(nil, "play", dir, "-r", "1000000", "--localhost"); r.code != exitFailure || !strings.Contains(r.errOut, "wrong_format") {
		t.Errorf("play: exit %d\n%s", r.code, r.errOut)
	}
	_, c := oddConvert(t, dir)
	wantCounts(t, c, 7, nil)
}

// M1474: Statistics whose counts by channel lack a channel are not taken at their word.
func TestOddStatistics(t *testing.T) {
	needsStorage(t, "mcap")
	f := newMCAP()
	f.schema(1, "std_msgs/msg/Empty", "ros2msg", "")
	f.channel(1, 1, "/a")
	f.channel(2, 1, "/b")
	f.message(1, 5, "\x00\x01\x00\x00\x00")
	f.message(2, 6, "\x00\x01\x00\x00\x00")
	f.record(15, le32(0))
	summary := uint64(len(f.b))
	f.schema(1, "std_msgs/msg/Empty", "ros2msg", "")
	f.channel(1, 1, "/a")
	f.channel(2, 1, "/b")
	f.record(11, le64(2), le16(1), le32(2), le32(0), le32(0), le32(0), le64(5), le64(6), le32(10), le16(1), le64(1))
	f.record(2, le64(summary), le64(0), le32(0))
	path := filepath.Join(t.TempDir(), "odd_0.mcap")
	if err := os.WriteFile(path, append(f.b, mcapMagic...), 0o644); err != nil {
		t.Fatal(err)
	}
	wantCounts(t, oddInfo(t, path), 2, map[string]int{"/a": 1, "/b": 1})
	if n := len(oddMessages(t, path)); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// M837: the same schema number with other content in another file.
func TestOddSchemaNumbers(t *testing.T) {
	needsStorage(t, "mcap")
	dir := t.TempDir()
	for i, typ := range []string{"a/msg/A", "b/msg/B"} {
		f := newMCAP()
		f.schema(1, typ, "ros2msg", "int8 "+string(rune('a'+i))+"\n")
		f.channel(1, 1, "/"+typ[:1])
		f.message(1, uint64(10+i), "\x00\x01\x00\x00"+typ)
		b, err := os.ReadFile(f.file(t))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("x_%d.mcap", i)), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	wantCounts(t, oddInfo(t, dir), 2, map[string]int{"/a": 1, "/b": 1})
	out, c := oddConvert(t, dir, "-s", "mcap")
	wantCounts(t, c, 2, map[string]int{"/a": 1, "/b": 1})
	r, err := bag.Open(t.Context(), out, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, tp := range r.Info().Topics {
		want := map[string]string{"/a": "a/msg/A int8 a\n", "/b": "b/msg/B int8 b\n"}[tp.Name]
		if got := tp.Type + " " + tp.Definition.Text; got != want {
			t.Errorf("%s: %q, want %q", tp.Name, got, want)
		}
	}
}

// A file of the first eight bytes alone is no bag, and is not taken for one.
func TestOddMagicAlone(t *testing.T) {
	needsStorage(t, "mcap")
	path := filepath.Join(t.TempDir(), "x_0.mcap")
	if err := os.WriteFile(path, []byte(mcapMagic), 0o644); err != nil {
		t.Fatal(err)
	}
	r := cli(nil, "info", path)
	if r.code != 0 && (r.code != exitFailure || !strings.Contains(r.errOut, path)) || r.code == 0 && !strings.Contains(r.out, "cut off") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(path), bag.MetadataFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("info wrote metadata.yaml")
	}
}
