package player

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// cdrFormat is the serialization that nodes of ROS 2 speak.
const cdrFormat = "cdr"

// publication is a topic being played. Two topics of the bag that are remapped to one name share the publisher.
type publication struct {
	ids  []plugin.TopicID // of the bag
	from string           // name of the first in the bag
	ros.Topic
	qos  ros.QoS
	sent counter

	messages   uint64 // in the bag
	call       bool   // its messages are service events whose requests are sent
	definition plugin.Definition
	lane       chan dueItem // of lanes; nil = none

	known atomic.Bool // whether xcdr2 is that of its first message, not assumed
	mu    sync.Mutex
	xcdr2 bool // how it is announced
	pub   ros.Publisher
}

// publisher returns what publishes the topic now.
func (p *publication) publisher() ros.Publisher {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pub
}

// index returns the publications by topic of the bag, and those topics.
func index(pubs []*publication) (byID map[plugin.TopicID]*publication, ids []plugin.TopicID) {
	byID, ids = map[plugin.TopicID]*publication{}, []plugin.TopicID{}
	for _, pub := range pubs {
		for _, id := range pub.ids {
			byID[id] = pub
			ids = append(ids, id)
		}
	}
	return byID, ids
}

// choose decides which topics of the bag are played and how. What is left out is reported.
func (p *Player) choose(topics []bag.TopicInfo) ([]*publication, error) {
	var pubs []*publication
	for i := range topics {
		t := &topics[i]
		take, err := p.filter.takes(t.Name)
		if err != nil {
			p.skip(t.Name, err.Error())
			continue
		}
		if !take {
			continue
		}
		if t.SerializationFormat != "" && t.SerializationFormat != p.o.Format {
			why := fmt.Sprintf("its serialization format is %q, only %s can be published", t.SerializationFormat, p.o.Format)
			if t.Refused != "" {
				why += ": " + t.Refused
			}
			p.skip(t.Name, why)
			continue
		}
		name := publishedName(t.Name, p.remaps)
		if same := slices.IndexFunc(pubs, func(o *publication) bool { return o.Name == name }); same >= 0 {
			if pubs[same].Type != t.Type {
				p.skip(t.Name, fmt.Sprintf("%s is published as %s already", name, pubs[same].Type))
				continue
			}
			pubs[same].ids = append(pubs[same].ids, t.ID)
			pubs[same].messages += t.Count
			continue
		}
		if name == clockTopic && p.o.publishesClock() {
			continue
		}
		pub := &publication{ids: []plugin.TopicID{t.ID}, from: t.Name,
			Topic: ros.Topic{Name: name, Type: t.Type, TypeHash: t.TypeHash}, qos: p.chooseQoS(t, name), messages: t.Count}
		if p.prepareCalls(pub, t) {
			pubs = append(pubs, pub)
		}
	}
	names := make([]string, len(topics))
	for i := range topics {
		names[i] = topics[i].Name
	}
	for _, w := range p.filter.named.Absent(names) {
		p.emit(EventSkipped, slog.LevelWarn, w.Name, fmt.Sprintf("%s '%s' is not in the bag", w.Class, w.Name))
	}
	if len(pubs) == 0 && len(topics) > 0 {
		return nil, ErrNoTopics
	}
	return pubs, nil
}

// chooseQoS returns the profile a topic is offered with: the override, else what was recorded, else the default.
func (p *Player) chooseQoS(t *bag.TopicInfo, name string) ros.QoS {
	for _, n := range []string{t.Name, name} {
		if q, ok := p.o.QoSOverrides[n]; ok {
			return q.Normalized().Resolve(ros.DefaultQoS())
		}
	}
	if t.QoS == nil && t.OfferedQoS != "" {
		p.emit(EventQoS, slog.LevelWarn, t.Name, fmt.Sprintf("topic '%s' is published with the default QoS, since the recorded one cannot be read", t.Name))
		return ros.DefaultQoS()
	}
	q, warning := ros.PlaybackQoS(rosProfiles(t.QoS))
	if warning != "" {
		p.emit(EventQoS, slog.LevelWarn, t.Name, fmt.Sprintf("topic '%s': %s", t.Name, warning))
	}
	return q
}

// rosProfiles converts profiles as a bag holds them; the numbers of the policies are the same.
func rosProfiles(ps []bag.QoSProfile) []ros.QoS {
	qs := make([]ros.QoS, len(ps))
	for i, p := range ps {
		qs[i] = ros.QoS{
			History: ros.History(p.History), Depth: p.Depth, Reliability: ros.Reliability(p.Reliability),
			Durability: ros.Durability(p.Durability), Deadline: p.Deadline, Lifespan: p.Lifespan,
			Liveliness: ros.Liveliness(p.Liveliness), LivelinessLeaseDuration: p.LivelinessLeaseDuration,
			AvoidROSNamespaceConventions: p.AvoidROSNamespaceConventions,
		}
	}
	return qs
}

// advertise announces the publishers. A topic that cannot be announced is reported and left out.
func (p *Player) advertise(pubs []*publication) ([]*publication, error) {
	var ok []*publication
	for _, pub := range pubs {
		var err error
		if pub.pub, err = p.announce(pub); err != nil {
			p.skip(pub.from, err.Error())
			continue
		}
		ok = append(ok, pub)
	}
	if len(ok) == 0 && len(pubs) > 0 {
		return nil, ErrNoTopics
	}
	return ok, nil
}

func closeAll(pubs []*publication) error {
	var errs []error
	for _, pub := range pubs {
		if err := pub.publisher().Close(); err != nil {
			errs = append(errs, fmt.Errorf("close publisher of %s: %w", pub.Name, err))
		}
	}
	return errors.Join(errs...)
}

// skip reports a topic that is not played.
func (p *Player) skip(name, why string) {
	p.mu.Lock()
	p.skipped = append(p.skipped, Skipped{name, why})
	p.mu.Unlock()
	p.emit(EventSkipped, slog.LevelWarn, name, fmt.Sprintf("topic '%s' is not played: %s", name, why))
}

// Skipped is a topic that was asked for and not played.
type Skipped struct{ Topic, Why string }
