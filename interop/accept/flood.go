//go:build linux

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// floodRate is how many hostile datagrams come in a second.
const floodRate = 50_000

// besideFlood is 10 MB/s beside which the flood comes, with writers that keep what is not acknowledged.
var besideFlood = []lab.Topic{
	{Kind: lab.Blob, Name: "/steady", Instances: 10, Hz: 100, Size: 10_000},
	{Kind: lab.Imu, Name: "/imu", Hz: 500},
}

// checkFlood records while damaged datagrams in the names of real and made-up peers come to every socket of the recorder.
func checkFlood(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	bags, err := openBags()
	if err != nil {
		return err
	}
	dir := filepath.Join(bags, "bag")
	rec, err := b.gobag.Record(n, dir, besideFlood, "--min-free-space", "0")
	if err != nil {
		return err
	}
	defer rec.Kill()
	rss := rec.WatchRSS()
	seconds := pick(b, 20, 5)
	if err := b.sleep(time.Second); err != nil {
		return err
	}
	pub, err := n.Publish(besideFlood, "--seconds", strconv.Itoa(seconds+2), "--wait", "1", "--linger", "10")
	if err != nil {
		return err
	}
	defer pub.Kill()
	if _, err := pub.Await("start", 1, 30*time.Second); err != nil {
		return err
	}
	seed := rand.Uint64()
	b.note("seed %d", seed)
	hostile, err := startChild(n, "flood-child", "-domain", strconv.Itoa(n.Domain), "-seconds", strconv.Itoa(seconds), "-seed", strconv.FormatUint(seed, 10))
	if err != nil {
		return err
	}
	defer hostile.Kill()
	for _, p := range []*lab.Proc{hostile, pub} {
		if err := p.Wait(time.Minute + time.Duration(seconds)*time.Second); err != nil {
			return err
		}
	}
	if err := rec.Stop(60 * time.Second); err != nil {
		return err
	}
	done := lab.Event{}
	if all := hostile.Events("done"); len(all) > 0 {
		done = all[0]
	}
	rate := float64(done.Int("sent")) / float64(seconds)
	b.figure(rate >= 0.9*floodRate, "flood", fmt.Sprintf("%d datagrams/s", floodRate), "%.0f datagrams/s for %d s", rate, seconds)
	info, err := b.gobag.Info(dir)
	if err != nil {
		return err
	}
	sent, late := int64(0), time.Duration(0)
	for _, s := range lab.SentBy(pub) {
		sent += s.Count
		late = max(late, s.Late)
	}
	b.figure(info.MessageCount == sent, "recording of 10 MB/s beside it", "nothing lost", "%d of %d messages, publisher up to %s late", info.MessageCount, sent, ms(late))
	b.figure(rss() <= 2*recorderMemory, "its memory", fmt.Sprintf("≤ %d MiB", 2*recorderMemory>>20), "%.0f MiB", float64(rss())/(1<<20))
	return nil
}

// floodChild sends damaged datagrams at a steady rate to the sockets of the first participants of a domain on this host.
func floodChild(args []string) error {
	flags := flag.NewFlagSet("flood-child", flag.ContinueOnError)
	domain := flags.Int("domain", 0, "domain")
	seconds := flags.Int("seconds", 1, "how long")
	seed := flags.Uint64("seed", 0, "seed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	seeds, err := captured(filepath.Join("rtps", "wire", "testdata"))
	if err != nil {
		return err
	}
	m := &mutator{r: rand.New(rand.NewPCG(*seed, 2)), seeds: seeds}
	var sockets []net.Conn
	base := 7400 + 250**domain
	for _, to := range []string{"127.0.0.1:" + strconv.Itoa(base+10), "127.0.0.1:" + strconv.Itoa(base+11), "239.255.0.1:" + strconv.Itoa(base)} {
		c, err := (&net.Dialer{LocalAddr: &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}}).Dial("udp4", to) // multicast needs no route from there
		if err != nil {
			return err
		}
		defer c.Close()
		sockets = append(sockets, c)
	}
	sent := 0
	begin := time.Now()
	for {
		passed := time.Since(begin)
		if passed >= time.Duration(*seconds)*time.Second {
			break
		}
		for due := int(passed.Seconds() * floodRate); sent < due; sent++ {
			_, _ = sockets[sent%len(sockets)].Write(m.next()) // refused or not
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Printf("{\"event\":\"done\",\"sent\":%d}\n", sent)
	return nil
}
