//go:build linux

package interop_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// gobag is the command under test, built once.
var gobag lab.Gobag

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	lab.Sweep()
	dir, err := os.MkdirTemp("", fmt.Sprintf("gobag-lab-%d-test-", os.Getpid()))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	gobag.Path = filepath.Join(dir, "gobag")
	if err := lab.Build("./cmd/gobag", gobag.Path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// needs skips the test, or fails it where interop is required, when err says that something is not installed.
func needs(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("GOBAG_INTEROP") == "required" {
		t.Fatal(err)
	}
	t.Skip(err)
}

// newNet makes a network for the test; peers must be built.
func newNet(t *testing.T) *lab.Net {
	t.Helper()
	_, err := lab.Peer("cy_pub")
	needs(t, err)
	n, err := lab.NewNet()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// record starts gobag record into a fresh bag; it is killed at the end of the test if it still runs.
func record(t *testing.T, n *lab.Net, topics []lab.Topic, flags ...string) *lab.Recording {
	t.Helper()
	rec, err := gobag.Record(n, filepath.Join(t.TempDir(), "bag"), topics, flags...)
	must(t, err)
	t.Cleanup(rec.Kill)
	return rec
}

func publish(t *testing.T, n *lab.Net, topics []lab.Topic, options ...string) *lab.Proc {
	t.Helper()
	p, err := n.Publish(topics, options...)
	must(t, err)
	t.Cleanup(p.Kill)
	return p
}

// subscribe starts a Cyclone subscriber with a log of arrivals.
func subscribe(t *testing.T, n *lab.Net, topics []lab.Topic, options ...string) (p *lab.Proc, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "arrivals")
	p, err := n.Subscribe(topics, append(options, "--log", log)...)
	must(t, err)
	t.Cleanup(p.Kill)
	return p, log
}

// whole checks that a bag holds exactly numbers 0…sent-1 of every topic, in order, every byte as published.
func whole(t *testing.T, dir string, topics []lab.Topic, sent map[string]lab.Sent) {
	t.Helper()
	got, err := lab.Contents(dir, topics)
	must(t, err)
	info, err := gobag.Info(dir)
	must(t, err)
	total := int64(0)
	for _, topic := range topics {
		for _, name := range topic.Names() {
			r := got[name]
			for _, err := range r.Errors {
				t.Error(err)
			}
			want := sent[name].Count
			total += want
			if seq := lab.Sequence(r.Numbers); want == 0 || seq != (lab.Run{First: 0, Last: want - 1}) {
				t.Errorf("%s: %d sent, the bag has %d: %+v", name, want, len(r.Numbers), seq)
			}
			entry := info.Topic(name)
			if entry.Count != want || entry.Type != topic.Type() || entry.TypeHash != topic.Hash || entry.Lost != (lab.Lost{}) ||
				entry.SerializationFormat != "cdr" {
				t.Errorf("%s: info says %+v, want %d of %s", name, entry, want, topic.Type())
			}
		}
	}
	storages := []string{"mcap", "sqlite3"} // the default, and what tests ask for whose readers know nothing else
	if !slices.Contains(storages, info.StorageIdentifier) || info.MessageCount != total || len(info.Topics) != len(got) {
		t.Errorf("info: storage %q, %d messages, %d topics; want one of %q, %d, %d", info.StorageIdentifier, info.MessageCount,
			len(info.Topics), storages, total, len(got))
	}
	if info.StartNS <= 0 || info.EndNS < info.StartNS || info.DurationNS != info.EndNS-info.StartNS || info.BagSize <= 0 {
		t.Errorf("info: start %d, end %d, duration %d, size %d", info.StartNS, info.EndNS, info.DurationNS, info.BagSize)
	}
}

const (
	stringHash = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
	patience   = 30 * time.Second
)
