//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// The receivers of loads beside the peers' subscribers (by vendor).
const (
	byRecorder = "gobag record"
	byProbe    = "gobag's reader alone"
)

// loadTrial is one receiver of one load.
type loadTrial struct {
	peer     lab.Vendor // the publisher
	receiver string
	topics   []lab.Topic
	seconds  float64  // of publishing; 0 = 3, noEnd = until the topics' counts are reached
	nobody   bool     // all without root
	rcvbuf   int      // of a Fast DDS subscriber, which asks for nothing by itself; 0 = 4 MiB
	dir      string   // of the recorder's bag, which is removed
	flags    []string // of the recorder
}

// noEnd is a trial that ends when every topic has sent its count.
const noEnd = -1

// reception is what one receiver got of a load.
type reception struct {
	sent, got int64
	lost      int64         // by what the recorder says
	late      time.Duration // how far the publisher fell behind its schedule, at worst
	p99       time.Duration // of the publisher's write calls, the topic where it was worst
	took      time.Duration // of publishing, acknowledgements included
	cpu       time.Duration // of the receiver
	rss       int64         // at most, bytes
	text      string        // what it printed
	more      string        // what it says of its losses
}

func (r reception) share() float64 { return float64(r.got) / float64(r.sent) }

func (r reception) String() string {
	return fmt.Sprintf("%.2f %% of %d, publisher up to %.0f ms late, receiver %.2f CPU s, %.0f MiB%s", 100*r.share(), r.sent,
		r.late.Seconds()*1e3, r.cpu.Seconds(), float64(r.rss)/(1<<20), r.more)
}

// errSubscriberDied says that a peer's subscriber was ended by a signal: Fast DDS 2.9 aborts now and then when it loses much.
var errSubscriberDied = errors.New("the peer's subscriber was ended by a signal")

// receiveLoad publishes for some seconds and says what the receiver got. Where a peer's subscriber dies it is done again.
func receiveLoad(b *bench, t loadTrial) (reception, error) {
	for attempt := 1; ; attempt++ {
		r, err := receiveOnce(b, t)
		if !errors.Is(err, errSubscriberDied) || attempt == 5 {
			return r, err
		}
		b.note("run repeated: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

func receiveOnce(b *bench, t loadTrial) (r reception, err error) {
	n, err := lab.NewNet()
	if err != nil {
		return r, err
	}
	defer n.Close()
	if t.nobody {
		if err := n.AsNobody(); err != nil {
			return r, err
		}
	}
	p, err := startReceiver(b, n, t)
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(t.dir)
	defer p.Kill()
	rss := p.WatchRSS()
	if t.seconds == 0 {
		t.seconds = 3
	}
	pub, err := n.PublishAs(t.peer, t.topics, "--seconds", fmt.Sprint(max(t.seconds, 0)), "--wait", "1", "--linger", "3")
	if err != nil {
		return r, err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(2*time.Minute+time.Duration(t.seconds*1e9)), b.sleep(200*time.Millisecond)); err != nil {
		return r, err
	}
	if err := p.Stop(60 * time.Second); err != nil {
		if p.ExitCode() == -1 && t.receiver != byRecorder && t.receiver != byProbe {
			err = fmt.Errorf("%w: %w", errSubscriberDied, err)
		}
		return r, err
	}
	for _, s := range lab.SentBy(pub) {
		r.sent += s.Count
		r.late, r.p99 = max(r.late, s.Late), max(r.p99, s.P99)
	}
	if r.sent == 0 {
		return r, errors.New("nothing was sent")
	}
	begin, end := pub.Events("start"), pub.Events("done")
	if len(begin) > 0 && len(end) > 0 {
		r.took = time.Duration(end[0].Int("mono_ns") - begin[0].Int("mono_ns"))
	}
	r.cpu, r.rss, r.text = p.CPU(), rss(), p.Stdout()+p.Stderr()
	return r, countReception(b, t, p, &r)
}

// startReceiver starts the receiver of a trial.
func startReceiver(b *bench, n *lab.Net, t loadTrial) (*lab.Proc, error) {
	switch t.receiver {
	case byRecorder:
		rec, err := b.gobag.Record(n, t.dir, t.topics, append([]string{"--min-free-space", "0"}, t.flags...)...)
		if err != nil {
			return nil, err
		}
		return rec.Proc, nil
	case byProbe:
		return n.SubscribeAs(lab.Own, t.topics)
	case vendor(lab.Cyclone):
		return n.SubscribeAs(lab.Cyclone, t.topics)
	default:
		size := t.rcvbuf
		if size == 0 {
			size = 4 << 20
		}
		return n.SubscribeAs(lab.Fast, t.topics, "--rcvbuf", strconv.Itoa(size))
	}
}

// countReception fills in what a receiver that has ended got.
func countReception(b *bench, t loadTrial, p *lab.Proc, r *reception) error {
	if t.receiver == byRecorder && slices.Contains(t.flags, toNull) {
		return countPrinted(r)
	}
	if t.receiver == byRecorder {
		info, err := b.gobag.Info(t.dir)
		if err != nil {
			return err
		}
		r.got = info.MessageCount
		var l lab.Lost
		for _, topic := range info.Topics {
			l.Wire, l.Queue, l.Storage = l.Wire+topic.Lost.Wire, l.Queue+topic.Lost.Queue, l.Storage+topic.Lost.Storage
		}
		r.lost = l.Sum()
		r.more = fmt.Sprintf(", lost by wire %d, queue %d, storage %d", l.Wire, l.Queue, l.Storage)
		return nil
	}
	for _, e := range p.Events("topic") {
		r.got += e.Int("got")
	}
	if done := p.Events("done"); t.receiver == byProbe && len(done) > 0 {
		r.more = fmt.Sprintf(", the kernel dropped %d datagrams", done[0].Int("kernel_drops"))
	}
	return nil
}

// A row of the table at the end of gobag record: name, recorded, share, and losses on the wire, at the queue, by the storage.
var ledgerRow = regexp.MustCompile(`(?m)^(\S+) +(\d+) +\S+ %? *(\d+)(?: \+ \?)? +(\d+) +(\d+) *$`)

// countPrinted fills in what a recorder that kept nothing says it got.
func countPrinted(r *reception) error {
	rows := ledgerRow.FindAllStringSubmatch(r.text, -1)
	if len(rows) == 0 {
		return fmt.Errorf("no table in what the recorder printed: %s", r.text)
	}
	var n [5]int64
	for i, text := range rows[len(rows)-1][1:] { // of several topics the last row sums up
		if i > 0 {
			n[i-1], _ = strconv.ParseInt(text, 10, 64)
		}
	}
	r.got, r.lost = n[0], n[1]+n[2]+n[3]
	r.more = fmt.Sprintf(", lost by wire %d, queue %d, storage %d", n[1], n[2], n[3])
	return nil
}
