package control

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
)

// The topics of rosbag2's events.
const (
	writeSplitTopic = "/events/write_split"
	readSplitTopic  = "/events/read_split"
	lostTopic       = "/events/rosbag2_messages_lost"
)

// Events publishes what rosbag2's recorder and player tell about themselves.
type Events struct {
	node string
	log  *slog.Logger

	mu     sync.Mutex
	splits ros.Publisher // nil when closed
	lost   ros.Publisher

	stop chan struct{}
	done sync.WaitGroup
	once sync.Once
}

// NewEvents announces the events of a node. A recorder's are write_split and messages_lost, a player's read_split.
func NewEvents(node ros.Node, nodeName string, player bool, log *slog.Logger) (*Events, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Events{node: nodeName, log: log, stop: make(chan struct{})}
	finder := msg.NewFinder(msg.Options{})
	advertise := func(name, typ string) (ros.Publisher, error) {
		typ = interfaces + "/msg/" + typ
		q := ros.DefaultQoS()
		q.Depth = 5
		return node.Advertise(ros.Topic{Name: name, Type: typ, TypeHash: typeHash(finder, typ)}, q)
	}
	var err error
	if player {
		e.splits, err = advertise(readSplitTopic, "ReadSplitEvent")
	} else if e.splits, err = advertise(writeSplitTopic, "WriteSplitEvent"); err == nil {
		e.lost, err = advertise(lostTopic, "MessagesLostEvent")
	}
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	return e, nil
}

// Split tells that a file was closed and another opened; "" is none. Closed Events tell nothing.
func (e *Events) Split(closed, opened string) {
	w := cdr.NewEncoder(nil, cdr.CDRLE)
	w.Str(closed)
	w.Str(opened)
	w.Str(e.node)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.publish(e.splits, w.Bytes())
}

// publish is called with e.mu held.
func (e *Events) publish(p ros.Publisher, data []byte) {
	if p == nil {
		return
	}
	if err := p.Publish(data, time.Now().UnixNano()); err != nil {
		e.log.Warn("an event could not be published", "topic", p.Topic().Name, "err", err)
	}
}

// FollowLosses publishes what the recorder has lost, at most once per period, when it has grown. A period of 0 is never.
func (e *Events) FollowLosses(r *recorder.Recorder, period time.Duration) {
	if period <= 0 {
		return
	}
	e.done.Go(func() {
		tick := time.NewTicker(period)
		defer tick.Stop()
		var told uint64
		for {
			select {
			case <-e.stop:
				return
			case <-tick.C:
			}
			if lost := r.Lost(); lost != told {
				told = lost
				e.mu.Lock()
				e.publish(e.lost, encodeLost(e.node, r.Snapshot()))
				e.mu.Unlock()
			}
		}
	})
}

// encodeLost makes a MessagesLostEvent of the topics that lost something.
func encodeLost(node string, s recorder.Snapshot) []byte {
	w := cdr.NewEncoder(nil, cdr.CDRLE)
	w.Str(node)
	n := 0
	for i := range s.Topics {
		if s.Topics[i].Lost.Total() > 0 {
			n++
		}
	}
	w.SeqLen(n)
	for i := range s.Topics {
		if t := &s.Topics[i]; t.Lost.Total() > 0 {
			w.Str(t.Name)
			w.Uint64(t.Lost.Wire)
			w.Uint64(t.Lost.Queue + t.Lost.Storage)
		}
	}
	return w.Bytes()
}

// Close withdraws the events. Idempotent.
func (e *Events) Close() (err error) {
	e.once.Do(func() {
		close(e.stop)
		e.done.Wait()
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, p := range []ros.Publisher{e.splits, e.lost} {
			if p == nil {
				continue
			}
			if cerr := p.Close(); cerr != nil && err == nil {
				err = fmt.Errorf("events: %w", cerr)
			}
		}
		e.splits, e.lost = nil, nil
	})
	return err
}
