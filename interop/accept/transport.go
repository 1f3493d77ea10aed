//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gobag/gobag/interop/lab"
)

// transport are the checks of `make accept-transport`.
var transport = suite{lab.Cyclone, []check{
	{"loads", "100 MB/s and 10 kHz, reliable, to nowhere and to each format: everything arrives, at what CPU", checkTransportLoads},
	{"unthrottled", "as fast as a writer goes: MB/s beside the peers' subscribers", checkUnthrottled},
	{"harder", "loads at which rosbag2 loses: share and losses", checkHarder},
	{"cost", "CPU of recording beside a Cyclone C reader and a C or C++ engine that writes the same bytes", checkRecordingCost},
	{"slowdisk", "for a minute twice what the disk takes: small topics whole, all loss in the images", checkSlowDisk},
	{"held", "back-pressure while the disk stands still: a publisher that waits beside one that does not", checkBackpressure},
	{"flood", "50,000 hostile datagrams/s beside a recording of 10 MB/s", checkFlood},
	{"crowd", "200 participants with 2,000 endpoints", checkCrowd},
	{"mutated", "mutated datagrams of both vendors, ten million", checkMutatedLong},
	{"unprivileged", "100 MB/s without root, with a stock kernel's receive buffers", checkUnprivileged},
	{"soak", "minutes of traffic with publishers that come, go and are killed", checkSoak},
}}

// transportLoad is a load with writers that keep what is not acknowledged.
type transportLoad struct {
	name  string
	topic lab.Topic
	cpu   float64 // bar: the reader's CPU by that of the Cyclone C reader
}

var transportLoads = []transportLoad{
	{"1 × 100 Hz × 1 MB", lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 1, Hz: 100, Size: 1_000_000}, 1.5},
	{"10 × 100 Hz × 100 kB", lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 10, Hz: 100, Size: 100_000}, 1.2},
	{"100 × 100 Hz × 10 kB", lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 100, Hz: 100, Size: 10_000}, 1.2},
	{"1 × 10 kHz × 100 B", lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 1, Hz: 10_000, Size: 100}, 1.2},
}

// rosbag2CPU is what the real rosbag2 took for 5 s of a 100 MB/s load on a machine of this kind, in CPU seconds, by storage
// and load (its own measurements; the fourth load was not measured so).
var rosbag2CPU = map[string][3]float64{"mcap": {0.90, 0.85, 1.76}, "sqlite3": {1.60, 1.62, 2.69}}

// toNull is the storage that keeps nothing.
const toNull = "null"

// recordedTo are the formats that the loads are recorded to.
var recordedTo = []string{"mcap", "leveldb", "sqlite3"}

// recorderMemory is what a recorder may have resident beside the cache in use: the largest format's own buffers and 32 MiB.
const recorderMemory = (16 + 32) << 20

// checkTransportLoads has readers and recorders take every load in turns.
func checkTransportLoads(b *bench) error {
	bags, err := openBags()
	if err != nil {
		return err
	}
	defer os.RemoveAll(bags)
	seconds := pick(b, 5.0, 2.0)
	for _, peer := range []lab.Vendor{lab.Cyclone, lab.Fast} {
		for k, load := range transportLoads {
			trials := []loadTrial{{receiver: vendor(lab.Cyclone)}, {receiver: byRecorder, flags: []string{"-s", toNull}}}
			for _, f := range recordedTo {
				trials = append(trials, loadTrial{receiver: byRecorder, flags: []string{"-s", f}})
			}
			results := make([][]reception, len(trials))
			for run := range pick(b, 10, 2) {
				for i, t := range trials {
					t.peer, t.topics, t.seconds, t.dir = peer, []lab.Topic{load.topic}, seconds, filepath.Join(bags, "bag")
					r, err := receiveLoad(b, t)
					if err != nil {
						return fmt.Errorf("%s from %s by %s: %w", load.name, vendor(peer), t.name(), err)
					}
					results[i] = append(results[i], r)
					if r.got != r.sent || run == 0 {
						b.note("%s from %s, run %d, %s: %s", load.name, vendor(peer), run+1, t.name(), r)
					}
				}
			}
			theirs := medianOf(results[0], reception.seconds)
			for i, t := range trials[1:] {
				judgeLoad(b, fmt.Sprintf("%s from %s, %s", load.name, vendor(peer), t.name()), results[i+1])
				cpu := medianOf(results[i+1], reception.seconds)
				if t.flags[1] == toNull {
					b.figure(cpu <= load.cpu*theirs, fmt.Sprintf("%s from %s, %s, CPU", load.name, vendor(peer), t.name()),
						fmt.Sprintf("≤ %g × that of the Cyclone C subscriber", load.cpu), "%.2f s beside %.2f s: %.2f ×", cpu, theirs, cpu/theirs)
					continue
				}
				if known, ok := rosbag2CPU[t.flags[1]]; ok && k < len(known) {
					bar := known[k] * seconds / 5
					b.figure(cpu <= bar, fmt.Sprintf("%s from %s, %s, CPU", load.name, vendor(peer), t.name()), "below that of rosbag2 as measured once",
						"%.2f s beside %.2f s", cpu, bar)
				}
			}
		}
	}
	return nil
}

// judgeLoad makes the figures of the runs of one receiver: everything arrived, and the memory that it took.
func judgeLoad(b *bench, name string, runs []reception) {
	whole := 0
	rss := int64(0)
	for _, r := range runs {
		if r.got == r.sent {
			whole++
		}
		rss = max(rss, r.rss)
	}
	b.figure(whole == len(runs), name, "100 % in every run", "%d of %d runs, at worst %.3f %%", whole, len(runs),
		100*slices.MinFunc(runs, func(x, y reception) int { return int(1e9 * (x.share() - y.share())) }).share())
	b.figure(rss <= recorderMemory, name+", memory", fmt.Sprintf("≤ %d MiB (buffers of the format and 32 MiB; cache in use comes on top)", recorderMemory>>20),
		"%.0f MiB at most", float64(rss)/(1<<20))
}

// name is what a trial is called in figures.
func (t *loadTrial) name() string {
	if t.receiver == byRecorder && len(t.flags) > 1 {
		return t.receiver + " to " + t.flags[1]
	}
	return t.receiver
}

func (r reception) seconds() float64 { return r.cpu.Seconds() }

// speed is in MB/s of payload.
func (r reception) speed(size int) float64 {
	return float64(r.got) * float64(size) / 1e6 / max(r.took.Seconds(), 1e-9)
}

func medianOf(runs []reception, f func(reception) float64) float64 {
	var all []float64
	for _, r := range runs {
		all = append(all, f(r))
	}
	return lab.Quantile(all, 0.5)
}

// checkUnthrottled lets a writer that keeps all go as fast as its reader acknowledges.
func checkUnthrottled(b *bench) error {
	bags, err := openBags()
	if err != nil {
		return err
	}
	defer os.RemoveAll(bags)
	for _, peer := range []lab.Vendor{lab.Cyclone, lab.Fast} {
		for _, load := range []struct {
			topic lab.Topic
			bar   float64
		}{
			{lab.Topic{Kind: lab.Blob, Name: "/load", Count: pick(b, 2000, 300), Size: 1_000_000}, 0.95},
			{lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 10, Count: pick(b, 4000, 1000), Size: 10_000}, 1},
		} {
			trials := []loadTrial{{receiver: vendor(lab.Cyclone)}, {receiver: vendor(lab.Fast)}, {receiver: byProbe},
				{receiver: byRecorder, flags: []string{"-s", "mcap"}}}
			results := make([][]reception, len(trials))
			name := fmt.Sprintf("%d kB unthrottled from %s", load.topic.Size/1000, vendor(peer))
			for run := range pick(b, 5, 1) {
				for i, t := range trials {
					t.peer, t.topics, t.dir, t.seconds = peer, []lab.Topic{load.topic}, filepath.Join(bags, "bag"), noEnd
					r, err := receiveLoad(b, t)
					if err != nil {
						return fmt.Errorf("%s by %s: %w", name, t.name(), err)
					}
					b.note("%s, run %d, %s: %.0f MB/s, %s", name, run+1, t.name(), r.speed(load.topic.Size), r)
					results[i] = append(results[i], r)
				}
			}
			speeds := make([]float64, len(trials))
			for i := range trials {
				speeds[i] = medianOf(results[i], func(r reception) float64 { return r.speed(load.topic.Size) })
			}
			best := max(speeds[0], speeds[1])
			b.figure(speeds[2] >= load.bar*best, name, fmt.Sprintf("≥ %g × the better of the peers' subscribers", load.bar),
				"%.0f MB/s beside %.0f (Cyclone C) and %.0f (Fast DDS): %.2f ×", speeds[2], speeds[0], speeds[1], speeds[2]/best)
			if load.topic.Size == 1_000_000 {
				b.figure(speeds[3] >= 0.6*speeds[2], name+", recorded to mcap", "≥ 0.6 × of receiving alone", "%.0f MB/s: %.2f ×", speeds[3], speeds[3]/speeds[2])
			}
		}
	}
	return nil
}

// checkHarder records loads of which rosbag2 loses some.
func checkHarder(b *bench) error {
	bags, err := openBags()
	if err != nil {
		return err
	}
	defer os.RemoveAll(bags)
	for _, load := range []struct {
		name  string
		topic lab.Topic
		best  float64 // rosbag2's best share in this cell, of any storage
	}{
		{"100 × 300 Hz × 10 kB", lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 100, Hz: 300, Size: 10_000, Depth: 5}, 0.99997},
		{"1 × 10 kHz × 100 B", lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 1, Hz: 10_000, Size: 100, Depth: 5}, 0.99306},
	} {
		for _, f := range recordedTo {
			var shares []float64
			named := true
			for run := range pick(b, 3, 1) {
				r, err := receiveLoad(b, loadTrial{peer: lab.Cyclone, receiver: byRecorder, topics: []lab.Topic{load.topic}, seconds: pick(b, 5.0, 2.0),
					flags: []string{"-s", f}, dir: filepath.Join(bags, "bag")})
				if err != nil {
					return fmt.Errorf("%s to %s: %w", load.name, f, err)
				}
				b.note("%s to %s, run %d: %s", load.name, f, run+1, r)
				shares = append(shares, r.share())
				named = named && r.got+r.lost == r.sent
			}
			b.figure(lab.Quantile(shares, 0.5) >= load.best, load.name+" to "+f, fmt.Sprintf("≥ rosbag2's best share, %.3f %%", 100*load.best),
				"%.2f %%", 100*lab.Quantile(shares, 0.5))
			b.figure(named, load.name+" to "+f+", books", "recorded + lost by reason = sent", "%s", either(named, "yes", "no"))
		}
	}
	return nil
}

// checkSoak runs the soak test for two minutes, or for a moment.
func checkSoak(b *bench) error {
	if err := os.Setenv("GOBAG_SOAK", pick(b, "2m", "20s")); err != nil {
		return err
	}
	r, err := goTest(b, "./interop", "^TestSoak$")
	if err != nil {
		return err
	}
	r.passed(b, "TestSoak", "nothing lost that was acknowledged, memory and descriptors flat")
	return nil
}
