package perf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
)

// count reads the bag of a cell, every message of it: what is there, whether it is what was sent, how long after it was
// due it came, and what the ledger says is lost.
func (c *Cell) count(ctx context.Context, dir string, l Load) error {
	r, err := bag.Open(ctx, dir, bag.ReaderOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	info := r.Info()
	if info.CutOff {
		return fmt.Errorf("the bag was not closed in order")
	}
	c.Storage, c.BagBytes = info.StorageID, info.Size
	groups := map[string]int{}
	for i, g := range l.Groups {
		groups[g.Name] = i
	}
	numbers := map[string]int{}
	for i, t := range l.Topics() {
		numbers[t.Name] = i
	}
	k := newCounter(l, len(info.Topics), c.Publisher.Start)
	for _, t := range info.Topics {
		word, ours := strings.CutPrefix(t.Name, LoadTopicRoot)
		i, known := groups[strings.TrimRight(strings.TrimRight(word, "0123456789"), "_")]
		if !ours {
			continue
		}
		if !known {
			return fmt.Errorf("topic %s: nobody was asked to publish it", t.Name)
		}
		if t.Ledger == nil {
			return fmt.Errorf("the bag has no ledger for %s", t.Name)
		}
		k.topics[t.ID] = &countedTopic{name: t.Name, typ: t.Type, group: i, number: numbers[t.Name], last: -1}
		c.Groups[i].Lost.add(Lost{Wire: t.Ledger.Lost.Wire, Queue: t.Ledger.Lost.Queue, Storage: t.Ledger.Lost.Storage})
	}
	if err := k.read(ctx, r); err != nil {
		return err
	}
	var all Histogram
	for i := range c.Groups {
		c.Groups[i].Recorded, c.Groups[i].Latency = k.recorded[i], latencyOf(&k.latency[i])
		all.Merge(&k.latency[i])
	}
	c.Latency = latencyOf(&all)
	c.addLatencies(k.overTime, k.interval)
	c.balance()
	return nil
}

// counter goes through the messages of a bag.
type counter struct {
	load     Load
	start    int64 // wall clock, ns: of the publishers' first message
	interval time.Duration
	topics   map[plugin.TopicID]*countedTopic
	data     [][]byte // of each group, as published but for the stamp
	recorded []uint64
	latency  []Histogram
	overTime []time.Duration // largest latency of the messages due in each interval from start on
}

type countedTopic struct {
	name, typ string
	group     int
	number    int   // in the load; of our own topics
	last      int64 // number of the message before
}

func newCounter(l Load, topics int, start int64) *counter {
	k := &counter{load: l, start: start, interval: SeriesInterval(l.Span()), topics: make(map[plugin.TopicID]*countedTopic, topics),
		recorded: make([]uint64, len(l.Groups)), latency: make([]Histogram, len(l.Groups)), data: make([][]byte, len(l.Groups))}
	for i := range k.data {
		k.data[i] = l.groupData(i)
	}
	return k
}

func (k *counter) read(ctx context.Context, r *bag.Reader) error {
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return err
	}
	defer it.Close()
	var m plugin.Message
	for n := 0; ; n++ {
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		t := k.topics[m.Topic]
		if t == nil {
			continue // not of the load
		}
		s, err := t.stamp(m.Data, k.data[t.group], k.load.Seed, k.start)
		if err != nil {
			return fmt.Errorf("the bag's message %d, of %s: %w", n, t.name, err)
		}
		if s.number <= t.last {
			return fmt.Errorf("the bag's message %d, of %s: it is the publisher's message %d, after its message %d", n, t.name, s.number, t.last)
		}
		t.last = s.number
		k.recorded[t.group]++
		if s.due != 0 {
			late := time.Duration(m.RecvTime - s.due)
			k.latency[t.group].Add(late)
			if at := int((s.due - k.start) / int64(k.interval)); at >= 0 && at < 10000 {
				for len(k.overTime) <= at {
					k.overTime = append(k.overTime, 0)
				}
				k.overTime[at] = max(k.overTime[at], late)
			}
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// sentStamp is what a message says of itself.
type sentStamp struct {
	number int64
	due    int64 // wall clock, ns; 0 unknown
}

// stamp reads it, and compares the rest of our own messages with what was sent. group is the data of the topic's group.
func (t *countedTopic) stamp(payload, group []byte, seed uint64, start int64) (s sentStamp, err error) {
	switch t.typ {
	case loadType:
	case peerType:
		return peerStamp(payload, start)
	default:
		return s, fmt.Errorf("its type is %s", t.typ)
	}
	d, err := cdr.NewDecoder(payload)
	if err != nil {
		return s, err
	}
	data := d.ByteSeq()
	if err := d.Err(); err != nil {
		return s, err
	}
	if len(data) != len(group) {
		return s, fmt.Errorf("it has %d bytes of data, not the %d that were sent", len(data), len(group))
	}
	number := binary.LittleEndian.Uint64(data[8:])
	if topic := binary.LittleEndian.Uint64(data); topic != uint64(t.number) || !isMessage(data, group, messageKey(seed, t.number, number)) {
		return s, fmt.Errorf("its %d bytes are not those that were sent", len(data))
	}
	return sentStamp{int64(number), int64(binary.LittleEndian.Uint64(data[16:]))}, nil
}

// addLatencies puts latencies over time into the series of the cell.
func (c *Cell) addLatencies(overTime []time.Duration, interval time.Duration) {
	at := func(list []time.Duration, from, to float64) (worst int64) {
		for i := max(0, int(from/interval.Seconds())); i < len(list) && float64(i)*interval.Seconds() < to; i++ {
			worst = max(worst, int64(list[i]))
		}
		return worst
	}
	before := 0.0
	for i := range c.Series {
		p := &c.Series[i]
		p.Latency = at(overTime, before, p.Seconds)
		p.Late = at(c.Publisher.LateOverTime, before, p.Seconds)
		before = max(0, p.Seconds)
	}
	c.Publisher.LateOverTime = nil // it is in the series now
}
