//go:build linux

package interop_test

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// nodeWatcher is a node of a vendor, as of Iron and later (16) or as of Humble (24), that looks at the others.
type nodeWatcher struct {
	*lab.Proc
	name   string
	humble bool
}

func watch(t *testing.T, n *lab.Net, v lab.Vendor, idSize int) nodeWatcher {
	t.Helper()
	w := nodeWatcher{name: fmt.Sprintf("/lab/%s_%d", v, idSize), humble: idSize == 24}
	p, err := n.WatchNodes(v, fmt.Sprintf("%s:%d", w.name, idSize))
	must(t, err)
	t.Cleanup(p.Kill)
	w.Proc = p
	return w
}

// watchAll starts a watcher of each vendor and generation.
func watchAll(t *testing.T, n *lab.Net) (all []nodeWatcher) {
	t.Helper()
	for _, v := range []lab.Vendor{lab.Cyclone, lab.Fast} {
		all = append(all, watch(t, n, v, 16), watch(t, n, v, 24))
	}
	return all
}

// see waits until the watcher sees the node with these topics, and returns it. With nil, until it is gone.
func (w nodeWatcher) see(t *testing.T, name string, want *lab.Node) (got lab.Node) {
	t.Helper()
	there := false
	for deadline := time.Now().Add(15 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		got, there = lab.Nodes(w.Proc)[name]
		if there == (want != nil) && (want == nil || slices.Equal(got.Reads, want.Reads) && slices.Equal(got.Writes, want.Writes)) {
			return got
		}
	}
	t.Errorf("%s sees %s: %v, %+v; want %+v", w.name, name, there, got, want)
	return got
}

// id returns the participant that the watcher is.
func (w nodeWatcher) id() string { return w.Events("ready")[0].Text("id")[:24] }

// misread fails the test where a watcher got a sample of that participant that it cannot read.
func (w nodeWatcher) misread(t *testing.T, participant string) {
	t.Helper()
	for _, e := range w.Events("odd") {
		// Four bytes of header, then the participant's id.
		if data := e.Text("data"); participant == "" || strings.HasPrefix(data[min(len(data), 8):], participant) {
			t.Errorf("%s cannot read %s", w.name, data)
		}
	}
}

// Nodes of both vendors and both generations see the recorder with its readers credited, and the player with its writers,
// while they run: what `ros2 node list` and `ros2 node info` show.
func TestNodeList(t *testing.T) {
	t.Parallel()
	needPeers(t)
	n := newNet(t)
	topics := []lab.Topic{{Kind: lab.String, Name: "/chatter", Hz: 20, Hash: stringHash}, {Kind: lab.Imu, Name: "/imu", Hz: 50}}
	onWire := []string{"rt/chatter", "rt/imu"}
	watchers := watchAll(t, n)
	pub := publish(t, n, topics, "--node", "/lab/driver:16")
	rec := record(t, n, topics, "--remote-control", "off") // nothing but its readers
	var gobags []string
	for _, w := range watchers {
		gobags = append(gobags, w.see(t, "/rosbag2_recorder", &lab.Node{Reads: onWire}).Participant)
	}
	must(t, rec.Stop(patience))
	must(t, pub.Stop(patience))
	for _, w := range watchers {
		w.see(t, "/rosbag2_recorder", nil)
	}
	play, err := gobag.Play(n, rec.Dir, "--loop", "--remote-control", "off")
	must(t, err)
	t.Cleanup(play.Kill)
	for _, w := range watchers {
		gobags = append(gobags, w.see(t, "/rosbag2_player", &lab.Node{Writes: onWire}).Participant)
	}
	must(t, play.Stop(patience))
	for _, w := range watchers {
		w.see(t, "/rosbag2_player", nil)
		for _, id := range gobags {
			w.misread(t, id)
		}
	}
}

// No node ever gets a sample of ros_discovery_info in the form of the other generation, whoever comes first: not one datagram
// with it is sent. Nodes of Humble crash of it.
func TestNodeFormsStayApart(t *testing.T) {
	t.Parallel()
	needPeers(t)
	_, err := lab.Tool("dumpcap")
	needs(t, err)
	n := newNet(t)
	if n.Namespace == "" {
		t.Skip("needs a network namespace of its own")
	}
	file := filepath.Join(t.TempDir(), "capture.pcap")
	capture, err := n.Capture(file)
	must(t, err)
	t.Cleanup(capture.Kill)
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 50}}
	publish(t, n, topics, "--node", "/lab/driver:16")
	// A node of Humble is there before the recorder; the others come later, one of Humble as well.
	watchers := []nodeWatcher{watch(t, n, lab.Fast, 24)}
	rec := record(t, n, topics, "--remote-control", "off") // nothing but its readers
	seen := &lab.Node{Reads: []string{"rt/imu"}}
	recorder := watchers[0].see(t, "/rosbag2_recorder", seen).Participant
	watchers = append(watchers, watch(t, n, lab.Cyclone, 24), watch(t, n, lab.Cyclone, 16), watch(t, n, lab.Fast, 16))
	humble := map[string]bool{} // participants
	for _, w := range watchers {
		w.see(t, "/rosbag2_recorder", seen)
		humble[w.id()] = w.humble
	}
	time.Sleep(500 * time.Millisecond)
	must(t, rec.Stop(patience))
	must(t, lab.StopCapture(capture))

	hashed := map[string]bool{} // the recorder's writers on ros_discovery_info, and whether they are of the form of Iron
	for _, w := range watchers {
		for _, e := range w.Events("endpoint") {
			if e.Text("topic") == "ros_discovery_info" && e["writer"] == true && strings.HasPrefix(e.Text("id"), recorder) {
				hashed[e.Text("id")] = strings.Contains(e.Text("user_data"), "typehash=")
			}
		}
	}
	sent := map[bool]int{} // samples to nodes of Humble, and to others
	must(t, lab.EachDatagram(file, func(p *lab.Packet) {
		for _, m := range p.Submessage {
			isHashed, ok := hashed[hex.EncodeToString(append(p.Prefix[:], m.Writer[:]...))]
			if !ok || m.Kind != "DATA" && m.Kind != "DATA_FRAG" {
				continue
			}
			isHumble, known := humble[hex.EncodeToString(m.Dest[:])]
			if !known || isHashed == isHumble {
				t.Errorf("form with hash %v sent to %v, which is of Humble: %v (known: %v)", isHashed, m.Dest, isHumble, known)
			}
			sent[isHumble]++
		}
	}))
	if len(hashed) < 2 || sent[true] < 2 || sent[false] < 2 {
		t.Errorf("%d writers seen, %d samples to nodes of Humble, %d to others: this test shows nothing", len(hashed), sent[true], sent[false])
	}
}
