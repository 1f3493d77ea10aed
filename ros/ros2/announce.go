package ros2

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// InfoForm says in which forms a node publishes ros_discovery_info, the list of its endpoints by which other nodes know
// of it. Ids in it are 16 bytes long from Iron on and 24 bytes before, under the same topic and type, and a sample of the
// wrong form crashes nodes of Humble (rmw_fastrtps issue 733).
type InfoForm uint8

// The forms.
const (
	InfoAuto InfoForm = iota // to every reader in the form that it reads
	InfoOff                  // to nobody
	Info16                   // to readers of the form of Iron and later only
	Info24                   // to readers of the form of Humble and before only
)

func (f InfoForm) String() string {
	switch f {
	case InfoAuto:
		return "auto"
	case InfoOff:
		return "off"
	case Info16:
		return "16"
	case Info24:
		return "24"
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// infoIDs is the size of the ids that a reader of ros_discovery_info understands, by its USER_DATA and that of its
// participant; 0 where that is not certain. From Iron on endpoints carry a type hash, and the type's hash tells the size.
// A participant without enclave is no ROS 2 node.
func infoIDs(reader, participant []byte) int {
	if userValue(participant, "enclave") == nil {
		return 0
	}
	switch hash := userValue(reader, "typehash"); {
	case hash == nil || string(hash) == infoTypeHash24:
		return 24
	case string(hash) == infoTypeHash:
		return 16
	}
	return 0
}

// announcer publishes ros_discovery_info. Each form has a writer of its own, which is there while somebody reads the form
// and which matches readers of the form only: package rtps asks before it sends a reader anything at all.
type announcer struct {
	p     *rtps.Participant
	now   func() int64
	name  nodeEntities // without endpoints
	forms []*infoWriter
}

// infoWriter publishes one form.
type infoWriter struct {
	idSize   int
	userData []byte
	w        *rtps.Writer // nil while nobody reads the form
	sent     []byte       // the last sample
}

// newAnnouncer makes the announcer of the named node, "/namespace/name".
func newAnnouncer(p *rtps.Participant, node string, form InfoForm, now func() int64) (*announcer, error) {
	if err := ros.ValidName(node); err != nil {
		return nil, fmt.Errorf("node name: %w", err)
	}
	if form > Info24 {
		return nil, fmt.Errorf("publish %s: %v is unknown", infoTopic, form)
	}
	slash := strings.LastIndexByte(node, '/')
	a := &announcer{p: p, now: now, name: nodeEntities{namespace: node[:max(slash, 1)], name: node[slash+1:]}}
	if form == InfoAuto || form == Info16 {
		a.forms = append(a.forms, &infoWriter{idSize: 16, userData: endpointUserData(infoTypeHash)})
	}
	if form == InfoAuto || form == Info24 {
		a.forms = append(a.forms, &infoWriter{idSize: 24}) // no endpoint has a hash in Humble
	}
	return a, nil
}

// announceEvery is the least time between two samples.
const announceEvery = 50 * time.Millisecond

// run publishes until stop.
func (a *announcer) run(n *Node) {
	for {
		changed := a.p.Changed()
		began := time.Now()
		if err := a.update(); err != nil {
			n.log.Warn("other nodes may not see this one", "err", err)
		}
		rest := max(announceEvery, 4*time.Since(began))
		select {
		case <-changed:
		case <-n.stop:
			return
		}
		select {
		case <-time.After(rest):
		case <-n.stop:
			return
		}
	}
}

// update publishes what has changed.
func (a *announcer) update() error {
	participants := map[wire.Prefix]string{}
	for _, p := range a.p.Peers() {
		participants[p.Prefix] = p.UserData
	}
	read := map[int]bool{} // ids of that size
	node := a.name
	for _, e := range a.p.Select(func(e *rtps.Endpoint) bool { return e.Local || !e.Writer && e.Topic == infoTopic && e.Type == infoType }) {
		switch {
		case !e.Local:
			read[infoIDs(e.UserData, []byte(participants[e.GUID.Prefix()]))] = true
		case e.Topic == infoTopic:
		case e.Writer:
			node.writers = append(node.writers, e.GUID)
		default:
			node.readers = append(node.readers, e.GUID)
		}
	}
	// In the order in which they were made.
	byID := func(a, b rtps.GUID) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(node.readers, byID)
	slices.SortFunc(node.writers, byID)
	var errs []error
	for _, f := range a.forms {
		if err := f.update(a, read[f.idSize], node); err != nil {
			errs = append(errs, fmt.Errorf("publish %s: %w", infoTopic, closedError(err)))
		}
	}
	return errors.Join(errs...)
}

// update publishes the node if the form is read, and withdraws the writer if not.
func (f *infoWriter) update(a *announcer, read bool, node nodeEntities) (err error) {
	if !read {
		if f.w != nil {
			err = f.w.Close()
			f.w, f.sent = nil, nil
		}
		return err
	}
	if f.w == nil {
		f.w, err = a.p.NewWriter(rtps.WriterConfig{
			Topic: infoTopic, Type: infoType, UserData: f.userData,
			QoS: rtps.QoS{Reliability: rtps.Reliable, Durability: rtps.TransientLocal, History: rtps.KeepLast, Depth: 1},
			Accept: func(e rtps.Endpoint, p rtps.Peer) bool {
				return infoIDs(e.UserData, []byte(p.UserData)) == f.idSize
			},
		})
		if err != nil {
			return err
		}
	}
	sample := encodeInfo(f.idSize, a.p.GUID(), []nodeEntities{node})
	if bytes.Equal(sample, f.sent) {
		return nil
	}
	if _, err := f.w.Write(sample, a.now()); err != nil {
		return err
	}
	f.sent = sample
	return nil
}
