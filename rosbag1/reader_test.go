package rosbag1

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

var packings = []string{"none", "lz4", "bz2"}

func testdata(name string) string { return filepath.Join("testdata", name) }

// expected are the lines that rosbag's own reader gave.
func expected(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(testdata("messages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// readAll returns what an iterator gives, and the error that it ends with other than io.EOF.
func readAll(t *testing.T, r plugin.Reader, q plugin.Query) (out []plugin.Message, err error) {
	t.Helper()
	it, err := r.Messages(q)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, err
		}
		m.Data = bytes.Clone(m.Data)
		out = append(out, m)
	}
}

func line(info plugin.Info, m plugin.Message) string {
	t := info.Topics[m.Topic-1]
	sum := sha256.Sum256(m.Data)
	return fmt.Sprintf("%s %s %d %d %s", t.Name, t.Type, m.RecvTime, len(m.Data), hex.EncodeToString(sum[:8]))
}

func lines(info plugin.Info, ms []plugin.Message) (out []string) {
	for _, m := range ms {
		out = append(out, line(info, m))
	}
	return out
}

func mustOpen(t *testing.T, path string, whole bool) *reader {
	t.Helper()
	r, err := open(context.Background(), path, whole)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// Bags written by rosbag give what rosbag reads of them, by their index and without.
func TestRead(t *testing.T) {
	want := expected(t)
	for _, packing := range packings {
		for _, whole := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", packing, whole), func(t *testing.T) {
				r := mustOpen(t, testdata(packing+".bag"), whole)
				info := r.Info()
				if len(info.Warnings) > 0 || info.Unclean || info.Messages != uint64(len(want)) || len(r.blocks) < 5 {
					t.Errorf("info is %+v with %d chunks", info, len(r.blocks))
				}
				all, err := readAll(t, r, plugin.Query{})
				if err != nil {
					t.Fatal(err)
				}
				if got := lines(info, all); !slices.Equal(got, want) {
					t.Errorf("%d messages differ from the %d of rosbag", len(got), len(want))
				}
				if all[0].RecvTime != info.Start || all[len(all)-1].RecvTime != info.End {
					t.Error("start and end are not those of the messages")
				}
				back, err := readAll(t, r, plugin.Query{Reverse: true})
				if err != nil {
					t.Fatal(err)
				}
				slices.Reverse(back)
				if !slices.EqualFunc(all, back, func(a, b plugin.Message) bool {
					return a.Order == b.Order && a.RecvTime == b.RecvTime && a.Topic == b.Topic && a.Source == b.Source && bytes.Equal(a.Data, b.Data)
				}) {
					t.Error("backwards gives something else")
				}
			})
		}
	}
}

func TestTopics(t *testing.T) {
	info := mustOpen(t, testdata("lz4.bag"), false).Info()
	byName := map[string]plugin.TopicInfo{}
	for _, x := range info.Topics {
		byName[x.Name] = x
	}
	if len(byName) != 4 {
		t.Fatalf("%d topics", len(byName))
	}
	imu, latched := byName["/imu"], byName["/map_name"]
	if imu.Type != "sensor_msgs/Imu" || imu.SerializationFormat != "ros1" || imu.TypeHash != "6a62c6daae103f4ff57a132d6f95cec2" || imu.Count != 60 ||
		imu.Definition.Encoding != "ros1msg" || !strings.Contains(imu.Definition.Text, "MSG: geometry_msgs/Vector3") ||
		!slices.Equal(imu.Sources, []string{"/imu_node"}) || !strings.Contains(imu.OfferedQoS, "durability: volatile") {
		t.Errorf("/imu is %+v", imu)
	}
	if !strings.Contains(latched.OfferedQoS, "durability: transient_local") || strings.Contains(latched.OfferedQoS, "volatile") {
		t.Errorf("the latched topic has %s", latched.OfferedQoS)
	}
}

// Every choice of topics and times gives what choosing from all gives.
func TestQuery(t *testing.T) {
	for _, packing := range packings {
		r := mustOpen(t, testdata(packing+".bag"), false)
		all, err := readAll(t, r, plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		const t0, ms = 1700000000_000000000, 1000000
		for _, topics := range [][]plugin.TopicID{nil, {}, {1}, {2, 4}, {3, 99}} {
			for _, span := range []*plugin.TimeRange{nil, {Start: t0 + 100*ms, End: t0 + 250*ms}, {Start: t0 + 25*ms, End: t0 + 25*ms}, {Start: t0 + 9000*ms, End: t0 + 9001*ms}, {Start: 5, End: 4}} {
				got, err := readAll(t, r, plugin.Query{Topics: topics, Range: span})
				if err != nil {
					t.Fatal(err)
				}
				want := slices.DeleteFunc(slices.Clone(all), func(m plugin.Message) bool {
					return topics != nil && !slices.Contains(topics, m.Topic) || span != nil && (m.RecvTime < span.Start || m.RecvTime > span.End)
				})
				if !slices.EqualFunc(got, want, func(a, b plugin.Message) bool { return a.Order == b.Order && bytes.Equal(a.Data, b.Data) }) {
					t.Errorf("%s: topics %v, range %v: %d messages, want %d", packing, topics, span, len(got), len(want))
				}
			}
		}
	}
}

func TestShared(t *testing.T) {
	root := os.Getenv("GOBAG_SHARED")
	if root == "" {
		root = "../../shared"
	}
	path := filepath.Join(root, "fixtures/bags/29-ros1-bag-negative/test_bag.bag")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no shared fixtures")
	}
	for _, whole := range []bool{false, true} {
		r := mustOpen(t, path, whole)
		info := r.Info()
		msgs, err := readAll(t, r, plugin.Query{})
		if err != nil || len(info.Warnings) > 0 || uint64(len(msgs)) != info.Messages || info.Messages == 0 {
			t.Errorf("%d messages of %d, %v, warnings %q", len(msgs), info.Messages, err, info.Warnings)
		}
	}
}

// What is no bag, or none that can be read, is refused with a reason.
func TestRefused(t *testing.T) {
	good, err := os.ReadFile(testdata("none.bag"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		content, want string
	}{
		"empty":     {"", "not this storage format"},
		"old":       {"#ROSBAG V1.2\n" + string(good[13:]), "version \"1.2\""},
		"text":      {"hello", "not this storage format"},
		"encrypted": {magic + encryptedHeader(), "encrypted"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
		if !errors.Is(err, plugin.ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (Driver{}).OpenReader(context.Background(), testdata("lz4.bag"), plugin.ReadOptions{Config: map[string]any{"x": 1}}); err == nil {
		t.Error("a configuration was accepted")
	}
	if _, err := (Driver{}).Create(context.Background(), filepath.Join(dir, "new.bag"), plugin.WriteOptions{}); !errors.Is(err, plugin.ErrUnsupported) {
		t.Errorf("create: %v", err)
	}
	for path, want := range map[string]bool{testdata("lz4.bag"): true, filepath.Join(dir, "old"): true, filepath.Join(dir, "text"): false, filepath.Join(dir, "empty"): false, dir: false} {
		if is, err := (Driver{}).Detect(path); is != want || err != nil {
			t.Errorf("detect %s: %v, %v", path, is, err)
		}
	}
}

func field(name string, value []byte) []byte {
	b := le.AppendUint32(nil, uint32(len(name)+1+len(value)))
	return append(append(b, name+"="...), value...)
}

// record is a record of the format.
func record(data []byte, fields ...[]byte) []byte {
	h := bytes.Join(fields, nil)
	b := append(le.AppendUint32(nil, uint32(len(h))), h...)
	return append(le.AppendUint32(b, uint32(len(data))), data...)
}

func encryptedHeader() string {
	return string(record(nil, field("op", []byte{opBagHeader}), field("index_pos", make([]byte, 8)), field("encryptor", []byte("rosbag/AesCbcEncryptor"))))
}

// A reader is used by several goroutines at once.
func TestConcurrent(t *testing.T) {
	r := mustOpen(t, testdata("lz4.bag"), false)
	done := make(chan int)
	for range 4 {
		go func() {
			it, err := r.Messages(plugin.Query{})
			n := 0
			if err == nil {
				var m plugin.Message
				for it.Next(&m) == nil {
					n++
				}
			}
			done <- n
		}()
	}
	for range 4 {
		if n := <-done; n != 127 {
			t.Errorf("%d messages", n)
		}
	}
}
