package leveldb

import (
	"context"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gobag/gobag/plugin"
)

func TestGoldenKeys(t *testing.T) {
	for _, c := range []struct {
		s    stamp
		want string
	}{
		{stamp{0, 1}, "6d80000000000000000000000000000001"},
		{stamp{math.MinInt64, 0}, "6d00000000000000000000000000000000"},
		{stamp{-1, 2}, "6d7fffffffffffffff0000000000000002"},
		{stamp{1_700_000_000_000_000_000, 1<<63 - 1}, "6d97979cfe362a00007fffffffffffffff"},
		{stamp{math.MaxInt64, math.MaxUint64}, "6dffffffffffffffffffffffffffffffff"},
	} {
		b := appendMessageKey(nil, c.s)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("key of %+v: %s, want %s", c.s, got, c.want)
		}
	}
	if got := hex.EncodeToString(numberKey(kindTopic, 258)); got != "6600000102" {
		t.Errorf("key of topic 258: %s", got)
	}
	if got := hex.EncodeToString(countsKey(4, 5)); got != "6400000000000000040000000000000005" {
		t.Errorf("key of counts: %s", got)
	}
}

func TestGoldenValues(t *testing.T) {
	for _, c := range []struct {
		m    plugin.Message
		want string
	}{
		{plugin.Message{Topic: 1}, "01000000"},
		{plugin.Message{Topic: 300, RecvTime: 1000, SendTime: 990, Source: 2, Seq: 129, Data: []byte{0, 1}}, "ac0202810113" + "0001"},
		{plugin.Message{Topic: 1, RecvTime: 1, SendTime: 0}, "01000001"},
	} {
		b := append(appendHeader(nil, &c.m), c.m.Data...)
		if got := hex.EncodeToString(b); got != c.want {
			t.Errorf("value of %+v: %s, want %s", c.m, got, c.want)
		}
	}
}

// What lies on the disk after a sync of one topic and one message, byte for byte.
func TestGoldenFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.leveldb")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	mustTopic(t, w, plugin.Topic{Name: "/a", Type: "b"})
	if err := w.Write([]plugin.Message{{Topic: 1, RecvTime: 5, SendTime: 5, Data: []byte("hello")}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"CURRENT": hex.EncodeToString([]byte("MANIFEST-000001\n")),
		// checksum, length, type; then comparator, journal 3, journal 2 before it, next file 4, sequence number 0
		"MANIFEST-000001": "f15715c4" + "2400" + "01" + "011a6c6576656c64622e4279746577697365436f6d70617261746f72" + "0203" + "0902" + "0304" + "0400",
		// batch 1: the format; batch 2: the topic
		"000002.log": "afbf1a88" + "1100" + "01" + "0100000000000000" + "01000000" + "01" + "0161" + "0101" +
			"e467ba18" + "1e00" + "01" + "0200000000000000" + "01000000" + "01" + "056600000001" + "0a" + "022f61" + "0162" + "00" + "00" + "00" + "00" + "00",
		// batch 2^40: the message
		"000003.log": "8b324a76" + "2900" + "01" + "0000000000010000" + "01000000" + "01" + "11" + "6d80000000000000050000000000000001" + "09" + "01000000" + "68656c6c6f",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(b); got != want {
			t.Errorf("%s:\n%s, want\n%s", name, got, want)
		}
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range es {
		names = append(names, e.Name())
	}
	if want := []string{"000005.ldb", "000006.ldb", "CURRENT", "LOCK", "MANIFEST-000001"}; !slices.Equal(names, want) {
		t.Errorf("after closing there is %q, want %q", names, want)
	}
}

func mustCreate(t testing.TB, dir string, o plugin.WriteOptions) plugin.Writer {
	t.Helper()
	w, err := Driver{}.Create(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(plugin.Metadata{}) })
	return w
}

func mustTopic(t testing.TB, w plugin.Writer, tp plugin.Topic) plugin.TopicID {
	t.Helper()
	id, err := w.AddTopic(tp)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func mustOpen(t testing.TB, path string) plugin.Reader {
	t.Helper()
	r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}
