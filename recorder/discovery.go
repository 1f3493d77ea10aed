package recorder

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

const (
	minScanGap  = 5 * time.Millisecond   // between two looks at a graph that keeps changing
	maxScanGap  = 250 * time.Millisecond // at most
	maxPolling  = 5 * time.Second        // between two looks at a graph in which nothing changes, at most
	settleQuiet = 500 * time.Millisecond // a graph without changes for so long has settled
	settleLimit = 3 * time.Second        // or it never does
	retryPeriod = time.Second            // between two attempts to subscribe to the same topic
	cdrFormat   = "cdr"                  // the serialization format of what a node delivers
)

// discovery looks at the graph and subscribes to what is to be recorded. It belongs to one goroutine.
type discovery struct {
	r      *Recorder
	graph  ros.Graph
	filter *filter
	define *definer
	known  map[string]*topic
	failed map[string]time.Time // when subscribing failed last
	warned map[string]bool
	done   bool // everything named is subscribed: only follow its publishers
}

// newDiscovery prepares discovery; definitions are looked for until ctx ends.
func newDiscovery(ctx context.Context, r *Recorder) *discovery {
	return &discovery{r: r, graph: r.o.Node.Graph(), filter: r.filter, define: newDefiner(ctx, r), known: map[string]*topic{},
		failed: map[string]time.Time{}, warned: map[string]bool{}}
}

// run looks at the graph at every change until ctx ends.
func (d *discovery) run(ctx context.Context) {
	d.r.emit(EventListening, slog.LevelInfo, "", "Listening for topics...")
	if text := d.filter.overridden(); text != "" {
		d.r.emit(EventOther, slog.LevelWarn, "", text)
	}
	d.subscribeStatic()
	if d.r.o.NoDiscovery {
		if settle(ctx, d.graph) {
			d.scan(d.graph.Topics())
		}
		return
	}
	for {
		changed := d.graph.Changed()
		began := time.Now()
		d.scan(d.graph.Topics())
		took := time.Since(began)
		// A graph that changes all the time is looked at for a tenth of a core, a quiet one for next to nothing; but a newcomer
		// does not wait for long because many have come before.
		if !sleep(ctx, min(max(minScanGap, 10*took), maxScanGap)) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(max(d.r.o.PollingInterval, min(300*took, maxPolling))):
		}
	}
}

// settle waits until something is in the graph and it stays as it is for settleQuiet, at most settleLimit. It returns
// false when ctx ends first.
func settle(ctx context.Context, g ros.Graph) bool {
	limit := time.NewTimer(settleLimit)
	defer limit.Stop()
	for {
		changed := g.Changed()
		var quiet <-chan time.Time
		if slices.ContainsFunc(g.Topics(), func(t ros.TopicInfo) bool { return slices.ContainsFunc(t.Publishers, remote) }) {
			quiet = time.After(settleQuiet)
		}
		select {
		case <-ctx.Done():
			return false
		case <-limit.C:
			return true
		case <-quiet:
			return true
		case <-changed:
		}
	}
}

func remote(e ros.Endpoint) bool { return !e.Local }

// scan subscribes to the topics of the graph that are to be recorded and follows the publishers of those that are.
func (d *discovery) scan(topics []ros.TopicInfo) {
	for i := range topics {
		info := &topics[i]
		if t := d.known[info.Name]; t != nil {
			d.follow(t, info)
		} else if !d.done && !d.r.undiscovered.Load() {
			d.consider(info)
		}
	}
	if d.filter.onlyNamed && !d.done && !d.r.o.NoDiscovery && d.r.complete() {
		d.done = true
		d.r.emit(EventAllSubscribed, slog.LevelInfo, "", "All requested topics are subscribed. Stopping discovery...")
	}
}

// consider subscribes to a topic if it is to be recorded.
func (d *discovery) consider(info *ros.TopicInfo) {
	typ := d.chooseType(info)
	if typ == "" || d.r.o.IgnoreLeaf && !slices.ContainsFunc(info.Subscriptions, remote) {
		return
	}
	take, err := d.filter.takes(info.Name, typ)
	if err != nil {
		d.warn("regex "+info.Name, EventOther, info.Name, fmt.Sprintf("topic '%s' is left out: %v", info.Name, err))
	}
	if !take || time.Since(d.failed[info.Name]) < retryPeriod {
		return
	}
	d.subscribe(info, typ)
}

// chooseType returns the type a topic is recorded with: that of most remote publishers, of those with equally many the
// first by name; "" when there is no publisher and unpublished topics are not asked for.
func (d *discovery) chooseType(info *ros.TopicInfo) string {
	endpoints := info.Publishers
	if !slices.ContainsFunc(endpoints, remote) {
		if !d.r.o.IncludeUnpublished {
			return ""
		}
		endpoints = info.Subscriptions
	}
	count := map[string]int{}
	for i := range endpoints {
		if remote(endpoints[i]) && endpoints[i].Topic.Type != "" {
			count[endpoints[i].Topic.Type]++
		}
	}
	best := ""
	for typ, n := range count {
		if n > count[best] || n == count[best] && (best == "" || typ < best) {
			best = typ
		}
	}
	return best
}

// subscribeStatic subscribes to the topics that need no discovery.
func (d *discovery) subscribeStatic() {
	for _, t := range d.r.o.StaticTopics {
		if d.known[t.Name] == nil {
			d.subscribe(&ros.TopicInfo{Name: t.Name}, t.Type)
		}
	}
}

func (d *discovery) subscribe(info *ros.TopicInfo, typ string) {
	r := d.r
	t := &topic{name: info.Name, typ: typ, gate: &r.gate, queue: r.queue, queued: r.queue.Topic(info.Name),
		publishers: map[ros.EndpointID]bool{}, otherTypes: map[string]bool{}}
	rates, _ := throttles(r.o.Throttle) // New has checked them
	t.throttle = newThrottle(rates[info.Name])
	t.desc = plugin.Topic{Name: info.Name, Type: typ, SerializationFormat: r.o.Format}
	t.addPublishers(info.Publishers, d.encodeQoS)
	t.dirty.Store(true)

	qos, ok := r.o.QoSOverrides[info.Name]
	if !ok {
		qos = ros.BestAvailableQoS()
	}
	r.addTopic(t) // before the first sample comes
	rt := ros.Topic{Name: info.Name, Type: typ, TypeHash: t.desc.TypeHash}
	var sub ros.Subscription
	var err error
	if t.held = slices.Contains(r.o.Backpressure, t.name); t.held {
		sub, err = r.subscribeHeld(t, rt, qos)
	} else {
		sub, err = r.o.Node.Subscribe(rt, qos, t.handle)
	}
	if err != nil {
		r.removeTopic(t)
		d.failed[info.Name] = time.Now()
		d.warn("subscribe "+info.Name, EventOther, info.Name, fmt.Sprintf("cannot subscribe to topic '%s', trying again: %v", info.Name, err))
		return
	}
	t.mu.Lock()
	t.sub = sub
	t.mu.Unlock()
	r.topicsChanged.Store(true)
	d.known[info.Name] = t
	r.emit(EventSubscribed, slog.LevelInfo, t.name, fmt.Sprintf("Subscribed to topic '%s'", t.name))
	d.follow(t, info)
}

// follow takes over what is new about the publishers of a topic that is being recorded.
func (d *discovery) follow(t *topic, info *ros.TopicInfo) {
	if t.addPublishers(info.Publishers, d.encodeQoS) {
		d.r.topicsChanged.Store(true)
	}
	d.define.define(t)
	for i := range info.Publishers {
		p := &info.Publishers[i]
		if p.Local {
			continue
		}
		d.warnUnheld(t, p)
		if p.Topic.Type != t.typ {
			if p.Topic.Type != "" && !t.otherTypes[p.Topic.Type] && len(t.otherTypes) < maxProfiles {
				t.otherTypes[p.Topic.Type] = true
				d.r.emit(EventTypeConflict, slog.LevelWarn, t.name,
					fmt.Sprintf("topic '%s' has several types: recorded is %s, not recorded is %s", t.name, t.typ, p.Topic.Type))
			}
			continue
		}
		if hash := p.Topic.TypeHash; hash != "" && hash != t.desc.TypeHash && !t.otherHashes {
			t.otherHashes = true
			d.r.emit(EventTypeConflict, slog.LevelWarn, t.name,
				fmt.Sprintf("publishers of topic '%s' have different definitions of %s: %s is stored, %s differs", t.name, t.typ, t.desc.TypeHash, hash))
		}
	}
}

// warn emits a warning once per key.
func (d *discovery) warn(key string, kind EventKind, topic, text string) {
	if !d.warned[key] {
		d.warned[key] = true
		d.r.emit(kind, slog.LevelWarn, topic, text)
	}
}

// encodeQoS writes profiles as the bag's generation of rosbag2 does: with names, for Humble with numbers.
func (d *discovery) encodeQoS(ps []bag.QoSProfile) string {
	return bag.EncodeQoS(ps, d.r.o.Compat != plugin.CompatHumble)
}

// sleep waits for d. It returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
