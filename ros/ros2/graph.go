package ros2

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
)

// graph is a ros.Graph over a participant's endpoints. A snapshot is made when somebody asks for one and something has
// changed since the last.
type graph struct {
	p     *rtps.Participant
	names *nodeNames

	mu      sync.Mutex
	changed chan struct{} // what Changed returns

	snapMu     sync.Mutex // held while a snapshot is made
	snap       *snapshot
	stale      <-chan struct{} // closed when the participant's endpoints are no longer those of snap
	generation uint64          // of the names in snap
	made       time.Time
	took       time.Duration // making it

	topics, types, hashes map[string]string // demangled names of snap: most are the same in the next one
}

// snapshot is the graph at one moment. It is never changed.
type snapshot struct {
	infos  []ros.TopicInfo
	offers map[offerKey][]offer // of others' writers
}

// offerKey names what a reader matches: topic and type as on the wire.
type offerKey struct{ topic, typ string }

// offer is what a subscription has to know of a writer.
type offer struct {
	reliable, latched bool
	hash              string
}

func newGraph(p *rtps.Participant, names *nodeNames) *graph {
	return &graph{p: p, names: names, changed: make(chan struct{})}
}

// Changed implements ros.Graph. Changes that follow one another within 10 ms are told as one, in large graphs within
// more.
func (g *graph) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

func (g *graph) notify() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.changed)
	g.changed = make(chan struct{})
}

// Topics implements ros.Graph.
func (g *graph) Topics() []ros.TopicInfo { return g.current().infos }

// current returns a snapshot that is up to date.
func (g *graph) current() *snapshot {
	g.snapMu.Lock()
	defer g.snapMu.Unlock()
	return g.refresh()
}

// recent returns a snapshot that may be a little old: 20 ms, or more where the graph is so large that making one takes
// long.
func (g *graph) recent() *snapshot {
	g.snapMu.Lock()
	defer g.snapMu.Unlock()
	if g.snap != nil && time.Since(g.made) < max(20*time.Millisecond, 20*g.took) {
		return g.snap
	}
	return g.refresh()
}

// refresh makes a snapshot if the last one is out of date. g.snapMu is held.
func (g *graph) refresh() *snapshot {
	if g.snap != nil && g.fresh() {
		return g.snap
	}
	began := time.Now()
	g.stale = g.p.Changed() // before Endpoints: a change in between makes the snapshot stale, not wrong
	names, generation := g.names.snapshot()
	g.generation = generation
	g.snap = g.build(g.p.Endpoints(), names)
	g.made = time.Now()
	g.took = g.made.Sub(began)
	return g.snap
}

func (g *graph) fresh() bool {
	select {
	case <-g.stale:
		return false
	default:
		return g.generation == g.names.version()
	}
}

// build sorts endpoints into topics. Only keyless ones with ROS's names and types are topics.
func (g *graph) build(endpoints []rtps.Endpoint, names map[rtps.GUID]string) *snapshot {
	// A fixed order, so that two snapshots of the same graph are equal.
	order := make([]*rtps.Endpoint, len(endpoints))
	for i := range endpoints {
		order[i] = &endpoints[i]
	}
	slices.SortFunc(order, func(a, b *rtps.Endpoint) int { return bytes.Compare(a.GUID[:], b.GUID[:]) })
	topics, types, hashes := g.topics, g.types, g.hashes
	g.topics, g.types, g.hashes = map[string]string{}, map[string]string{}, map[string]string{}
	s := &snapshot{offers: map[offerKey][]offer{}}
	index := map[string]int{}
	for _, e := range order {
		if e.Keyed {
			continue
		}
		hash := g.typeHash(hashes, e.UserData)
		if e.Writer && !e.Local {
			key := offerKey{e.Topic, e.Type}
			s.offers[key] = append(s.offers[key], offer{reliable: e.QoS.Reliability == rtps.Reliable, latched: e.QoS.Durability >= rtps.TransientLocal, hash: hash})
		}
		name := intern(topics, g.topics, e.Topic, topicName)
		typ := intern(types, g.types, e.Type, typeName)
		if name == "" || typ == "" {
			continue
		}
		at, ok := index[name]
		if !ok {
			at = len(s.infos)
			index[name] = at
			s.infos = append(s.infos, ros.TopicInfo{Name: name})
		}
		info := &s.infos[at]
		if !slices.Contains(info.Types, typ) {
			info.Types = append(info.Types, typ)
		}
		out := ros.Endpoint{ID: ros.EndpointID(e.GUID), Topic: ros.Topic{Name: name, Type: typ, TypeHash: hash}, QoS: fromRTPS(&e.QoS, e.Vendor),
			Node: names[e.GUID], Vendor: vendorName(e.Vendor), Local: e.Local, Reliable: e.QoS.Reliability == rtps.Reliable}
		if e.Writer {
			info.Publishers = append(info.Publishers, out)
		} else {
			info.Subscriptions = append(info.Subscriptions, out)
		}
	}
	for i := range s.infos {
		slices.Sort(s.infos[i].Types)
	}
	slices.SortFunc(s.infos, func(a, b ros.TopicInfo) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// intern returns make(key), remembered from the last snapshot and for the next.
func intern(old, next map[string]string, key string, make func(string) string) string {
	v, ok := next[key]
	if !ok {
		if v, ok = old[key]; !ok {
			v = make(key)
		}
		next[key] = v
	}
	return v
}

// topicName is the ROS name of a DDS topic, "" if it is none.
func topicName(dds string) string {
	if kind, name, ok := DemangleTopic(dds); ok && kind == KindTopic {
		return name
	}
	return ""
}

// typeName is the ROS name of a DDS type, "" if it is none.
func typeName(dds string) string {
	typ, ok := DemangleType(dds)
	if !ok {
		return ""
	}
	return typ
}

// typeHash is the hash in an endpoint's USER_DATA, "" if there is none.
func (g *graph) typeHash(old map[string]string, userData []byte) string {
	h := userTypeHash(userData)
	if h == nil {
		return ""
	}
	s, ok := g.hashes[string(h)]
	if !ok {
		if s, ok = old[string(h)]; !ok {
			s = string(h)
		}
		g.hashes[s] = s
	}
	return s
}
