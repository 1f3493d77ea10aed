package recorder

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

const (
	firstTimeout = 2 * time.Second // for an answer in the first round, whose end is what the user waits for
	nextTimeout  = 5 * time.Second // in later ones
	nodesAsked   = 3               // nodes that publish a type and are asked in a round
	askSlots     = 8               // questions under way at once
	askedTypes   = 1024            // types asked for at once; names come from the network
	maxSequences = 16              // times that a type is asked for again since a new publisher came
)

// askAt are the rounds of asking, counted from when a type is first seen: the services of a node can be found later than
// its topics.
var askAt = []time.Duration{0, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second}

// definer finds the definitions of types: on this machine, or else by asking nodes that publish the type. What the
// answers hold goes into the topics whenever it comes, and with them into the bag.
type definer struct {
	r     *Recorder
	local func(typ, hash string) (plugin.Definition, error)
	asker ros.TypeDescriber // nil where nodes cannot be asked
	ctx   context.Context   // of discovery

	slots   chan struct{}
	workers sync.WaitGroup

	mu      sync.Mutex
	lookups map[typeKey]*lookup
	asking  int // lookups being asked for
}

// typeKey is a type in the version that its publishers announce.
type typeKey struct{ typ, hash string }

// lookup is what is known of the definition of a type. definer.mu guards what changes.
type lookup struct {
	typeKey
	localErr error         // why it is not on this machine; nil if it is
	wake     chan struct{} // of capacity 1: another publisher came

	def    *plugin.Definition // nil: not known yet
	topics []*topic           // those that wait for it
	asking bool
	said   bool // that it is not known
}

func newDefiner(ctx context.Context, r *Recorder) *definer {
	d := &definer{r: r, local: r.o.Definition, ctx: ctx, slots: make(chan struct{}, askSlots), lookups: map[typeKey]*lookup{}}
	d.asker, _ = r.o.Node.(ros.TypeDescriber)
	return d
}

// wait returns when nobody is asked any more; ctx must have ended, and define is not called again.
func (d *definer) wait() { d.workers.Wait() }

// define sees to the definition of a topic, again when its hash becomes known or publishers were added. It can take a
// while, since it reads files; asking goes on behind it. One goroutine calls it.
func (d *definer) define(t *topic) {
	key, publishers := t.typeKey()
	if t.lookup != nil && t.lookup.typeKey == key {
		if publishers != t.publishersSeen {
			t.publishersSeen = publishers
			d.wake(t.lookup)
		}
		return
	}
	d.mu.Lock()
	l := d.lookups[key]
	d.mu.Unlock()
	if l == nil {
		l = &lookup{typeKey: key, wake: make(chan struct{}, 1)}
		def, err := d.local(key.typ, key.hash)
		if l.localErr = err; err == nil {
			l.def = &def
		}
	}
	d.attach(t, l)
	t.publishersSeen = publishers
}

// attach makes l the lookup of the topic.
func (d *definer) attach(t *topic, l *lookup) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lookups[l.typeKey] = l
	if old := t.lookup; old != nil {
		old.topics = slices.DeleteFunc(old.topics, func(o *topic) bool { return o == t })
	}
	t.lookup = l
	if l.def != nil {
		d.give(t, l)
		return
	}
	l.topics = append(l.topics, t)
	switch {
	case errors.Is(l.localErr, ErrDefinitionLater):
		delete(d.lookups, l.typeKey) // asked for anew with each publisher
		t.lookup = nil
	case l.asking:
	case d.asker == nil:
		d.say(l, nil)
	case d.asking >= askedTypes:
		d.say(l, fmt.Errorf("its publishers are not asked, since %d other types are being asked for", d.asking))
	default:
		l.asking = true
		d.asking++
		d.workers.Go(func() { d.ask(l) })
	}
}

// give puts the definition of l into the topic, unless that has another hash by now. d.mu is held.
func (d *definer) give(t *topic, l *lookup) {
	if t.setDefinition(l.hash, *l.def) {
		d.r.topicsChanged.Store(true)
	}
}

func (d *definer) wake(l *lookup) {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// ask asks publishers of a type until one of them gives its definition, nobody waits for it any more, or ctx ends. After
// the last round it waits for another publisher.
func (d *definer) ask(l *lookup) {
	for range maxSequences {
		began := time.Now()
		for round, at := range askAt {
			if !sleep(d.ctx, at-time.Since(began)) || d.unneeded(l) {
				return
			}
			timeout := nextTimeout
			if round == 0 {
				timeout = firstTimeout
			}
			def, node, err := d.askRound(l, round, timeout)
			if err == nil {
				d.found(l, def, node)
				return
			}
			if d.ctx.Err() != nil {
				return
			}
			d.mu.Lock()
			d.say(l, err)
			d.mu.Unlock()
		}
		select {
		case <-d.ctx.Done():
			return
		case <-l.wake:
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rest(l)
}

// unneeded says whether no topic waits for the definition any more. Then asking is over, until attach begins anew.
func (d *definer) unneeded(l *lookup) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(l.topics) > 0 {
		return false
	}
	d.rest(l)
	return true
}

// rest notes that a type is not asked for now. d.mu is held.
func (d *definer) rest(l *lookup) {
	l.asking = false
	d.asking--
}

// askRound asks a few publishers, other ones in each round where there are many, and returns the first definition that is
// right. node is who gave it.
func (d *definer) askRound(l *lookup, round int, timeout time.Duration) (def plugin.Definition, node string, err error) {
	pubs := d.publishers(l.typeKey)
	if len(pubs) == 0 {
		return def, "", errors.New("its publishers are gone")
	}
	var errs []error
	for i := range min(nodesAsked, len(pubs)) {
		p := pubs[(round*nodesAsked+i)%len(pubs)]
		def, err := d.askNode(p, l.typeKey, timeout)
		if err == nil {
			return def, nodeName(p), nil
		}
		errs = append(errs, err)
	}
	return def, "", errors.Join(errs...)
}

func (d *definer) askNode(p ros.Endpoint, key typeKey, timeout time.Duration) (plugin.Definition, error) {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-d.ctx.Done():
		return plugin.Definition{}, d.ctx.Err()
	}
	ctx, cancel := context.WithTimeout(d.ctx, timeout)
	defer cancel()
	sources, err := d.asker.DescribeType(ctx, p.ID, key.typ, key.hash)
	if err != nil {
		return plugin.Definition{}, askedError(err, key.typ, timeout)
	}
	def, err := msg.DefineServed(key.typ, key.hash, served(sources))
	if err != nil {
		return plugin.Definition{}, fmt.Errorf("what %s serves is not used: %w", nodeName(p), err)
	}
	return plugin.Definition{Encoding: def.Encoding, Text: def.Text}, nil
}

// askedError shortens what a node says of a question that came to nothing.
func askedError(err error, typ string, timeout time.Duration) error {
	text := strings.TrimPrefix(err.Error(), "describe "+typ+": ")
	if errors.Is(err, context.DeadlineExceeded) {
		text = fmt.Sprintf("%s (asked for %s)", strings.TrimSuffix(text, ": "+context.DeadlineExceeded.Error()), timeout)
	}
	return errors.New(text)
}

// publishers returns one publisher of the type for each node that has any, ordered by endpoint.
func (d *definer) publishers(key typeKey) []ros.Endpoint {
	var out []ros.Endpoint
	seen := map[string]bool{}
	for _, info := range d.r.o.Node.Graph().Topics() {
		for _, p := range info.Publishers {
			if p.Local || p.Topic.Type != key.typ || p.Topic.TypeHash != key.hash {
				continue
			}
			node := p.Node
			if node == "" {
				node = string(p.ID[:12]) // the participant
			}
			if !seen[node] {
				seen[node] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// nodeName is what to call the owner of an endpoint.
func nodeName(e ros.Endpoint) string {
	if e.Node != "" {
		return "node " + e.Node
	}
	return "participant " + hex.EncodeToString(e.ID[:12])
}

// found takes over a definition that a node gave.
func (d *definer) found(l *lookup, def plugin.Definition, node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.def = &def
	for _, t := range l.topics {
		d.give(t, l)
	}
	l.topics = nil
	d.rest(l)
	d.r.emit(EventDefinition, slog.LevelInfo, "", fmt.Sprintf("the definition of %s was given by %s", l.typ, node))
}

// say tells once that a type has no definition: where it was looked for and what to do. asked is what came of asking
// its publishers. d.mu is held.
func (d *definer) say(l *lookup, asked error) {
	if l.said || len(l.topics) == 0 {
		return
	}
	l.said = true
	local := strings.TrimPrefix(l.localErr.Error(), msg.ErrNotFound.Error()+": "+l.typ+": ")
	how := "are recorded without their definition"
	if l.topics[0].hasDefinition() {
		how = "are recorded with a definition that was found before a publisher announced its hash, which is another one"
	}
	text := fmt.Sprintf("messages of type %s (topic '%s') %s: %s", l.typ, l.topics[0].name, how, local)
	if asked != nil {
		text += "; " + strings.ReplaceAll(asked.Error(), "\n", "; ")
	}
	if !strings.Contains(text, "--msg-path") {
		text += "; --msg-path names more directories"
	}
	d.r.emit(EventDefinition, slog.LevelWarn, l.topics[0].name, text)
}

// served hands what a node serves to package msg.
func served(sources []ros.TypeSource) []msg.Served {
	out := make([]msg.Served, len(sources))
	for i, s := range sources {
		out[i] = msg.Served(s)
	}
	return out
}
