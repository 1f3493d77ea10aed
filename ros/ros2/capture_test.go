package ros2

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// Captures of real ROS 2 nodes (jazzy, Cyclone DDS and Fast DDS) are looked at through graph and node names: what they
// announce has to come out as topics with types, hashes and nodes.

// observer collects discovery from datagrams.
type observer struct {
	t         *testing.T
	endpoints map[rtps.GUID]rtps.Endpoint
	infos     map[rtps.GUID][][]byte // payloads by writer, of every writer that may be one of ros_discovery_info
	userData  map[wire.Prefix][]byte // of participants
	vendor    map[wire.Prefix]wire.VendorID
}

func (o *observer) Data(ctx *wire.Context, d *wire.Data) {
	if d.Key || d.InlineQoS.Status != 0 || len(d.Payload) < 4 {
		return
	}
	g := wire.MakeGUID(ctx.Source, d.Writer)
	o.vendor[ctx.Source] = ctx.Vendor
	switch d.Writer {
	case wire.EntitySPDPWriter:
		p, err := wire.ParseParticipant(d.Payload, &d.InlineQoS, ctx.Vendor)
		if err != nil {
			o.t.Errorf("participant: %v", err)
			return
		}
		o.userData[p.GUID.Prefix()] = p.UserData
	case wire.EntityPubWriter, wire.EntitySubWriter:
		e, err := wire.ParseEndpoint(d.Payload, &d.InlineQoS, ctx.Vendor, d.Writer == wire.EntityPubWriter)
		if err != nil {
			o.t.Errorf("endpoint: %v", err)
			return
		}
		o.endpoints[e.GUID] = rtps.Endpoint{GUID: e.GUID, Writer: e.GUID.Entity().Writer(), Topic: e.Topic, Type: e.Type, Keyed: e.GUID.Entity().Keyed(),
			QoS: e.QoS, UserData: e.UserData, Vendor: e.Vendor}
	default:
		if !d.Writer.Builtin() && len(d.Payload) < 4096 {
			o.infos[g] = append(o.infos[g], slices.Clone(d.Payload))
		}
	}
}

func (o *observer) DataFrag(*wire.Context, *wire.DataFrag)           {}
func (o *observer) AckNack(*wire.Context, *wire.AckNack)             {}
func (o *observer) NackFrag(*wire.Context, *wire.NackFrag)           {}
func (o *observer) Heartbeat(*wire.Context, *wire.Heartbeat)         {}
func (o *observer) HeartbeatFrag(*wire.Context, *wire.HeartbeatFrag) {}
func (o *observer) Gap(*wire.Context, *wire.Gap)                     {}

// captures returns the captures of real nodes, and skips the test where they are absent.
func captures(t *testing.T) []string {
	dir := os.Getenv("GOBAG_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "fixtures", "rosbag2", "*", "*.pcap"))
	deeper, _ := filepath.Glob(filepath.Join(dir, "fixtures", "rosbag2", "*", "pcap", "*.pcap"))
	if files = append(files, deeper...); len(files) == 0 {
		t.Skip("the shared captures are absent")
	}
	return files
}

func TestCaptures(t *testing.T) {
	hashed, named, rebuilt, understood := 0, 0, 0, 0
	for _, file := range captures(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".pcap"), func(t *testing.T) {
			o := &observer{t: t, endpoints: map[rtps.GUID]rtps.Endpoint{}, infos: map[rtps.GUID][][]byte{}, userData: map[wire.Prefix][]byte{}, vendor: map[wire.Prefix]wire.VendorID{}}
			for _, b := range datagrams(t, file) {
				_ = wire.Decode(b, o) // captures contain what is not RTPS as well
			}
			names := newNodeNames()
			var list []rtps.Endpoint
			for g, e := range o.endpoints {
				list = append(list, e)
				if e.Topic == infoTopic && !e.Writer {
					if got := infoIDs(e.UserData, o.userData[g.Prefix()]); got != 16 {
						t.Errorf("a reader of %s with user data %q (participant %q) is taken for one of %d-byte ids", infoTopic, e.UserData, o.userData[g.Prefix()], got)
					}
					understood++
				}
				if e.Topic != infoTopic || !e.Writer {
					continue
				}
				if got := string(userTypeHash(e.UserData)); got != infoTypeHash {
					t.Errorf("%s has the hash %q", infoTopic, got)
				}
				for _, payload := range o.infos[g] {
					before := names.version()
					if names.take(g.Prefix(), payload); names.version() == before {
						t.Errorf("%s of %d bytes was not understood", infoTopic, len(payload))
					}
					// What we would send of the same nodes are the same bytes, but for padding, in which Fast DDS leaves what was
					// there.
					participant, nodes, err := parseInfo(payload)
					if err != nil {
						t.Fatal(err)
					}
					own := encodeInfo(16, participant, nodes)
					if o.vendor[g.Prefix()] == wire.VendorFast {
						for i, b := range appendInfoPadded(le, 16, participant, nodes, 0xff) {
							if i < len(payload) && own[i] == 0 && b == 0xff {
								payload[i] = 0
							}
						}
					}
					if rest, ok := bytes.CutPrefix(payload, own); !ok || len(bytes.Trim(rest, "\x00")) > 0 || len(rest) > 3 {
						t.Errorf("%s was\n%x, we would send\n%x", infoTopic, payload, own)
					}
					if participant != wire.MakeGUID(g.Prefix(), wire.EntityParticipant) {
						t.Errorf("%s is of participant %v, its writer is %v", infoTopic, participant, g)
					}
					rebuilt++
				}
			}
			byEndpoint, _ := names.snapshot()
			graph := new(graph).build(list, byEndpoint)
			found := map[string]bool{}
			for _, info := range graph.infos {
				found[info.Name] = true
				for _, e := range append(info.Publishers, info.Subscriptions...) {
					if !strings.Contains(e.Topic.Type, "/msg/") && !strings.Contains(e.Topic.Type, "/srv/") {
						t.Errorf("%s has type %q", info.Name, e.Topic.Type)
					}
					if e.Topic.TypeHash != "" {
						hashed++
					}
					if e.Node != "" {
						named++
					}
				}
			}
			if len(list) > 0 && (!found["/demo/chatter"] || !found["/demo/image"]) { // a talker alone announces no endpoints
				t.Errorf("topics are %v", found)
			}
			for _, e := range list {
				if _, name, ok := DemangleTopic(e.Topic); ok && strings.HasPrefix(e.Topic, "rt/") && !e.Keyed && !found[name] {
					t.Errorf("%s of type %s is not in the graph", e.Topic, e.Type)
				}
			}
		})
	}
	if hashed == 0 || named == 0 || rebuilt == 0 || understood == 0 {
		t.Errorf("%d endpoints with a hash, %d with a node, %d samples made again, %d readers' forms known", hashed, named, rebuilt, understood)
	}
	t.Logf("%d endpoints with a hash, %d with a node, %d samples made again, %d readers' forms known", hashed, named, rebuilt, understood)
}

// datagrams reads the UDP payloads of a little-endian pcap file of Ethernet frames.
func datagrams(t *testing.T, file string) (out [][]byte) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) < 24 || binary.LittleEndian.Uint32(b) != 0xa1b2c3d4 {
		t.Fatalf("%s is not a little-endian pcap file", file)
	}
	for b = b[24:]; len(b) >= 16; {
		n := int(binary.LittleEndian.Uint32(b[8:]))
		if n > len(b)-16 {
			break
		}
		frame := b[16 : 16+n]
		b = b[16+n:]
		if len(frame) < 14+20+8 || frame[12] != 8 || frame[13] != 0 || frame[14+9] != 17 {
			continue // not UDP over IPv4
		}
		if udp := frame[14+int(frame[14]&15)*4:]; len(udp) > 8 {
			out = append(out, udp[8:])
		}
	}
	return out
}
