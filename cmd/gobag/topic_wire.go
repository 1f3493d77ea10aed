package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
)

// What waits for being printed, in messages and in bytes; what comes then is counted and left out.
const (
	wireQueue      = 1000
	wireQueueBytes = 64 << 20
)

// Waits on the wire.
const (
	missingAfter = 3 * time.Second // until it is said that a topic is not there
	askTimeout   = 5 * time.Second // for the definition of a type from its publisher
)

// wireTopics are topics on the network.
type wireTopics struct {
	a       *app
	node    *ros2.Node
	names   []string
	qos     ros.QoS
	timeout time.Duration
	finder  *msg.Finder

	queue   chan wireSample
	queued  atomic.Int64 // bytes that the samples in it cost
	dropped atomic.Uint64
}

type wireSample struct {
	topic *topicEntry
	s     ros.Sample
	cost  int64
}

func openWireTopics(a *app, f *topicFlags, names []string) (*wireTopics, error) {
	q, err := f.qos()
	if err != nil {
		return nil, err
	}
	node, err := openNode(a, &f.node)
	if err != nil {
		return nil, err
	}
	return &wireTopics{a: a, node: node, names: names, qos: q, timeout: time.Duration(f.timeout), queue: make(chan wireSample, wireQueue),
		finder: msg.NewFinder(msg.Options{Dirs: msg.SearchDirs(f.msgPath)})}, nil
}

func (w *wireTopics) topics() []string { return w.names }

func (w *wireTopics) Close() error { return w.node.Close() }

func (w *wireTopics) run(ctx context.Context, handle func(*topicMessage) (bool, error)) error {
	var subs []ros.Subscription
	defer func() {
		for _, s := range subs {
			if lost := s.Stats().Lost; lost > 0 {
				w.a.logger.Warn(fmt.Sprintf("%s: %s lost on the wire", s.Topic().Name, plural(lost, "message")))
			}
			_ = s.Close() // the node is closed behind it
		}
		for len(w.queue) > 0 {
			w.release(<-w.queue)
		}
		if n := w.dropped.Load(); n > 0 {
			w.a.logger.Warn(fmt.Sprintf("%s came faster than they could be printed and were left out", plural(n, "message")))
		}
	}()
	missing := map[string]bool{}
	for _, name := range w.names {
		missing[name] = true
	}
	said := time.NewTimer(missingAfter)
	defer said.Stop()
	idle := time.NewTimer(max(w.timeout, time.Nanosecond))
	defer idle.Stop()
	for {
		changed := w.node.Graph().Changed()
		if err := w.subscribe(missing, &subs); err != nil {
			return err
		}
		if len(missing) == 0 {
			changed = nil
		}
		for looking := true; looking; {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
				looking = false
			case <-said.C:
				for _, name := range w.names {
					if missing[name] {
						w.a.logger.Warn(fmt.Sprintf("topic '%s' does not appear to be published yet: waiting", name))
					}
				}
			case <-idle.C:
				if w.timeout > 0 {
					return errNoMessage(w.timeout)
				}
			case s := <-w.queue:
				if w.timeout > 0 {
					idle.Reset(w.timeout)
				}
				more, err := handle(&topicMessage{topic: s.topic, recv: s.s.RecvTime, sent: s.s.SourceTime, seq: s.s.Seq, data: s.s.Data})
				w.release(s)
				if err != nil || !more {
					return err
				}
			}
		}
	}
}

func (w *wireTopics) release(s wireSample) {
	w.queued.Add(-s.cost)
	s.s.Release()
}

// push is the handler of the subscriptions: it never blocks.
func (w *wireTopics) push(topic *topicEntry, s ros.Sample) {
	q := wireSample{topic, s, int64(max(s.Cost, len(s.Data)))}
	if w.queued.Add(q.cost) <= wireQueueBytes || len(w.queue) == 0 {
		select {
		case w.queue <- q:
			return
		default:
		}
	}
	w.dropped.Add(1)
	w.release(q)
}

// subscribe takes the topics that are there now out of missing.
func (w *wireTopics) subscribe(missing map[string]bool, subs *[]ros.Subscription) error {
	for _, info := range w.node.Graph().Topics() {
		if !missing[info.Name] || len(info.Publishers) == 0 {
			continue
		}
		delete(missing, info.Name)
		if len(info.Types) > 1 {
			w.a.logger.Warn(fmt.Sprintf("topic '%s' is published with several types (%s)", info.Name, strings.Join(info.Types, ", ")))
		}
		seen := map[ros.Topic]bool{}
		for _, p := range info.Publishers {
			if p.Local || seen[p.Topic] {
				continue
			}
			seen[p.Topic] = true
			entry := &topicEntry{name: p.Topic.Name, typ: p.Topic.Type, describe: w.describer(p)}
			s, err := w.node.Subscribe(p.Topic, w.qos, func(s ros.Sample) { w.push(entry, s) })
			if err != nil {
				return fmt.Errorf("subscribe %s: %w", p.Topic.Name, err)
			}
			*subs = append(*subs, s)
		}
	}
	return nil
}

// describer finds the definition of a publisher's type: on this machine, else where it is published.
func (w *wireTopics) describer(p ros.Endpoint) func(context.Context) (msg.Description, error) {
	return func(ctx context.Context) (msg.Description, error) {
		d, err := w.finder.Describe(p.Topic.Type, p.Topic.TypeHash, "", "")
		if err == nil {
			return d, nil
		}
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		sources, askErr := w.node.DescribeType(ctx, p.ID, p.Topic.Type, p.Topic.TypeHash)
		if askErr != nil {
			return d, errors.Join(err, askErr)
		}
		served := make([]msg.Served, len(sources))
		for i, s := range sources {
			served[i] = msg.Served(s)
		}
		def, err := msg.DefineServed(p.Topic.Type, p.Topic.TypeHash, served)
		if err != nil {
			return d, err
		}
		return msg.DescribeText(p.Topic.Type, def.Encoding, def.Text)
	}
}
