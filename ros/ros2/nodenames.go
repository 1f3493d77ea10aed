package ros2

import (
	"slices"
	"sync"

	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// nodeNames knows which ROS node an endpoint belongs to, from ros_discovery_info.
type nodeNames struct {
	changed chan struct{} // capacity 1: there is news

	mu           sync.Mutex
	generation   uint64 // counts changes
	endpoints    map[rtps.GUID]string
	participants map[wire.Prefix]participantNodes
}

type participantNodes struct {
	names     []string // sorted
	endpoints []rtps.GUID
}

func newNodeNames() *nodeNames {
	return &nodeNames{changed: make(chan struct{}, 1), endpoints: map[rtps.GUID]string{}, participants: map[wire.Prefix]participantNodes{}}
}

// listen subscribes to ros_discovery_info for the life of the participant.
func (n *nodeNames) listen(p *rtps.Participant) error {
	_, err := p.NewReader(rtps.ReaderConfig{
		Topic:    infoTopic,
		Type:     infoType,
		QoS:      rtps.QoS{Reliability: rtps.Reliable, Durability: rtps.TransientLocal, History: rtps.KeepAll},
		UserData: endpointUserData(infoTypeHash),
		Handler: func(s rtps.Sample) {
			n.take(s.Writer.Prefix(), s.Data)
			s.Release()
		},
	})
	return err
}

// take replaces what is known of a participant. What it says of endpoints that are not its own is not believed, and a
// sample that does not parse changes nothing.
func (n *nodeNames) take(prefix wire.Prefix, payload []byte) {
	_, nodes, err := parseInfo(payload)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(prefix)
	var p participantNodes
	for i := range nodes {
		name := nodes[i].fullName()
		p.names = append(p.names, name)
		for _, list := range [][]rtps.GUID{nodes[i].readers, nodes[i].writers} {
			for _, g := range list {
				if g.Prefix() == prefix {
					n.endpoints[g] = name
					p.endpoints = append(p.endpoints, g)
				}
			}
		}
	}
	slices.Sort(p.names)
	n.participants[prefix] = p
	n.generation++
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// forget drops a participant. n.mu is held.
func (n *nodeNames) forget(prefix wire.Prefix) {
	for _, g := range n.participants[prefix].endpoints {
		delete(n.endpoints, g)
	}
	delete(n.participants, prefix)
}

// prune drops participants that are gone.
func (n *nodeNames) prune(peers func() []rtps.Peer) {
	n.mu.Lock()
	known := make([]wire.Prefix, 0, len(n.participants))
	for prefix := range n.participants {
		known = append(known, prefix)
	}
	n.mu.Unlock()
	if len(known) == 0 {
		return
	}
	alive := map[wire.Prefix]bool{}
	for _, p := range peers() {
		alive[p.Prefix] = true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, prefix := range known {
		if !alive[prefix] {
			n.forget(prefix)
		}
	}
}

// of returns the nodes of a participant.
func (n *nodeNames) of(prefix wire.Prefix) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.participants[prefix].names)
}

// owner returns the node of an endpoint, "" if it is not known.
func (n *nodeNames) owner(endpoint rtps.GUID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.endpoints[endpoint]
}

// snapshot copies the names of all endpoints, with the number of changes so far.
func (n *nodeNames) snapshot() (names map[rtps.GUID]string, generation uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	names = make(map[rtps.GUID]string, len(n.endpoints))
	for g, name := range n.endpoints {
		names[g] = name
	}
	return names, n.generation
}

// version is the number of changes so far.
func (n *nodeNames) version() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.generation
}
