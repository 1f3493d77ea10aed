//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/perf"
)

// engineOf is the C or C++ engine of each format.
var engineOf = map[string]perf.StorageTarget{"mcap": cppMCAP, "leveldb": cppLevelDB, "sqlite3": cSQLite}

// recordingBar is what the whole recorder's CPU may be by that of a Cyclone C reader and a C or C++ engine together.
const recordingBar = 1.1

// checkRecordingCost records loads to each format on the disk and adds up what the parts of such a recorder cost in C and
// C++: a Cyclone subscriber of the same load, and the format's engine writing the same bytes as fast as it can.
func checkRecordingCost(b *bench) error {
	seconds := pick(b, 5.0, 2.0)
	for _, load := range transportLoads {
		bytes := int64(seconds * float64(load.topic.Instances) * load.topic.Hz * float64(load.topic.Size))
		engines := map[string]float64{}
		for _, f := range recordedTo {
			r, err := measure(b, perf.StorageOptions{Targets: []perf.StorageTarget{engineOf[f]}, Sizes: []int{load.topic.Size}, Bytes: bytes,
				Steps: []perf.StorageStep{stepWrite}})
			if err != nil {
				return err
			}
			c := r.rep.Find(engineOf[f], stepWrite, load.topic.Size)
			if c == nil || len(c.Runs) == 0 {
				return fmt.Errorf("%s: %s was not measured", load.name, engineOf[f])
			}
			var cpu []float64
			for _, run := range c.Runs {
				cpu = append(cpu, run.CPUSeconds*float64(bytes)/float64(int64(run.Messages)*int64(load.topic.Size)))
			}
			engines[f] = lab.Quantile(cpu, 0.5)
		}
		for _, peer := range []lab.Vendor{lab.Cyclone, lab.Fast} {
			if err := judgeCost(b, load, peer, seconds, engines); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeCost measures the reader and the recorders of one load and vendor in turns.
func judgeCost(b *bench, load transportLoad, peer lab.Vendor, seconds float64, engines map[string]float64) error {
	trials := []loadTrial{{receiver: vendor(lab.Cyclone)}}
	for _, f := range recordedTo {
		trials = append(trials, loadTrial{receiver: byRecorder, flags: []string{"-s", f}})
	}
	results := make([][]reception, len(trials))
	for run := range pick(b, 5, 1) {
		for i, t := range trials {
			t.peer, t.topics, t.seconds, t.dir = peer, []lab.Topic{load.topic}, seconds, filepath.Join(b.scratch, "bag")
			r, err := receiveLoad(b, t)
			if err != nil {
				return fmt.Errorf("%s from %s by %s: %w", load.name, vendor(peer), t.name(), err)
			}
			results[i] = append(results[i], r)
			if r.got != r.sent {
				b.note("%s from %s, run %d, %s: %s", load.name, vendor(peer), run+1, t.name(), r)
			}
			if err := os.RemoveAll(t.dir); err != nil {
				return err
			}
		}
	}
	reader := medianOf(results[0], reception.seconds)
	for i, f := range recordedTo {
		cpu := medianOf(results[i+1], reception.seconds)
		b.figure(cpu <= recordingBar*(reader+engines[f]), fmt.Sprintf("%s from %s, recorded to %s, CPU", load.name, vendor(peer), f),
			fmt.Sprintf("≤ %g × (Cyclone C reader + %s)", recordingBar, engineOf[f]), "%.2f s beside %.2f s + %.2f s: %.2f ×", cpu, reader, engines[f],
			cpu/(reader+engines[f]))
	}
	return nil
}
