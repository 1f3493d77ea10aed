//go:build linux

package interop_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// ours selects what gobag sent: everything that is not from Cyclone DDS (vendor 01.10).
const ours = "rtps && rtps.vendorId != 0x0110"

// Every datagram that gobag sends while it records and plays decodes in tshark without a complaint, and every submessage
// is a multiple of four bytes long (Cyclone DDS 0.10 drops the rest of a datagram otherwise).
func TestDatagramsDecode(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"dumpcap", "tshark"} {
		_, err := lab.Tool(tool)
		needs(t, err)
	}
	n := newNet(t)
	if n.Namespace == "" {
		t.Skip("needs a network namespace of its own")
	}
	file := filepath.Join(t.TempDir(), "capture.pcap")
	capture, err := n.Capture(file)
	must(t, err)
	t.Cleanup(capture.Kill)
	topics := []lab.Topic{
		{Kind: lab.String, Name: "/varying", Hz: 50, Hash: stringHash}, // every padding
		{Kind: lab.Image, Name: "/small", Hz: 10, Size: 1345},
		{Kind: lab.Image, Name: "/large", Hz: 2, Size: 200_001},
		{Kind: lab.String, Name: "/best_effort", Hz: 50, BestEffort: true},
		{Kind: lab.String, Name: "/latched", Count: 3, TransientLocal: true, Depth: 3, Early: true},
	}
	rec := record(t, n, topics)
	pub := publish(t, n, topics, "--seconds", "2", "--wait", "1")
	must(t, pub.Wait(patience))
	must(t, rec.Stop(patience))
	sub, _ := subscribe(t, n, topics)
	play, err := gobag.Play(n, rec.Dir, "-d", "1")
	must(t, err)
	t.Cleanup(play.Kill)
	must(t, play.Wait(patience))
	time.Sleep(200 * time.Millisecond)
	must(t, sub.Stop(patience))
	must(t, lab.StopCapture(capture))

	all, err := lab.Dissect(file, ours, "frame.number", "rtps.sm.id", "rtps.sm.octetsToNextHeader")
	must(t, err)
	kinds := map[string]int{}
	for _, line := range all {
		f := strings.Split(line, "\t")
		for _, id := range strings.Split(f[1], ",") {
			kinds[id]++
		}
		for _, octets := range strings.Split(f[2], ",") {
			if k, err := strconv.Atoi(octets); err != nil || k%4 != 0 {
				t.Fatalf("frame %s: submessages of %s bytes", f[0], f[2])
			}
		}
	}
	// Of each kind that such a run must send there is something to judge: DATA, DATA_FRAG, HEARTBEAT, ACKNACK, INFO_DST.
	for _, id := range []string{"0x15", "0x16", "0x07", "0x06", "0x0e"} {
		if kinds[id] == 0 {
			t.Errorf("no submessage %s among %d datagrams: %v", id, len(all), kinds)
		}
	}
	bad, err := lab.Dissect(file, "("+ours+") && (_ws.malformed || _ws.expert.severity >= 0x400000)", "frame.number", "_ws.expert.message",
		"rtps.sm.id", "udp.length")
	must(t, err)
	for i, line := range bad {
		if i == 10 {
			break
		}
		t.Errorf("tshark complains: %s", line)
	}
	if len(bad) > 0 {
		t.Errorf("%d of %d datagrams with complaints", len(bad), len(all))
	}
	if stray, err := lab.Dissect(file, "udp && !rtps && udp.length > 9", "frame.number", "data"); err != nil || len(stray) > 0 {
		t.Errorf("datagrams that are no RTPS: %q, %v", stray, err)
	}
}
