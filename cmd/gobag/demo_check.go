package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
)

// checkBag shows the bag and compares everything in it with what the robot published. It returns the numbers of the
// messages of each stream that are in the bag, in order.
func (d *demo) checkBag(ctx context.Context, res recorder.Result) ([][]uint64, error) {
	r, err := d.openBag(ctx)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if _, err := io.WriteString(d.out, infoText(r, nil, infoOptions{})); err != nil {
		return nil, err
	}
	byID := map[plugin.TopicID]int{}
	for _, t := range r.Info().Topics {
		for i, s := range d.streams {
			if s.Topic.Name == t.Name && s.Topic.Type == t.Type {
				byID[t.ID] = i
			}
		}
	}
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	kept := make([][]uint64, len(d.streams))
	next := make([]uint64, len(d.streams))
	var scratch []byte
	for m := (plugin.Message{}); ; {
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		i, ok := byID[m.Topic]
		if !ok {
			return nil, fmt.Errorf("the bag has a message of a topic that nobody published")
		}
		n, found := next[i], false
		for ; n < d.sent[i] && !found; n++ { // what is missing in between was lost, and is counted below
			found, scratch = d.streams[i].Matches(scratch, n, m.Data)
		}
		if !found {
			return nil, fmt.Errorf("%s: message %d in the bag is none that was published", d.streams[i].Topic.Name, len(kept[i]))
		}
		kept[i], next[i] = append(kept[i], n-1), n
	}
	return kept, d.reportKept(res, kept)
}

// reportKept prints the share of each topic and says what is wrong with it.
func (d *demo) reportKept(res recorder.Result, kept [][]uint64) error {
	t := table{header: []string{"Topic", "published", "recorded", "share", "lost: wire", "queue", "storage"},
		right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true}}
	var errs []error
	for i, s := range d.streams {
		l := res.Ledger.Topics[s.Topic.Name]
		have := uint64(len(kept[i]))
		t.add(s.Topic.Name, fmt.Sprint(d.sent[i]), fmt.Sprint(have), percent(have, d.sent[i]), fmt.Sprint(l.Lost.Wire), fmt.Sprint(l.Lost.Queue), fmt.Sprint(l.Lost.Storage))
		switch {
		case have+l.Lost.Total() != d.sent[i]:
			errs = append(errs, fmt.Errorf("%s: published %d, but recorded %d and lost %d", s.Topic.Name, d.sent[i], have, l.Lost.Total()))
		case have != d.sent[i]:
			errs = append(errs, fmt.Errorf("%s: %d of %d messages were lost (is the machine overloaded?)", s.Topic.Name, l.Lost.Total(), d.sent[i]))
		}
	}
	fmt.Fprintf(d.out, "\n%s", t.String())
	if len(errs) == 0 {
		fmt.Fprintln(d.out, "Every byte in the bag is what was published.")
	}
	return errors.Join(errs...)
}

// watcher compares what a subscription gets with what it should get.
type watcher struct {
	stream *perf.Stream
	want   []uint64 // numbers of the messages, in order

	mu      sync.Mutex
	scratch []byte
	got     int
	wrong   int // messages that were not the next one
}

func (w *watcher) handle(s ros.Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ok := false
	if w.got < len(w.want) {
		ok, w.scratch = w.stream.Matches(w.scratch, w.want[w.got], s.Data)
	}
	if !ok {
		w.wrong++
	}
	w.got++
	s.Release()
}

func (w *watcher) counts() (got, wrong int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got, w.wrong
}

// replay plays the bag from one participant and compares on another.
func (d *demo) replay(ctx context.Context, kept [][]uint64) error {
	subNode, err := d.node("demo_subscriber")
	if err != nil {
		return err
	}
	defer subNode.Close()
	watchers := make([]*watcher, len(d.streams))
	for i, s := range d.streams {
		watchers[i] = &watcher{stream: s, want: kept[i]}
		if _, err := subNode.Subscribe(s.Topic, ros.BestAvailableQoS(), watchers[i].handle); err != nil {
			return err
		}
	}
	playNode, err := d.node("gobag_player")
	if err != nil {
		return err
	}
	defer playNode.Close()
	r, err := d.openBag(ctx)
	if err != nil {
		return err
	}
	defer r.Close()
	p, err := player.New(player.Options{Node: playNode, Bag: r, Rate: d.rate, WaitAcked: 10 * time.Second, Logger: d.logger,
		OnEvent: func(e player.Event) {
			if e.Level > slog.LevelInfo && e.Kind != player.EventStarved { // at this rate a late message is no news
				d.logger.Log(ctx, e.Level, e.Text)
			}
		}})
	if err != nil {
		return err
	}
	res, err := play(d.app, p, ctx, &playFlags{noKeyboard: true, progressRate: 3})
	if err != nil {
		return err
	}
	d.awaitAll(ctx, watchers)
	var errs []error
	for i, w := range watchers {
		got, wrong := w.counts()
		if got != len(kept[i]) || wrong > 0 {
			errs = append(errs, fmt.Errorf("%s: the subscriber got %d of %d messages, %d of them not as they should be", w.stream.Topic.Name, got, len(kept[i]), wrong))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.out, "%s replayed in %.1f s, every byte arrived as published; late: p50 %s, p99 %s.\n", plural(res.Played, "message"), res.Elapsed.Seconds(),
		millis(res.Lateness.P50), millis(res.Lateness.P99))
	return err
}

// awaitAll waits until the subscriber has everything: an acknowledged sample may still be on its way to the handler.
func (d *demo) awaitAll(ctx context.Context, watchers []*watcher) {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		all := true
		for _, w := range watchers {
			got, _ := w.counts()
			all = all && got >= len(w.want)
		}
		if all {
			return
		}
	}
}
