//go:build linux

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// checkTshark records everything that gobag sends to a peer of each vendor over a lossy cable, before the cable loses it,
// and has tshark take it apart.
func checkTshark(b *bench) error {
	for _, peer := range []lab.Vendor{lab.Cyclone, lab.Fast} {
		file, err := captureSession(b, peer)
		if err != nil {
			return fmt.Errorf("session with %s: %w", vendor(peer), err)
		}
		if err := judgeCapture(b, "session with "+vendor(peer), file); err != nil {
			return err
		}
	}
	return nil
}

// spoken is one of every kind of topic: text of every length, a fragment and a little, large, without acknowledgement,
// latched.
var spoken = []lab.Topic{
	{Kind: lab.String, Name: "/varying", Hz: 50, Hash: "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"},
	{Kind: lab.Image, Name: "/small", Hz: 10, Size: 1345},
	{Kind: lab.Image, Name: "/large", Hz: 5, Size: 300_001},
	{Kind: lab.String, Name: "/best_effort", Hz: 50, BestEffort: true},
	{Kind: lab.String, Name: "/latched", Count: 3, TransientLocal: true, Depth: 3, Early: true},
	{Kind: lab.Reading, Name: "/reading", Hz: 20}, // of a type that has to be asked for
}

// captureSession records on host A what the peer publishes on host B, as a node that says which topics are its own and how
// their types are defined, and plays it back to the peer.
func captureSession(b *bench, peer lab.Vendor) (file string, err error) {
	h, err := lab.NewHosts(lab.EthernetMTU)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	h.Relay.SetRule(lab.Lossy(11, 0.05))
	dir, err := b.dir("tshark")
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "capture.pcap")
	capture, err := h.A.CaptureOn("eth0", "udp and src host "+lab.AddressA.String(), file)
	if err != nil {
		return "", err
	}
	defer capture.Kill()
	recorded := filepath.Join(dir, "bag")
	if err := recordSpoken(b, h, peer, recorded); err != nil {
		return "", fmt.Errorf("record: %w", err)
	}
	sub, err := h.B.SubscribeAs(peer, spoken)
	if err != nil {
		return "", err
	}
	defer sub.Kill()
	play, err := b.gobag.Play(h.A, recorded, "-d", "1", "--wait-for-all-acked", "10000")
	if err != nil {
		return "", err
	}
	defer play.Kill()
	if err := errors.Join(play.Wait(60*time.Second), b.sleep(200*time.Millisecond), sub.Stop(20*time.Second)); err != nil {
		return "", fmt.Errorf("play: %w", err)
	}
	return file, lab.StopCapture(capture)
}

func recordSpoken(b *bench, h *lab.Hosts, peer lab.Vendor, dir string) error {
	rec, err := b.gobag.RecordAll(h.A, dir)
	if err != nil {
		return err
	}
	defer rec.Kill()
	files, err := b.dir("definitions")
	if err != nil {
		return err
	}
	d, err := lab.WriteDefinitions(files, lab.SecretFiles, lab.Reading.Type())
	if err != nil {
		return err
	}
	topics := slices.Clone(spoken)
	topics[len(topics)-1].Hash = d.Hash[lab.Reading.Type()]
	pub, err := h.B.PublishAs(peer, topics, "--seconds", "5", "--wait", "1", "--linger", "10", "--node", "/robot/camera:16", "--definitions", d.Dir)
	if err != nil {
		return err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(60*time.Second), b.sleep(300*time.Millisecond), rec.Stop(30*time.Second)); err != nil {
		return err
	}
	// The definition came over the lossy cable, or this session shows less than it should.
	if text := rec.Stdout() + rec.Stderr(); strings.Contains(text, "without their definition") {
		return fmt.Errorf("the definition of %s was not served: %s", lab.Reading.Type(), text)
	}
	return nil
}

// judgeCapture has tshark complain.
func judgeCapture(b *bench, name, file string) error {
	all, err := lab.Dissect(file, "rtps", "rtps.sm.id")
	if err != nil {
		return err
	}
	kinds := map[string]int{}
	for _, line := range all {
		for _, id := range strings.Split(line, ",") {
			kinds[id]++
		}
	}
	missing := ""
	for _, k := range []struct{ id, name string }{{"0x15", "DATA"}, {"0x16", "DATA_FRAG"}, {"0x07", "HEARTBEAT"}, {"0x06", "ACKNACK"},
		{"0x12", "NACK_FRAG"}, {"0x0e", "INFO_DST"}, {"0x09", "INFO_TS"}} {
		if kinds[k.id] == 0 {
			missing += " " + k.name
		}
	}
	for _, topic := range []string{"ros_discovery_info", "rq/robot/camera/get_type_descriptionRequest"} {
		said, err := lab.Dissect(file, fmt.Sprintf("rtps.param.topicName == %q", topic), "frame.number")
		if err != nil {
			return err
		}
		if len(said) == 0 {
			missing += " an endpoint on " + topic
		}
	}
	b.figure(missing == "" && len(all) > 1000, name+", datagrams of gobag", "every kind of submessage and endpoint among them", "%d, %s", len(all),
		either(missing == "", "every kind", "without"+missing))
	bad, err := lab.Dissect(file, "_ws.malformed || _ws.expert.severity >= 0x400000", "frame.number", "_ws.expert.message", "rtps.sm.id", "udp.length")
	if err != nil {
		return err
	}
	for _, line := range bad[:min(len(bad), 5)] {
		b.note("%s", line)
	}
	b.figure(len(bad) == 0, name+", expert warnings", "none", "%d of %d", len(bad), len(all))
	stray, err := lab.Dissect(file, "udp && !rtps", "frame.number", "udp.length")
	if err != nil {
		return err
	}
	b.figure(len(stray) == 0, name+", not taken for RTPS", "none", "%d", len(stray))
	return nil
}
