//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// held and unheld are the traffic of the check of back-pressure, each of a publisher process of its own, with writers that
// keep all: in the time that the disk stands still more comes than the cache holds.
var (
	held   = []lab.Topic{{Kind: lab.Blob, Name: "/held", Instances: 5, Hz: 100, Size: 20_000, BlockMS: 30_000}}
	unheld = []lab.Topic{{Kind: lab.Blob, Name: "/unheld", Instances: 5, Hz: 100, Size: 20_000, BlockMS: 30_000}}
)

const (
	heldCache  = "20000000" // bytes
	heldFrozen = 6 * time.Second
)

// checkBackpressure freezes the disk while two publishers send: the one whose topics ask for back-pressure waits and loses
// nothing, the other one is never held and loses, counted.
func checkBackpressure(b *bench) error {
	for _, peer := range []lab.Vendor{lab.Cyclone, lab.Fast} {
		if err := backpressure(b, peer); err != nil {
			return fmt.Errorf("%s: %w", vendor(peer), err)
		}
	}
	return nil
}

func backpressure(b *bench, peer lab.Vendor) (err error) {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	disk, err := lab.NewDisk(lab.DiskOptions{Size: 2 << 30})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	dir := filepath.Join(disk.Dir, "bag")
	flags := append([]string{"--min-free-space", "0", "--max-cache-size", heldCache, "--backpressure"}, lab.Names(held)...)
	rec, err := b.gobag.Record(n, dir, append(append([]lab.Topic{}, held...), unheld...), flags...)
	if err != nil {
		return err
	}
	defer rec.Kill()
	if err := b.sleep(time.Second); err != nil {
		return err
	}
	var pubs []*lab.Proc
	for _, topics := range [][]lab.Topic{held, unheld} {
		p, err := n.PublishAs(peer, topics, "--seconds", "12", "--wait", "1", "--linger", "20")
		if err != nil {
			return err
		}
		defer p.Kill()
		if _, err := p.Await("start", 1, 30*time.Second); err != nil {
			return err
		}
		pubs = append(pubs, p)
	}
	if err := errors.Join(b.sleep(2*time.Second), disk.Freeze(), b.sleep(heldFrozen), disk.Thaw()); err != nil {
		return err
	}
	for _, p := range pubs {
		if err := p.Wait(2 * time.Minute); err != nil {
			return err
		}
	}
	if err := errors.Join(b.sleep(500*time.Millisecond), rec.Stop(60*time.Second)); err != nil {
		return err
	}
	info, err := b.gobag.Info(dir)
	if err != nil {
		return err
	}
	sum := func(topics []lab.Topic, p *lab.Proc) (sent, got, lost int64, late, p99 time.Duration) {
		for _, name := range lab.Names(topics) {
			t, s := info.Topic(name), lab.SentBy(p)[name]
			sent, got, lost = sent+s.Count, got+t.Count, lost+t.Lost.Sum()
			late, p99 = max(late, s.Late), max(p99, s.P99)
		}
		return sent, got, lost, late, p99
	}
	name := fmt.Sprintf("%s, disk frozen for %v", vendor(peer), heldFrozen)
	sent, got, lost, late, _ := sum(held, pubs[0])
	b.figure(got == sent && lost == 0 && sent > 0, name+", with --backpressure", "100 %", "%d of %d, %d lost", got, sent, lost)
	if peer == lab.Cyclone { // Fast DDS's writers have room for 5,000 samples each and need not wait
		b.figure(late > heldFrozen/3, name+", its publisher", "waits", "up to %s behind its schedule", ms(late))
	}
	sent, got, lost, late, p99 := sum(unheld, pubs[1])
	b.figure(got+lost == sent && lost > 0, name+", without", "loses; recorded + lost by reason = sent", "%d + %d of %d", got, lost, sent)
	b.figure(late < time.Second, name+", its publisher", "is not held (< 1 s behind its schedule)", "up to %s behind, p99 %s", ms(late), ms(p99))
	return nil
}
