package recorder

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/mcap"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

// The default storage, in real time, read back through package bag.
func TestDefaultStorage(t *testing.T) {
	net := rostest.NewNetwork(rostest.Options{Seed: 3, Link: rostest.Link{Loss: 0.02, Spare: 1}})
	talker, node := net.Node("talker"), net.Node("recorder")
	defer talker.Close()
	defer node.Close()
	dir := filepath.Join(t.TempDir(), "bag")
	const n = 3000
	rec, err := New(Options{Node: node, All: true, Output: dir, MinFreeSpace: -1, MaxBagSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	var res Result
	go func() {
		var err error
		res, err = rec.Run(ctx)
		done <- err
	}()
	q := ros.DefaultQoS()
	q.Durability, q.Depth = ros.TransientLocal, n
	p, err := talker.Advertise(ros.Topic{Name: "/a", Type: str}, q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if i == n-1 {
			net.SetLink("/a", rostest.Link{})
		}
		if err := p.Publish(make([]byte, 1000), int64(i+1)); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s := rec.Snapshot()
		if s.Messages+net.Traffic("/a").Dropped == n || time.Now().After(deadline) {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	dropped := net.Traffic("/a").Dropped
	if l := res.Ledger.Topics["/a"]; l.Recorded+l.Lost.Wire != n || l.Lost.Wire != dropped || dropped == 0 {
		t.Fatalf("%+v, dropped %d", l, dropped)
	}

	r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	info := r.Info()
	if info.CutOff || info.Messages != res.Messages || len(info.Warnings) != 0 || len(info.Files) != res.Files || res.Files < 2 {
		t.Errorf("%+v", info)
	}
	if info.Ledger == nil || !equalLedgers(*info.Ledger, res.Ledger) {
		t.Errorf("ledger %+v, want %+v", info.Ledger, res.Ledger)
	}
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var m plugin.Message
	for last := uint64(0); ; last = m.Seq {
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if m.Seq <= last || m.SendTime != int64(m.Seq) || m.Source != 1 || len(m.Data) != 1000 {
			t.Fatalf("after message %d: seq %d send %d source %d", last, m.Seq, m.SendTime, m.Source)
		}
	}
}
