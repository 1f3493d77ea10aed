package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
)

// TestPlayReadSplit: play publishes events/read_split when it goes over to the next file.
func TestPlayReadSplit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "std_msgs/msg/String"})
	if err != nil {
		t.Fatal(err)
	}
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	e.Str("x")
	for i := range 3 {
		for k := range 4 {
			if err := w.Write([]plugin.Message{{Topic: id, RecvTime: 1e18 + int64(i*4+k)*1e8, Data: e.Bytes()}}); err != nil {
				t.Fatal(err)
			}
		}
		if i < 2 {
			if err := w.Split(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	domain := testDomain(t)
	node, err := ros2.New(ros2.Options{Domain: domain, Range: ros2.RangeLocalhost, Name: "listener"})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	var mu sync.Mutex
	var got []string
	if _, err := node.Subscribe(ros.Topic{Name: "/events/read_split", Type: "rosbag2_interfaces/msg/ReadSplitEvent"}, ros.BestAvailableQoS(), func(s ros.Sample) {
		if d, err := cdr.NewDecoder(s.Data); err == nil {
			mu.Lock()
			got = append(got, fmt.Sprintf("%s %s %s", filepath.Base(d.Str()), filepath.Base(d.Str()), d.Str()))
			mu.Unlock()
		}
		s.Release()
	}); err != nil {
		t.Fatal(err)
	}
	if r := cli(nil, "play", dir, "--domain-id", strconv.Itoa(domain), "--localhost", "--disable-keyboard-controls"); r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.errOut)
	}
	want := []string{"bag_0.mcap bag_1.mcap rosbag2_player", "bag_1.mcap bag_2.mcap rosbag2_player"}
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		done := slices.Equal(got, want)
		mu.Unlock()
		if done {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("told %q, want %q", got, want)
		}
	}
}
