package recorder

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

const (
	// maxSources bounds the writers told apart per topic; later ones are recorded with an unknown source.
	maxSources = 1 << 16

	// maxProfiles bounds the QoS profiles kept per topic. Publishers that come and go would otherwise make the list,
	// which every metadata.yaml repeats, grow for ever.
	maxProfiles = 64

	// entryOverhead is what a queued message costs beside its payload where the transport does not say.
	entryOverhead = 256
)

// topic is one topic being recorded.
type topic struct {
	name, typ string
	queue     *bag.Queue
	queued    *bag.QueueTopic
	gate      *gate

	received atomic.Uint64 // by the handler
	held     bool          // publishers wait where the queue has no room; see Options.Backpressure
	waits    atomic.Bool   // they do
	throttle throttle      // of the handler
	sources  sources

	// Counted by the writer goroutine.
	recorded atomic.Uint64
	bytes    atomic.Uint64 // payload bytes recorded
	refused  atomic.Uint64 // lost at the storage
	surplus  atomic.Uint64 // came after the last message that was asked for: neither recorded nor lost
	skipped  atomic.Uint64 // not to be recorded: see throttle (counted by the handler), gate, and what left the ring of snapshot mode
	deleted  atomic.Uint64 // recorded and deleted again with their file
	flow     flow
	id       plugin.TopicID
	stored   int // sources that the bag knows
	depth    int // messages that the bag was told to repeat
	keep     kept
	before   bag.TopicLedger // counts when the snapshot being written was begun

	wire    wireStats
	rates   rates
	sampled uint64 // received at the last round of watch
	looked  bool   // there was one

	mu          sync.Mutex
	desc        plugin.Topic // what the bag should know, sources excepted
	dirty       atomic.Bool  // desc is newer than what the bag knows
	sub         ros.Subscription
	publishers  map[ros.EndpointID]bool // all that were ever seen
	profiles    []bag.QoSProfile
	otherTypes  map[string]bool // publishers' types that are not recorded, warned about
	otherHashes bool            // publishers disagree about the type hash, warned about
	defined     bool            // desc has the definition
	volatile    bool            // a publisher was seen that is not transient local

	lookup         *lookup // where the definition is to come from; of the definer, with definer.mu
	publishersSeen int     // when that was last looked at; of discovery's goroutine
}

// handle puts a sample into the queue. It runs on the receive goroutine: it allocates nothing and never waits.
func (t *topic) handle(s ros.Sample) {
	t.received.Add(1)
	if !t.throttle.pass(s.RecvTime) {
		t.skipped.Add(1)
		s.Release()
		return
	}
	t.queue.Push(t.entry(&s))
}

// counts returns the ledger of the topic. What is counted last is read first, so that a message on its way is seen as
// received and never as recorded only.
func (t *topic) counts() bag.TopicLedger {
	var l bag.TopicLedger
	l.Recorded = t.recorded.Load()
	l.Lost.Storage = t.refused.Load()
	l.Skipped = t.skipped.Load()
	l.Deleted = t.deleted.Load()
	l.Lost.Queue = t.queued.Dropped()
	surplus := t.surplus.Load()
	l.Received = t.received.Load() - surplus
	l.Lost.Wire, l.UnknownWriters = t.wire.lost()
	t.flow.fill(&l)
	return l
}

// describe returns what the bag should know of the topic and marks it as told.
func (t *topic) describe() plugin.Topic {
	t.dirty.Store(false)
	t.mu.Lock()
	d := t.desc
	t.mu.Unlock()
	d.Sources = t.sources.all()
	return d
}

// typeKey returns the type with the hash that is stored, and how many publishers there were.
func (t *topic) typeKey() (typeKey, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return typeKey{t.typ, t.desc.TypeHash}, len(t.publishers)
}

// setDefinition takes over a definition that has the hash; false if the topic has another.
func (t *topic) setDefinition(hash string, def plugin.Definition) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.desc.TypeHash != hash {
		return false
	}
	t.desc.Definition, t.defined = def, true
	t.dirty.Store(true)
	return true
}

// latched says whether all publishers that were seen are transient local.
func (t *topic) latched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.volatile && len(t.profiles) > 0
}

// definition returns what is known of the type's definition.
func (t *topic) definition() plugin.Definition {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.desc.Definition
}

func (t *topic) hasDefinition() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.defined
}

func (t *topic) subscription() ros.Subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sub
}

// addPublishers notes the publishers that were not seen before and reports whether what the bag should know changed.
func (t *topic) addPublishers(ps []ros.Endpoint, encode func([]bag.QoSProfile) string) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range ps {
		p := &ps[i]
		if p.Local || p.Unsettled || p.Topic.Type != t.typ {
			continue
		}
		if t.desc.TypeHash == "" && p.Topic.TypeHash != "" {
			t.desc.TypeHash, changed = p.Topic.TypeHash, true
		}
		if t.publishers[p.ID] {
			continue
		}
		if len(t.publishers) < maxSources {
			t.publishers[p.ID] = true
		}
		if p.QoS.Durability != ros.TransientLocal {
			t.volatile = true
		}
		q := profile(p.QoS)
		if len(t.profiles) < maxProfiles && (len(t.profiles) < maxProfiles/2 || !slices.Contains(t.profiles, q)) {
			t.profiles, changed = append(t.profiles, q), true
		}
	}
	if changed {
		t.desc.OfferedQoS = ""
		if len(t.profiles) > 0 {
			t.desc.OfferedQoS = encode(t.profiles)
		}
		t.dirty.Store(true)
	}
	return changed
}

// profile converts a publisher's QoS to the form a bag stores; the numbers of the policies are the same.
func profile(q ros.QoS) bag.QoSProfile {
	q = q.Normalized()
	return bag.QoSProfile{
		History: int(q.History), Depth: q.Depth, Reliability: int(q.Reliability), Durability: int(q.Durability),
		Deadline: q.Deadline, Lifespan: q.Lifespan, Liveliness: int(q.Liveliness),
		LivelinessLeaseDuration: q.LivelinessLeaseDuration, AvoidROSNamespaceConventions: q.AvoidROSNamespaceConventions,
	}
}

// sources numbers the writers of a topic from 1. Safe for concurrent use; a known writer costs no allocation.
type sources struct {
	last atomic.Pointer[source] // the writer seen last: most topics have one

	mu    sync.Mutex
	byID  map[ros.EndpointID]*source
	names []string
}

type source struct {
	id     ros.EndpointID
	number uint32
}

// number returns the number of a writer, a new one for a new writer, 0 when there are too many or the id is zero.
func (s *sources) number(id ros.EndpointID) uint32 {
	if last := s.last.Load(); last != nil && last.id == id {
		return last.number
	}
	if id == (ros.EndpointID{}) {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	src := s.byID[id]
	if src == nil {
		if len(s.names) >= maxSources {
			return 0
		}
		if s.byID == nil {
			s.byID = map[ros.EndpointID]*source{}
		}
		s.names = append(s.names, id.String())
		src = &source{id, uint32(len(s.names))}
		s.byID[id] = src
	}
	s.last.Store(src)
	return src.number
}

// all returns the names of the writers by number, the first at index 0. The caller must not change them.
func (s *sources) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[:len(s.names):len(s.names)]
}
