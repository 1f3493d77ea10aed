package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
)

// checker reads a bag and collects what is wrong with it and what is noteworthy.
type checker struct {
	r      *bag.Reader
	info   bag.Info
	topics map[plugin.TopicID]*checkedTopic

	errors, notes []string
	read          uint64
	bytes         int64
	last          int64 // stamp of the message before
	first         bool
	disorder      uint64
}

// checkedTopic is what reading tells of a topic.
type checkedTopic struct {
	info     *bag.TopicInfo
	count    uint64
	notCDR   uint64
	gap      time.Duration
	gapAt    int64
	last     int64
	sources  map[uint32]*checkedSource
	noSource uint64 // messages of a writer that the topic does not list
}

// checkedSource is what reading tells of a writer.
type checkedSource struct {
	last    uint64
	missing uint64 // sequence numbers between those that are there
	again   uint64 // messages whose number was there before, or smaller
}

// maxLines of a kind are written out.
const maxLines = 20

func newChecker(r *bag.Reader) *checker {
	c := &checker{r: r, info: r.Info(), topics: map[plugin.TopicID]*checkedTopic{}, first: true}
	for i := range c.info.Topics {
		t := &c.info.Topics[i]
		c.topics[t.ID] = &checkedTopic{info: t, sources: map[uint32]*checkedSource{}}
	}
	return c
}

func (c *checker) errorf(format string, args ...any) {
	c.errors = append(c.errors, fmt.Sprintf(format, args...))
}
func (c *checker) notef(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func (c *checker) run(ctx context.Context) {
	for _, w := range c.info.Warnings {
		c.errorf("%s", w)
	}
	if c.info.StillRecording {
		c.notef("somebody is recording into it: what comes meanwhile is not looked at")
	}
	if !c.messages(ctx) {
		return
	}
	c.counts()
	for _, t := range c.info.Topics {
		c.topic(c.topics[t.ID])
	}
	c.recording()
}

// messages reads all of them. False when ctx ended first.
func (c *checker) messages(ctx context.Context) bool {
	it, err := c.r.Messages(plugin.Query{})
	if err != nil {
		c.errorf("%v", err)
		return true
	}
	defer it.Close()
	var m plugin.Message
	var damage *plugin.CorruptError
	for found := 0; ; {
		switch err := it.Next(&m); {
		case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
			return true
		case errors.As(err, &damage) && found < 1000:
			found++
			c.errorf("damaged: %v", err)
			continue
		case err != nil:
			c.errorf("reading stopped: %v", err)
			return true
		}
		if c.read&1023 == 0 && ctx.Err() != nil {
			c.errorf("stopped after %d messages", c.read)
			return false
		}
		c.message(&m)
	}
}

func (c *checker) message(m *plugin.Message) {
	c.read++
	c.bytes += int64(len(m.Data))
	if !c.first && m.RecvTime < c.last {
		c.disorder++
	}
	c.first, c.last = false, m.RecvTime
	t := c.topics[m.Topic]
	if t == nil { // of a file that was opened meanwhile
		t = &checkedTopic{info: &bag.TopicInfo{}, sources: map[uint32]*checkedSource{}}
		c.topics[m.Topic] = t
	}
	if t.count > 0 && time.Duration(m.RecvTime-t.last) > t.gap {
		t.gap, t.gapAt = time.Duration(m.RecvTime-t.last), t.last
	}
	t.count++
	t.last = m.RecvTime
	if t.info.SerializationFormat == "cdr" {
		if _, _, _, err := cdr.Split(m.Data); err != nil {
			t.notCDR++
		}
	}
	if m.Source == 0 {
		return
	}
	if int(m.Source) > len(t.info.Sources) {
		t.noSource++
	}
	if m.Seq == 0 {
		return
	}
	s := t.sources[m.Source]
	switch {
	case s == nil:
		t.sources[m.Source] = &checkedSource{last: m.Seq}
	case m.Seq <= s.last:
		s.again++
	default:
		s.missing += m.Seq - s.last - 1
		s.last = m.Seq
	}
}

// counts compares what was read with what the bag says of itself.
func (c *checker) counts() {
	if c.disorder > 0 {
		c.errorf("%d messages come before the one in front of them", c.disorder)
	}
	if c.info.StillRecording {
		return
	}
	if c.read != c.info.Messages {
		c.errorf("%d messages were read, the bag says %d", c.read, c.info.Messages)
	}
	for _, t := range c.info.Topics {
		if x := c.topics[t.ID]; x.count != t.Count {
			c.errorf("topic %s: %d messages were read, the bag says %d", printable(t.Name), x.count, t.Count)
		}
	}
	var files uint64
	for _, f := range c.info.Files {
		files += f.Messages
		if f.CutOff {
			c.errorf("file %s was not closed in order", printable(f.Path))
		}
	}
	var repeats uint64
	for _, x := range c.info.Repeats {
		for i, f := range c.info.Files {
			if i > 0 && strings.TrimSuffix(f.Path, ".zstd") == strings.TrimSuffix(x.File, ".zstd") {
				for _, n := range x.Topics {
					repeats += uint64(n)
				}
			}
		}
	}
	if files != c.info.Messages+repeats {
		c.errorf("the files hold %d messages, the bag says %d and %d repeats", files, c.info.Messages, repeats)
	}
}

// topic looks at one topic.
func (c *checker) topic(t *checkedTopic) {
	i, name := t.info, printable(t.info.Name)
	if t.notCDR > 0 {
		c.errorf("topic %s: %d payloads are no CDR", name, t.notCDR)
	}
	if t.noSource > 0 {
		c.errorf("topic %s: %d messages are of writers that it does not list", name, t.noSource)
	}
	var missing, again uint64
	for _, s := range t.sources {
		missing += s.missing
		again += s.again
	}
	if again > 0 {
		c.notef("topic %s: %d messages have a sequence number that came before", name, again)
	}
	if i.OfferedQoS != "" && i.QoS == nil {
		c.errorf("topic %s: its quality of service cannot be read", name)
	}
	c.definition(i, name)
	l := i.Ledger
	if l == nil {
		if missing > 0 {
			c.notef("topic %s: %d sequence numbers are missing", name, missing)
		}
		return
	}
	if !c.info.CutOff && !c.info.StillRecording && l.Recorded-min(l.Recorded, l.Deleted) != t.count {
		c.notef("topic %s: %d messages, the ledger says that %d were recorded and %d deleted again", name, t.count, l.Recorded, l.Deleted)
	}
	if sum := l.Recorded + l.Skipped + l.Lost.Queue + l.Lost.Storage; sum != l.Received && !c.info.CutOff {
		c.errorf("topic %s: the ledger does not add up: %d received, %d accounted for", name, l.Received, sum)
	}
	if n := l.Lost.Total(); n > 0 {
		c.notef("topic %s: %d messages were lost while recording: %d on the wire, %d at the queue, %d by the storage", name, n, l.Lost.Wire, l.Lost.Queue, l.Lost.Storage)
	}
	if missing > l.Lost.Total()+l.Skipped {
		c.errorf("topic %s: %d sequence numbers are missing, the ledger explains %d", name, missing, l.Lost.Total()+l.Skipped)
	}
}

// definition compares the definition of a topic's type with its hash.
func (c *checker) definition(t *bag.TopicInfo, name string) {
	d := t.Definition
	if d.Encoding != "ros2msg" && d.Encoding != "ros2idl" {
		if t.SerializationFormat == "cdr" && d.Text == "" {
			c.notef("topic %s: there is no definition of %s", name, printable(t.Type))
		}
		return
	}
	desc, err := msg.DescribeText(t.Type, d.Encoding, d.Text)
	if err != nil {
		c.errorf("topic %s: %v", name, err)
		return
	}
	if hash := desc.Hash(); t.TypeHash != "" && strings.HasPrefix(t.TypeHash, msg.HashPrefix) && hash != t.TypeHash {
		c.errorf("topic %s: its definition has the hash %s, its publishers announced %s", name, hash, printable(t.TypeHash))
	}
}

// recording tells what the recorder noted.
func (c *checker) recording() {
	for _, s := range c.info.ClockSteps {
		c.notef("the wall clock was set by %+.3f s after %.1f s of recording", float64(s.After-s.Before)/1e9, s.Monotonic.Seconds())
	}
	for _, s := range c.info.SimJumps {
		c.notef("/clock went back by %.3f s after %.1f s of recording", float64(s.Before-s.After)/1e9, s.Monotonic.Seconds())
	}
	for _, o := range c.info.Overloads {
		c.notef("%s", overloadText(o))
	}
}

// overloadText is an overload in words.
func overloadText(o bag.Overload) string {
	return fmt.Sprintf("the queue was full from %.0f s to %.0f s of recording: %s dropped, most on %s", o.From.Seconds(), o.To.Seconds(), plural(o.Dropped, "message"), printable(o.Worst))
}

// text is the report.
func (c *checker) text(path string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s on %s, %s of payload in %s\n", printable(path), plural(c.read, "message"), plural(uint64(len(c.info.Topics)), "topic"),
		fileSize(c.bytes), countFiles(len(c.info.Files)))
	t := table{header: []string{"Topic", "messages", "longest gap"}, right: map[int]bool{1: true, 2: true}}
	ids := make([]plugin.TopicID, 0, len(c.topics))
	for _, i := range c.info.Topics {
		ids = append(ids, i.ID)
	}
	slices.SortFunc(ids, func(x, y plugin.TopicID) int { return strings.Compare(c.topics[x].info.Name, c.topics[y].info.Name) })
	for _, id := range ids {
		x := c.topics[id]
		gap := "-"
		if x.count > 1 {
			gap = fmt.Sprintf("%.3f s", x.gap.Seconds())
		}
		t.add(printable(x.info.Name), fmt.Sprint(x.count), gap)
	}
	if len(ids) > 0 {
		b.WriteString(t.String())
	}
	for _, kind := range []struct {
		name  string
		lines []string
	}{{"error", c.errors}, {"note", c.notes}} {
		for i, l := range kind.lines {
			if i == maxLines {
				fmt.Fprintf(&b, "%s: and %d more\n", kind.name, len(kind.lines)-i)
				break
			}
			fmt.Fprintf(&b, "%s: %s\n", kind.name, printable(l))
		}
	}
	if len(c.errors) == 0 {
		b.WriteString("nothing is wrong\n")
	}
	return b.String()
}
