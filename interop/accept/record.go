//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// robot is the traffic of the record check.
var robot = []lab.Topic{
	{Kind: lab.String, Name: "/chatter", Hz: 100},
	{Kind: lab.String, Name: "/chatter_best_effort", Hz: 100, BestEffort: true},
	{Kind: lab.Imu, Name: "/imu", Hz: 1000},
	{Kind: lab.Image, Name: "/camera/image", Hz: 30, Size: 1 << 20},
	{Kind: lab.String, Name: "/latched", Count: 10, TransientLocal: true, Depth: 10, Early: true},
}

// checkRecord records the robot in both orders of start; Fast DDS also with its default transports.
func checkRecord(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	if b.played, err = recorderFirst(b, n, b.peer); err != nil {
		return fmt.Errorf("recorder first: %w", err)
	}
	if err := publisherFirst(b, n); err != nil {
		return fmt.Errorf("publisher first: %w", err)
	}
	if b.peer == lab.Fast {
		if _, err := recorderFirst(b, n, lab.FastSHM); err != nil {
			return fmt.Errorf("shared memory: %w", err)
		}
	}
	return nil
}

// recorderFirst starts the recorder, then the publisher, which waits until it has a reader for every topic.
func recorderFirst(b *bench, n *lab.Net, peer lab.Vendor) (string, error) {
	scratch, err := b.dir("record")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(scratch, "bag")
	rec, err := b.gobag.Record(n, dir, robot, defaultForm...)
	if err != nil {
		return "", err
	}
	defer rec.Kill()
	if err := b.sleep(time.Second); err != nil {
		return "", err
	}
	pub, err := n.PublishAs(peer, robot, "--seconds", pick(b, "20", "4"), "--wait", "1")
	if err != nil {
		return "", err
	}
	defer pub.Kill()
	if err := pub.Wait(60 * time.Second); err != nil {
		return "", err
	}
	if err := errors.Join(b.sleep(200*time.Millisecond), rec.Stop(30*time.Second)); err != nil {
		return "", err
	}
	order := "recorder first"
	if peer != b.peer {
		order = vendor(peer)
	}
	return dir, compareRobot(b, order, dir, lab.SentBy(pub), false)
}

// publisherFirst starts the recorder into a running stream and watches the bag until the first message is in it.
func publisherFirst(b *bench, n *lab.Net) error {
	scratch, err := b.dir("record")
	if err != nil {
		return err
	}
	dir := filepath.Join(scratch, "bag")
	pub, err := n.PublishAs(b.peer, robot, "--seconds", pick(b, "22", "6"))
	if err != nil {
		return err
	}
	defer pub.Kill()
	if _, err := pub.Await("start", 1, 10*time.Second); err != nil {
		return err
	}
	if err := b.sleep(1500 * time.Millisecond); err != nil {
		return err
	}
	rec, err := b.gobag.Record(n, dir, robot, defaultForm...)
	if err != nil {
		return err
	}
	defer rec.Kill()
	first, err := lab.FirstOnDisk(dir, 10*time.Second)
	if err != nil {
		return err
	}
	took := time.Duration(first - rec.Started)
	b.figure(took < time.Second, "first message on disk, publisher first", "< 1 s after start", "%.0f ms", float64(took)/1e6)
	if err := pub.Wait(60 * time.Second); err != nil {
		return err
	}
	if err := errors.Join(b.sleep(200*time.Millisecond), rec.Stop(30*time.Second)); err != nil {
		return err
	}
	return compareRobot(b, "publisher first", dir, lab.SentBy(pub), true)
}

// compareRobot compares a bag with what the publisher sent. late: the recorder joined a running stream, and what volatile
// topics sent before is not expected.
func compareRobot(b *bench, order, dir string, sent map[string]lab.Sent, late bool) error {
	got, err := lab.Contents(dir, robot)
	if err != nil {
		return err
	}
	info, err := b.gobag.Info(dir)
	if err != nil {
		return err
	}
	var bad int
	for _, t := range robot {
		r := got[t.Name]
		bad += r.Bad
		for _, err := range r.Errors {
			b.note("%v", err)
		}
		seq, total := lab.Sequence(r.Numbers), sent[t.Name].Count
		entry := info.Topic(t.Name)
		count, l := entry.Count, entry.Lost
		if count != int64(len(r.Numbers)) {
			return fmt.Errorf("%s: info counts %d messages, the bag holds %d", t.Name, count, len(r.Numbers))
		}
		switch {
		case t.TransientLocal:
			b.figure(seq == lab.Run{First: 0, Last: total - 1}, order+", latched before the start", "all in the bag",
				"%d of %d", len(r.Numbers), total)
		case t.BestEffort:
			spanned := seq.Last - seq.First + 1
			b.figure(len(r.Numbers) > 0 && seq.Disorder == 0 && count+l.Sum() == spanned,
				order+", "+t.Name+" (best effort)", "recorded + lost = sent from first to last seen",
				"%d + %d of %d, %d sent", count, l.Sum(), spanned, total)
		default:
			want := total
			if late {
				want = total - max(seq.First, 0)
			}
			ok := len(r.Numbers) > 0 && seq.Missing == 0 && seq.Disorder == 0 && seq.Last == total-1 && (late || seq.First == 0) && l.Sum() == 0
			b.figure(ok, order+", "+t.Name+" (reliable)", "100 % recorded", "%.3f %% (%d of %d)",
				100*float64(len(r.Numbers))/float64(max(want, 1)), len(r.Numbers), want)
		}
	}
	b.figure(bad == 0, order+", payloads", "every byte as published", "%d differ", bad)
	return nil
}
