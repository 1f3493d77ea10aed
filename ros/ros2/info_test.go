package ros2

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/gobag/gobag/rtps"
)

// appendInfo encodes a ParticipantEntitiesInfo by hand, with ids of so many bytes.
func appendInfo(order binary.AppendByteOrder, idSize int, participant rtps.GUID, nodes []nodeEntities) []byte {
	return appendInfoPadded(order, idSize, participant, nodes, 0)
}

// appendInfoPadded is appendInfo with that byte where values are aligned.
func appendInfoPadded(order binary.AppendByteOrder, idSize int, participant rtps.GUID, nodes []nodeEntities, pad byte) []byte {
	b := []byte{0, 0, 0, 0}
	if order == binary.AppendByteOrder(binary.LittleEndian) {
		b[1] = 1
	}
	align := func() {
		for len(b)%4 != 0 {
			b = append(b, pad)
		}
	}
	u32 := func(n int) { align(); b = order.AppendUint32(b, uint32(n)) }
	str := func(s string) { u32(len(s) + 1); b = append(append(b, s...), 0) }
	id := func(g rtps.GUID) { b = append(append(b, g[:]...), make([]byte, idSize-16)...) }
	ids := func(list []rtps.GUID) {
		u32(len(list))
		for _, g := range list {
			id(g)
		}
	}
	id(participant)
	u32(len(nodes))
	for _, n := range nodes {
		str(n.namespace)
		str(n.name)
		ids(n.readers)
		ids(n.writers)
	}
	return b
}

var le = binary.AppendByteOrder(binary.LittleEndian)

func guid(n byte) (g rtps.GUID) {
	for i := range g {
		g[i] = n + byte(i)
	}
	return g
}

var infoCases = map[string][]nodeEntities{
	"none": nil,
	"one":  {{namespace: "/", name: "talker", readers: []rtps.GUID{guid(1)}, writers: []rtps.GUID{guid(2), guid(3)}}},
	"two":  {{namespace: "/robot/arm", name: "a"}, {namespace: "", name: "listener_longer", readers: []rtps.GUID{guid(4), guid(5), guid(6)}}},
}

func TestParseInfo(t *testing.T) {
	for name, nodes := range infoCases {
		for _, size := range []int{16, 24} {
			for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
				payload := appendInfo(order, size, guid(9), nodes)
				for pad := range 4 {
					p, got, err := parseInfo(append(payload[:len(payload):len(payload)], make([]byte, pad)...))
					if err != nil || p != guid(9) || len(got) != len(nodes) {
						t.Fatalf("%s, %d-byte ids, %v, padding %d: %v %v %v", name, size, order, pad, p, got, err)
					}
					for i := range nodes {
						if !reflect.DeepEqual(got[i], nodes[i]) {
							t.Errorf("%s, %d-byte ids: node %d is %+v", name, size, i, got[i])
						}
					}
				}
				// Whatever is cut off or added is noticed, and nothing panics.
				for n := range payload {
					if size == 24 && n >= 24 && n < 28 {
						continue // the same bytes as a 16-byte id without nodes
					}
					if len(payload)-n > 3 || payload[len(payload)-1] != 0 {
						if _, _, err := parseInfo(payload[:n]); err == nil {
							t.Errorf("%s, %d-byte ids: accepted when cut to %d of %d bytes", name, size, n, len(payload))
						}
					}
				}
				if _, _, err := parseInfo(append(payload[:len(payload):len(payload)], 1)); err == nil {
					t.Errorf("%s: accepted with a byte too many", name)
				}
			}
		}
	}
	if got := infoCases["two"][0].fullName(); got != "/robot/arm/a" {
		t.Errorf("full name is %q", got)
	}
	if got := infoCases["two"][1].fullName() + infoCases["one"][0].fullName(); got != "/listener_longer/talker" {
		t.Errorf("full names are %q", got)
	}
}

func TestParseInfoRefusesCounts(t *testing.T) {
	payload := appendInfo(binary.LittleEndian, 16, guid(1), infoCases["one"])
	binary.LittleEndian.PutUint32(payload[20:], 0xffffffff)
	if _, _, err := parseInfo(payload); err == nil || !strings.Contains(err.Error(), infoTopic) {
		t.Errorf("a node count of 2^32-1: %v", err)
	}
	if _, _, err := parseInfo(make([]byte, maxInfo+1)); err == nil {
		t.Error("an overlong sample was accepted")
	}
}

func FuzzParseInfo(f *testing.F) {
	for _, nodes := range infoCases {
		f.Add(appendInfo(binary.LittleEndian, 16, guid(9), nodes))
		f.Add(appendInfo(binary.BigEndian, 24, guid(9), nodes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, nodes, err := parseInfo(b)
		if err != nil && nodes != nil {
			t.Error("an error and nodes")
		}
		total := 0
		for _, n := range nodes {
			total += len(n.name) + len(n.namespace) + 16*(len(n.readers)+len(n.writers))
		}
		if total > len(b) {
			t.Errorf("%d bytes of nodes out of %d", total, len(b))
		}
	})
}
