package columnar

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// Any bytes in the place of the log: no panic, no message that the frames do not hold.
func FuzzLog(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "s.columnar")
	w := mustCreate(f, dir, plugin.WriteOptions{})
	mustTopic(f, w, reading)
	mustWrite(f, w, readings(10)...)
	if err := w.Sync(); err != nil {
		f.Fatal(err)
	}
	log := filepath.Join(dir, logDir, segmentName(1))
	b, err := os.ReadFile(log)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add([]byte(frameMagic))
	state, err := os.ReadFile(filepath.Join(dir, stateName))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, logDir), 0o755); err != nil {
			t.Fatal(err)
		}
		// The checksum is made right, so that the records are looked at.
		if fr, ok := parseFrame(b); ok && fr.length <= len(b)-frameHead {
			b = bytes.Clone(b)
			k := block{b: b[:frameHead+fr.length]}
			k.seal(uint64(fr.segment), fr.synced)
		}
		for name, content := range map[string][]byte{stateName: state, filepath.Join(logDir, segmentName(1)): b} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r, err := Driver{}.OpenReader(t.Context(), dir, plugin.ReadOptions{})
		if err != nil {
			return
		}
		defer r.Close()
		got, _ := readAll(t, r, plugin.Query{})
		total := 0
		for i := range got {
			total += len(got[i].Data)
		}
		if total > len(b) {
			t.Fatalf("%d bytes of payload from a log of %d", total, len(b))
		}
	})
}

func FuzzState(f *testing.F) {
	s := state{distro: "jazzy", metadata: plugin.Metadata{Version: 9, Text: "version: 9"}, firstLog: 3}
	if err := s.setTopic(plugin.Topic{ID: 1, Name: "/a", Type: "x/msg/Y", Sources: []string{"w"}, Definition: plugin.Definition{Encoding: "ros2msg", Text: "int8 x"}}); err != nil {
		f.Fatal(err)
	}
	if err := s.publish(&publication{parts: []partRef{{number: 4, kind: partTyped, topic: 1, def: 1, name: "topic=%2Fa/part-00004.parquet", rows: 3, size: 9, start: -1, end: 5}},
		topics: []topicSums{{1, 7, 3, 40}}}); err != nil {
		f.Fatal(err)
	}
	f.Add(s.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > stateHead {
			b = bytes.Clone(b)
			k := state{}
			copy(b, k.encode()[:len(stateMagic)])
			le.PutUint32(b[len(stateMagic):], uint32(len(b)-stateHead))
			le.PutUint32(b[len(stateMagic)+4:], checksum(b[stateHead:]))
		}
		got, err := parseState(b)
		if err != nil {
			return
		}
		again, err := parseState(got.encode())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.encode(), got.encode()) {
			t.Fatal("a state changes by being saved")
		}
	})
}

// A patch takes one payload to the other, and any patch takes any payload somewhere.
func FuzzPatch(f *testing.F) {
	f.Add([]byte("abcdef"), []byte("abXdef"), []byte{6, 2, 1, 'X'})
	f.Add([]byte("abc"), []byte("abcdef\x00"), []byte{3})
	f.Add([]byte("abc"), append([]byte("abX"), make([]byte, 500)...), []byte{3})
	f.Add([]byte("abcdef"), []byte{}, []byte{0xff, 0xff, 3})
	f.Fuzz(func(t *testing.T, a, b, p []byte) {
		patch := appendPatch(nil, a, b)
		for _, room := range []int64{0, int64(len(b))} {
			if room == 0 && !patchable(a, b, len(patch)) {
				continue
			}
			got, err := applyPatch(append([]byte("before"), a...), 6, patch, room)
			if err != nil || !bytes.Equal(got, append([]byte("before"), b...)) {
				t.Fatalf("%x to %x by %x gives %x, %v", a, b, patch, got, err)
			}
		}
		got, err := applyPatch(bytes.Clone(a), 0, p, 0)
		if err == nil && len(got) > len(a)+len(p)+3 {
			t.Fatalf("%d bytes from %d by a patch of %d", len(got), len(a), len(p))
		}
	})
}
