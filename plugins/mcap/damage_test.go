package mcap

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// records lists the records of a file: opcode and place.
type placed struct {
	op byte
	place
}

func listRecords(b []byte) []placed {
	var ps []placed
	for at := int64(len(magic)); at+recordHead <= int64(len(b))-int64(len(magic)); {
		n := int64(le.Uint64(b[at+1:])) + recordHead
		ps = append(ps, placed{b[at], place{at, n}})
		at += n
	}
	return ps
}

// nth is the place of the n-th record of a kind.
func nth(b []byte, op byte, n int) place {
	for _, p := range listRecords(b) {
		if p.op == op {
			if n == 0 {
				return p.place
			}
			n--
		}
	}
	panic("no such record")
}

// edit changes a file through a function on its bytes.
func edit(f func(b []byte) []byte) func(path string) error {
	return func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, f(b), 0o644)
	}
}

// flip turns bits of byte i, from the end if negative, of the n-th record of a kind.
func flip(op byte, n int, i int64) func(path string) error {
	return edit(func(b []byte) []byte {
		p := nth(b, op, n)
		if i < 0 {
			i += p.n
		}
		b[p.off+i] ^= 0x41
		return b
	})
}

var damageTable = []plugintest.Damage{
	{Name: "payload", Break: flip(opChunk, 1, 5000), Least: 700, Offset: true},
	{Name: "payload of the first chunk", Break: flip(opChunk, 0, 5000), Offset: true},
	{Name: "stamp in a chunk's head", Break: flip(opChunk, 1, 10), Whole: true},
	{Name: "length of a chunk", Break: flip(opChunk, 1, 2), Least: 700, Offset: true},
	{Name: "opcode of a chunk", Break: flip(opChunk, 1, 0), Least: 700, Offset: true},
	{Name: "sizes of a chunk", Break: flip(opChunk, 1, 26), Least: 700, Offset: true},
	{Name: "pack", Break: flip(opPack, 1, 60), Least: 700, Offset: true},
	{Name: "opcode of a pack", Break: flip(opPack, 1, 0), Least: 700, Offset: true},
	{Name: "length of a pack", Break: flip(opPack, 1, 3), Least: 700, Offset: true},
	{Name: "message index", Break: flip(opMessageIndex, 1, 40), Whole: true},
	{Name: "closing record", Break: flip(opFinal, 0, 30), Whole: true},
	{Name: "closing record and summary", Break: func(path string) error {
		return errors.Join(flip(opFinal, 0, 30)(path), flip(opChunkIndex, 1, 20)(path))
	}, Whole: true},
	{Name: "chunk index", Break: flip(opChunkIndex, 1, 20), Whole: true},
	{Name: "statistics", Break: flip(opStatistics, 0, 12), Whole: true},
	{Name: "footer", Break: flip(opFooter, 0, 12), Whole: true},
	{Name: "first magic", Break: edit(func(b []byte) []byte { b[2] ^= 1; return b }), Refused: true},
	{Name: "last magic", Break: edit(func(b []byte) []byte { b[len(b)-3] ^= 1; return b }), Whole: true},
	{Name: "library", Break: flip(opHeader, 0, -2), Whole: true},
	{Name: "last magic and payload", Break: func(path string) error {
		return errors.Join(flip(opChunk, 1, 5000)(path), edit(func(b []byte) []byte { return append(b[:len(b)-9], 0) })(path))
	}, Least: 700, Offset: true},
	{Name: "something appended", Break: edit(func(b []byte) []byte { return append(b, "more"...) }), Whole: true},
}

func writeSample(t *testing.T, o plugin.WriteOptions, n, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.mcap")
	w, err := Driver{}.Create(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := w.AddTopic(plugin.Topic{Name: fmt.Sprint("/t", i), Type: "std_msgs/msg/String", SerializationFormat: "cdr", OfferedQoS: "- depth: 1\n",
			TypeHash: "RIHS01_00", Definition: plugin.Definition{Encoding: "ros2msg", Text: "string data\n"}, Sources: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		if err := w.Write([]plugin.Message{sampleMessage(i, size)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(plugin.Metadata{Version: 9, Text: "version: 9\nros_distro: jazzy\n"}); err != nil {
		t.Fatal(err)
	}
	return path
}

func sampleMessage(i, size int) plugin.Message {
	data := make([]byte, size)
	for k := range data {
		data[k] = byte(i*7 + k*k)
	}
	return plugin.Message{Topic: plugin.TopicID(i%3 + 1), RecvTime: int64(1e18) + int64(i), SendTime: int64(1e18) + int64(i) - 5, Source: 1, Seq: uint64(i + 1), Order: uint64(2*i + 2), Data: data}
}

// A file cut off at any byte opens with what is whole, and says where it ends.
func TestTruncated(t *testing.T) {
	b, err := os.ReadFile(writeSample(t, plugin.WriteOptions{}, 2000, 1000))
	if err != nil {
		t.Fatal(err)
	}
	first := nth(b, opChunk, 0)
	last := nth(b, opChunk, 2)
	inFirst := 0
	for _, p := range listRecords(b[first.off+chunkFixed : first.off+first.n]) {
		if p.op == opMessage {
			inFirst++
		}
	}
	cuts := map[int64]int{first.off: 0, first.off + first.n - 1: 0, last.off + last.n: 2000, int64(len(b)) - 8: 2000, int64(len(b)) - 1: 2000}
	for i := int64(0); i < 20; i++ {
		cuts[int64(len(magic))+i*int64(len(b)-8)/20] = -1
	}
	for n, want := range cuts {
		path := filepath.Join(t.TempDir(), "cut.mcap")
		if err := os.WriteFile(path, b[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		r := open(t, path)
		ms, err := plugintest.ReadAll(r, plugin.Query{})
		info := r.Info()
		if err != nil || want >= 0 && len(ms) != want || info.Messages != uint64(len(ms)) || !info.Unclean {
			t.Errorf("cut at %d: %d messages, info %d, want %d, unclean %v, %v", n, len(ms), info.Messages, want, info.Unclean, err)
		}
		for i := range ms {
			if w := sampleMessage(i, 1000); !plugintest.SameMessage(&ms[i], &w) {
				t.Fatalf("cut at %d: message %d is %+v", n, i, ms[i])
			}
		}
		if all := strings.Join(info.Warnings, "\n"); !strings.Contains(all, "unfinished file") || !strings.Contains(all, "byte ") {
			t.Errorf("cut at %d: warnings %q", n, all)
		}
	}
}

// Whatever is changed in a file: no panic, and no message that was not written.
func TestMutations(t *testing.T) {
	for _, o := range []plugin.WriteOptions{{}, {Preset: plugin.PresetSmall}, {Config: map[string]any{"noChunking": true}}, {Config: map[string]any{"compression": "Lz4"}}} {
		b, err := os.ReadFile(writeSample(t, o, 30, 100))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.mcap")
		for at := len(magic); at < len(b); at += 29 {
			for _, x := range []byte{0x01, 0x80} {
				c := append([]byte(nil), b...)
				c[at] ^= x
				if err := os.WriteFile(path, c, 0o644); err != nil {
					t.Fatal(err)
				}
				r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
				if err != nil {
					continue
				}
				ms, _ := plugintest.ReadAll(r, plugin.Query{})
				for _, m := range ms {
					if w := sampleMessage(int(m.RecvTime-1e18), 100); !plugintest.SameMessage(&m, &w) {
						t.Errorf("%+v: byte %d changed by %#x: message %+v", o, at, x, m)
					}
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// Lengths from nowhere cost an error and no memory.
func TestHostileLengths(t *testing.T) {
	b, err := os.ReadFile(writeSample(t, plugin.WriteOptions{Preset: plugin.PresetSmall}, 30, 100))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range listRecords(b) {
		for _, v := range []uint64{1 << 63, 1<<64 - 1, 1 << 40, 0} {
			for _, field := range []int64{1, recordHead, recordHead + 2, recordHead + 16, recordHead + 28} {
				if field+8 > p.n {
					continue
				}
				c := append([]byte(nil), b...)
				le.PutUint64(c[p.off+field:], v)
				path := filepath.Join(t.TempDir(), "h.mcap")
				if err := os.WriteFile(path, c, 0o644); err != nil {
					t.Fatal(err)
				}
				r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
				if err != nil {
					continue
				}
				_, _ = plugintest.ReadAll(r, plugin.Query{})
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// Salvage finds what is whole behind damage that ends reading.
func TestSalvage(t *testing.T) {
	for _, c := range []struct {
		name       string
		breakIt    func(string) error
		kept, lost uint64
		note       string
	}{
		{"whole", func(string) error { return nil }, 2000, 0, ""},
		{"payload", flip(opChunk, 1, 5000), 0, 1, "messages are lost"},
		{"length of a chunk", flip(opChunk, 1, 7), 0, 0, "damaged"},
		{"pack", flip(opPack, 1, 60), 2000, 0, "sources"},
		{"cut off", edit(func(b []byte) []byte { p := nth(b, opChunk, 2); return b[:p.off+100] }), 0, 0, "cut off"},
	} {
		path := writeSample(t, plugin.WriteOptions{}, 2000, 1000)
		if err := c.breakIt(path); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out.mcap")
		w, err := Driver{}.Create(context.Background(), out, plugin.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := Driver{}.Salvage(context.Background(), path, w)
		if err = errors.Join(err, w.Close(plugin.Metadata{})); err != nil {
			t.Fatal(c.name, err)
		}
		if c.kept != 0 && rep.Messages != c.kept || rep.Messages < 1200 || (rep.Lost > 0) != (c.lost > 0) || c.lost > 0 && rep.Messages+rep.Lost != 2000 {
			t.Errorf("%s: %+v", c.name, rep)
		}
		if all := strings.Join(rep.Notes, "\n"); c.note == "" && all != "" || !strings.Contains(all, c.note) {
			t.Errorf("%s: notes %q", c.name, all)
		}
		ms, err := plugintest.ReadAll(open(t, out), plugin.Query{})
		if err != nil || uint64(len(ms)) != rep.Messages {
			t.Errorf("%s: %d messages, %v", c.name, len(ms), err)
		}
		for _, m := range ms {
			w := sampleMessage(int(m.RecvTime-1e18), 1000)
			if c.name == "pack" {
				m.Order, m.Source, w.Order, w.Source = 0, 0, 0, 0
			}
			if !plugintest.SameMessage(&m, &w) {
				t.Fatalf("%s: message %+v", c.name, m)
			}
		}
	}
}
