package leveldb

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"

	"github.com/gobag/gobag/plugin"
)

// stampComparer is the C++ plugin's order, for goleveldb.
type stampComparer struct{ bo binary.ByteOrder }

func (c stampComparer) Compare(a, b []byte) int {
	return cmp.Compare(int64(c.bo.Uint64(a)), int64(c.bo.Uint64(b)))
}
func (stampComparer) Name() string                    { return timestampComparator }
func (stampComparer) Separator(_, _, _ []byte) []byte { return nil }
func (stampComparer) Successor(_, _ []byte) []byte    { return nil }

// makePair writes a topic as the C++ plugin does: every third message is overwritten once, every fifth deleted.
func makePair(t *testing.T, dir, stem, name string, bo binary.ByteOrder, n int) {
	t.Helper()
	order := "L"
	if bo == binary.ByteOrder(binary.BigEndian) {
		order = "B"
	}
	db, err := leveldb.OpenFile(filepath.Join(dir, stem+pairMetadata), nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"N": name, "T": "std_msgs/msg/String", "SF": "cdr", "QF": "- history: 3\n", "E": order} {
		err = errors.Join(err, db.Put([]byte(k), []byte(v), nil))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	db, err = leveldb.OpenFile(filepath.Join(dir, stem+pairMessages), &opt.Options{Comparer: stampComparer{bo}, WriteBuffer: 20_000})
	if err != nil {
		t.Fatal(err)
	}
	put := func(i int, text string) {
		key := make([]byte, 8)
		bo.PutUint64(key, uint64(pairStamp(i)))
		err = errors.Join(err, db.Put(key, bytes.Repeat([]byte(text), 20), nil))
	}
	for i := range n {
		put(i, fmt.Sprintf("old %04d", i))
	}
	for i := range n {
		if i%3 == 0 {
			put(i, fmt.Sprintf("new %04d", i))
		}
		if i%5 == 0 {
			key := make([]byte, 8)
			bo.PutUint64(key, uint64(pairStamp(i)))
			err = errors.Join(err, db.Delete(key, nil))
		}
	}
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func pairStamp(i int) int64 { return int64(i)*1000 - 5000 }

func TestPairs(t *testing.T) {
	for _, bo := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		dir := filepath.Join(t.TempDir(), "bag_0")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		makePair(t, dir, "_b", "/b", bo, 1000)
		makePair(t, dir, "_a_c", "/a/c", bo, 500)
		if ok, err := (Driver{}).Detect(dir); !ok || err != nil {
			t.Fatalf("detect: %v %v", ok, err)
		}
		r := mustOpen(t, dir)
		i := r.Info()
		if len(i.Topics) != 2 || i.Topics[0].Name != "/a/c" || i.Topics[1].Name != "/b" || i.Topics[1].Type != "std_msgs/msg/String" ||
			i.Topics[1].OfferedQoS != "- history: 3\n" || i.Topics[0].Count != 400 || i.Topics[1].Count != 800 || i.Messages != 1200 ||
			i.Start != pairStamp(1) || i.End != pairStamp(999) || i.Unclean {
			t.Errorf("info: %+v", i)
		}
		for _, reverse := range []bool{false, true} {
			checkPairs(t, r, plugin.Query{Reverse: reverse})
			checkPairs(t, r, plugin.Query{Reverse: reverse, Topics: []plugin.TopicID{2}, Range: &plugin.TimeRange{Start: 0, End: 100_000}})
		}
		out := mustCreate(t, filepath.Join(t.TempDir(), "out.leveldb"), plugin.WriteOptions{})
		rep, err := Driver{}.Salvage(t.Context(), dir, out)
		if err != nil || rep.Messages < 1200 {
			t.Errorf("salvage: %+v, %v", rep, err)
		}
	}
}

func checkPairs(t *testing.T, r plugin.Reader, q plugin.Query) {
	t.Helper()
	got, err := readAll(t, r, q)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	type place struct {
		i     int
		topic plugin.TopicID
	}
	var want []place
	for i := range 1000 {
		for id, n := range []int{500, 1000} {
			s := pairStamp(i)
			if i >= n || i%5 == 0 || q.Range != nil && (s < q.Range.Start || s > q.Range.End) || q.Topics != nil && q.Topics[0] != plugin.TopicID(id+1) {
				continue
			}
			want = append(want, place{i, plugin.TopicID(id + 1)})
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%+v: %d messages, want %d", q, len(got), len(want))
	}
	for k := range got {
		w := want[k]
		if q.Reverse {
			w = want[len(want)-1-k]
		}
		text := fmt.Sprintf("old %04d", w.i)
		if w.i%3 == 0 {
			text = fmt.Sprintf("new %04d", w.i)
		}
		g := got[k]
		if g.Topic != w.topic || g.RecvTime != pairStamp(w.i) || !bytes.Equal(g.Data, bytes.Repeat([]byte(text), 20)) {
			t.Fatalf("%+v: message %d is topic %d at %d, %.8s; want topic %d at %d, %s", q, k, g.Topic, g.RecvTime, g.Data, w.topic, pairStamp(w.i), text)
		}
	}
}

// A bag that the C++ plugin recorded, message for message as rosbag2 plays it.
func TestRecordedByCpp(t *testing.T) {
	shared := os.Getenv("GOBAG_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "shared")
	}
	base := filepath.Join(shared, "fixtures", "rosbag2", "bags", "jazzy_leveldb")
	f, err := os.Open(base + ".expected.txt")
	if err != nil {
		t.Skip("the shared bags are not here")
	}
	defer f.Close()
	var want []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if lines.Text() != "" && lines.Text()[0] == '/' {
			want = append(want, lines.Text())
		}
	}
	r := mustOpen(t, filepath.Join(base, "jazzy_leveldb_0"))
	names := map[plugin.TopicID]string{}
	for _, tp := range r.Info().Topics {
		names[tp.ID] = tp.Name
		if tp.Type == "" || tp.SerializationFormat != "cdr" || tp.OfferedQoS == "" {
			t.Errorf("topic %+v", tp)
		}
	}
	got, err := readAll(t, r, plugin.Query{})
	if !errors.Is(err, io.EOF) || len(got) != len(want) || r.Info().Messages != uint64(len(want)) {
		t.Fatalf("%d messages, info says %d, want %d (%v)", len(got), r.Info().Messages, len(want), err)
	}
	for i, m := range got {
		h := uint64(1469598103934665603)
		for _, b := range m.Data {
			h = (h ^ uint64(b)) * 1099511628211
		}
		line := fmt.Sprintf("%s recv=%d send=%d len=%d fnv1a64=%016x", names[m.Topic], m.RecvTime, m.SendTime, len(m.Data), h)
		if line != want[i] {
			t.Errorf("message %d is\n%s, want\n%s", i, line, want[i])
		}
	}
}
