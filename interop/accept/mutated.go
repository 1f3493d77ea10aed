//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// checkMutated feeds damaged datagrams of real captures to the parser, and to a live participant that must still record
// afterwards.
func checkMutated(b *bench) error { return mutated(b, pick(b, 1_000_000, 50_000)) }

// checkMutatedLong is checkMutated at length.
func checkMutatedLong(b *bench) error { return mutated(b, pick(b, 10_000_000, 100_000)) }

func mutated(b *bench, count int) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	if n.Namespace == "" {
		return errors.New("needs a network namespace of its own: the captures are of domain 0")
	}
	n.Domain = 0
	seed := rand.Uint64()
	b.note("seed %d", seed)
	for _, what := range []string{"parser", "participant"} {
		child, err := startChild(n, "mutated-child", "-what", what, "-count", strconv.Itoa(count), "-domain", strconv.Itoa(n.Domain),
			"-seed", strconv.FormatUint(seed, 10), "-seeds", string(b.peer))
		if err != nil {
			return err
		}
		defer child.Kill()
		done, waited := child.Await("done", 1, 10*time.Minute+time.Duration(count/5_000)*time.Second)
		if waited == nil && what == "participant" {
			waited = stillReceives(b, n, child)
		}
		if err := errors.Join(waited, child.Wait(30*time.Second)); err != nil {
			b.figure(false, "mutated datagrams, "+what, "no panic", "%s", firstLine(err.Error()))
			b.note("%v", err)
			continue
		}
		b.figure(done.Int("count") >= int64(count), "mutated datagrams, "+what, fmt.Sprintf("%d, no panic", count), "%d taken (%d malformed)",
			done.Int("count"), done.Int("malformed"))
		if what == "participant" {
			b.figure(done.Int("peers") > 0 && done.Int("samples") > 0, "mutated datagrams, participant, what came through",
				"peers and samples", "%d peers known at most, %d endpoints, %d samples", done.Int("peers"), done.Int("endpoints"), done.Int("samples"))
		}
		growth := done.Int("heap_after") - done.Int("heap_before")
		b.figure(growth < 96<<20, "mutated datagrams, "+what+", heap", "growth within the stated bounds (< 96 MiB)",
			"%.1f MiB more after the last one, peak %.1f MiB", float64(growth)/(1<<20), float64(done.Int("heap_peak"))/(1<<20))
	}
	return nil
}

// stillReceives publishes to the participant after the storm.
func stillReceives(b *bench, n *lab.Net, child *lab.Proc) error {
	pub, err := n.PublishAs(b.peer, []lab.Topic{{Kind: lab.String, Name: "/chatter", Hz: 100, Count: 100}}, "--wait", "1")
	if err != nil {
		return err
	}
	defer pub.Kill()
	if err := pub.Wait(60 * time.Second); err != nil {
		return err
	}
	e, err := child.Await("received", 1, 30*time.Second)
	if err != nil {
		return err
	}
	b.figure(e.Int("fresh") == 100, "samples received after the storm", "all", "%d of 100", e.Int("fresh"))
	return nil
}

// mutatedChild is the process that must survive.
func mutatedChild(args []string) error {
	flags := flag.NewFlagSet("mutated-child", flag.ContinueOnError)
	what := flags.String("what", "", "parser or participant")
	count := flags.Int("count", 0, "datagrams")
	domain := flags.Int("domain", 0, "domain")
	seed := flags.Uint64("seed", 0, "seed")
	of := flags.String("seeds", "", "fast: damage datagrams of Fast DDS only, else all that were captured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	seeds, err := captured(filepath.Join("rtps", "wire", "testdata"))
	if err != nil {
		return err
	}
	if *of == string(lab.Fast) {
		seeds = slices.DeleteFunc(seeds, func(b []byte) bool {
			return len(b) < wire.HeaderSize || wire.VendorID(b[6:8]) != wire.VendorFast
		})
	}
	m := &mutator{r: rand.New(rand.NewPCG(*seed, 1)), seeds: seeds}
	if *what == "parser" {
		return mutateParser(m, *count)
	}
	return mutateParticipant(m, *count, *domain)
}

// heapWatch measures the live heap, and what a participant knows.
type heapWatch struct {
	before, peak     uint64
	peers, endpoints int // at most
	samples          atomic.Uint64
}

func liveHeap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

func (h *heapWatch) look() { h.peak = max(h.peak, liveHeap()) }

func (h *heapWatch) report(count, malformed uint64) {
	h.look()
	fmt.Printf("{\"event\":\"done\",\"count\":%d,\"malformed\":%d,\"heap_before\":%d,\"heap_after\":%d,\"heap_peak\":%d,"+
		"\"peers\":%d,\"endpoints\":%d,\"samples\":%d}\n", count, malformed, h.before, liveHeap(), h.peak, h.peers, h.endpoints, h.samples.Load())
}

// deepParser hands payloads of builtin writers on to the parsers of discovery data, as a participant does.
type deepParser struct{ sets int }

func (p *deepParser) Data(ctx *wire.Context, d *wire.Data) {
	_, _ = wire.ParseParticipant(d.Payload, &d.InlineQoS, ctx.Vendor)
	_, _ = wire.ParseEndpoint(d.Payload, &d.InlineQoS, ctx.Vendor, true)
	_, _ = wire.ParseEndpoint(d.Payload, &d.InlineQoS, ctx.Vendor, false)
	_, _ = wire.ParseKey(d.Payload, &d.InlineQoS)
	_, _ = wire.ParseLiveliness(d.Payload)
}
func (p *deepParser) DataFrag(*wire.Context, *wire.DataFrag)           {}
func (p *deepParser) Heartbeat(*wire.Context, *wire.Heartbeat)         {}
func (p *deepParser) HeartbeatFrag(*wire.Context, *wire.HeartbeatFrag) {}
func (p *deepParser) Gap(_ *wire.Context, g *wire.Gap) {
	for range g.Set.All() {
		p.sets++
	}
}
func (p *deepParser) AckNack(_ *wire.Context, a *wire.AckNack) {
	for range a.Set.All() {
		p.sets++
	}
}
func (p *deepParser) NackFrag(_ *wire.Context, n *wire.NackFrag) {
	for range n.Set.All() {
		p.sets++
	}
}

func mutateParser(m *mutator, count int) error {
	heap := heapWatch{before: liveHeap()}
	var decoder wire.Decoder
	var malformed uint64
	p := &deepParser{}
	for i := range count {
		if err := decoder.Decode(m.next(), p); err != nil {
			malformed++
		}
		if i%(count/10+1) == 0 {
			heap.look()
		}
	}
	heap.report(uint64(count), malformed)
	return nil
}

// mutateParticipant sends the datagrams to the sockets of a participant with readers on the topics of the captures and a
// writer, as if they were meant for it.
func mutateParticipant(m *mutator, count, domain int) error {
	p, err := rtps.NewParticipant(rtps.Config{Domain: domain})
	if err != nil {
		return err
	}
	defer p.Close()
	var heap heapWatch
	fresh := make(chan struct{}, 100)
	var calm atomic.Bool // the storm is over
	for _, t := range [][2]string{{"rt/chatter", "std_msgs::msg::dds_::String_"}, {"rt/image", "sensor_msgs::msg::dds_::Image_"},
		{"rt/imu", "sensor_msgs::msg::dds_::Imu_"}, {"rt/latched", "std_msgs::msg::dds_::String_"}} {
		q := rtps.QoS{Reliability: rtps.Reliable}
		if t[0] == "rt/latched" {
			q.Durability = rtps.TransientLocal
		}
		_, err := p.NewReader(rtps.ReaderConfig{Topic: t[0], Type: t[1], QoS: q,
			Handler: func(s rtps.Sample) {
				heap.samples.Add(1)
				if n, err := (lab.Topic{Kind: lab.String}).Number(s.Data); err == nil && n < 100 && len(s.Data) > 18 && calm.Load() {
					select {
					case fresh <- struct{}{}:
					default:
					}
				}
				s.Release()
			}})
		if err != nil {
			return err
		}
	}
	w, err := p.NewWriter(rtps.WriterConfig{Topic: "rt/chatter", Type: "std_msgs::msg::dds_::String_", QoS: rtps.QoS{Reliability: rtps.Reliable}})
	if err != nil {
		return err
	}
	for range 20 {
		if _, err := w.Write([]byte{0, 1, 0, 0, 2, 0, 0, 0, 'x', 0, 0, 0}, 0); err != nil {
			return err
		}
	}
	m.target = p.GUID().Prefix()
	heap.before = liveHeap()
	if err := flood(m, p, count, domain, &heap); err != nil {
		return err
	}
	s := p.Stats()
	heap.report(s.Datagrams, s.Malformed)
	calm.Store(true)
	for got := 0; ; got++ {
		select {
		case <-fresh:
			if got == 99 {
				fmt.Println(`{"event":"received","fresh":100}`)
				return nil
			}
		case <-time.After(20 * time.Second):
			fmt.Printf("{\"event\":\"received\",\"fresh\":%d}\n", got)
			return nil
		}
	}
}

// flood sends until the participant has taken count datagrams, never further ahead than its socket buffers hold.
func flood(m *mutator, p *rtps.Participant, count, domain int, heap *heapWatch) error {
	var sockets []net.Conn
	base := 7400 + 250*domain // the first participant of a network of its own: index 0
	for _, port := range []int{base + 10, base + 11} {
		c, err := net.Dial("udp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return err
		}
		defer c.Close()
		sockets = append(sockets, c)
	}
	start := p.Stats().Datagrams
	looked := 0
	for sent, last := 0, time.Now(); ; {
		taken := int(p.Stats().Datagrams - start)
		if taken >= count {
			return nil
		}
		if taken-looked > count/20 {
			heap.look()
			heap.peers, heap.endpoints = max(heap.peers, len(p.Peers())), max(heap.endpoints, len(p.Endpoints()))
			looked = taken
		}
		if sent-taken > 400 { // what it has not taken by now it dropped
			if time.Since(last) > 20*time.Millisecond {
				sent = taken
			} else {
				time.Sleep(100 * time.Microsecond)
			}
			continue
		}
		for range 50 {
			d := m.next()
			for _, c := range sockets {
				_, _ = c.Write(d) // refused or not: what counts is what was taken
			}
			sent += len(sockets)
		}
		last = time.Now()
	}
}

// captured reads the UDP payloads of the captures in a folder.
func captured(dir string) ([][]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.pcap"))
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if len(b) < 24 || binary.LittleEndian.Uint32(b) != 0xa1b2c3d4 {
			return nil, fmt.Errorf("%s: not a little-endian pcap file", file)
		}
		for b = b[24:]; len(b) >= 16; {
			n := int(binary.LittleEndian.Uint32(b[8:]))
			if n > len(b)-16 {
				return nil, fmt.Errorf("%s: packet of %d bytes, %d left", file, n, len(b)-16)
			}
			frame := b[16 : 16+n]
			if n > 42 && binary.BigEndian.Uint16(frame[12:]) == 0x0800 && frame[23] == 17 {
				all = append(all, frame[14+int(frame[14]&15)*4+8:])
			}
			b = b[16+n:]
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no captured datagrams in %s", dir)
	}
	return all, nil
}
