package ros2

import (
	"errors"
	"fmt"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/rtps"
)

// The topic on which every participant of a ROS 2 system says which nodes it has (rmw_dds_common).
const (
	infoTopic    = "ros_discovery_info"
	infoType     = "rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_"
	infoTypeHash = "RIHS01_91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e"

	infoTypeHash24 = "RIHS01_a8ade1e13aeb0a06dfed30a0b315c682811598508f6fa4015aa543f00360ff7d" // with ids of 24 bytes; no one announces it

	maxInfo = 8 << 20 // bytes of a sample that are looked at
)

// nodeEntities is a node as ros_discovery_info describes it.
type nodeEntities struct {
	namespace, name  string
	readers, writers []rtps.GUID
}

// fullName is "/namespace/name".
func (n *nodeEntities) fullName() string {
	if n.namespace == "" || n.namespace == "/" {
		return "/" + n.name
	}
	return n.namespace + "/" + n.name
}

// encodeInfo makes a ParticipantEntitiesInfo with ids of so many bytes, as ROS 2's middlewares do: XCDR1, little-endian.
func encodeInfo(idSize int, participant rtps.GUID, nodes []nodeEntities) []byte {
	var e cdr.Encoder
	e.Reset(nil, cdr.CDRLE)
	pad := make([]byte, idSize-len(participant))
	id := func(g rtps.GUID) {
		e.Raw(g[:])
		e.Raw(pad)
	}
	ids := func(list []rtps.GUID) {
		e.SeqLen(len(list))
		for _, g := range list {
			id(g)
		}
	}
	id(participant)
	e.SeqLen(len(nodes))
	for i := range nodes {
		e.Str(nodes[i].namespace)
		e.Str(nodes[i].name)
		ids(nodes[i].readers)
		ids(nodes[i].writers)
	}
	return e.Bytes()
}

// parseInfo reads a ParticipantEntitiesInfo. Ids are 16 bytes long from Iron on, 24 before, and nothing but the length
// tells: one that does not fit exactly is an error. Counts are checked against what is there before anything is made.
func parseInfo(payload []byte) (participant rtps.GUID, nodes []nodeEntities, err error) {
	if len(payload) > maxInfo {
		return participant, nil, fmt.Errorf("parse %s: %d bytes are more than %d", infoTopic, len(payload), maxInfo)
	}
	participant, nodes, err = parseInfoIDs(payload, 16)
	if err == nil {
		return participant, nodes, nil
	}
	if p, n, err24 := parseInfoIDs(payload, 24); err24 == nil {
		return p, n, nil
	}
	return rtps.GUID{}, nil, fmt.Errorf("parse %s: %w", infoTopic, err)
}

// parseInfoIDs reads with ids of so many bytes, of which the first 16 are a GUID.
func parseInfoIDs(payload []byte, idSize int) (participant rtps.GUID, nodes []nodeEntities, err error) {
	d, err := cdr.NewDecoder(payload)
	if err != nil {
		return participant, nil, err
	}
	id := func() (g rtps.GUID) {
		copy(g[:], d.Bytes(idSize))
		return g
	}
	ids := func() (list []rtps.GUID) {
		for range d.Len(idSize) {
			list = append(list, id())
		}
		return list
	}
	participant = id()
	for range d.Len(16) { // two strings and two counts take at least 16 bytes
		nodes = append(nodes, nodeEntities{namespace: d.Str(), name: d.Str(), readers: ids(), writers: ids()})
		if d.Err() != nil {
			break
		}
	}
	if err := d.Err(); err != nil {
		return rtps.GUID{}, nil, err
	}
	rest := d.Bytes(d.Left())
	if len(rest) > 3 {
		return rtps.GUID{}, nil, fmt.Errorf("%d bytes too many", len(rest))
	}
	for _, b := range rest {
		if b != 0 {
			return rtps.GUID{}, nil, errors.New("padding is not zero")
		}
	}
	return participant, nodes, nil
}
