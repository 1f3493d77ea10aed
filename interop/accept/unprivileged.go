//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gobag/gobag/interop/lab"
)

// loads are 100 MB/s each, with the history of a usual ROS 2 publisher: what a subscriber does not fetch in time is
// overwritten.
var loads = []struct {
	name  string
	topic lab.Topic
}{
	{"1 × 100 Hz × 1 MB", lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 1, Hz: 100, Size: 1_000_000, Depth: 10}},
	{"10 × 100 Hz × 100 kB", lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 10, Hz: 100, Size: 100_000, Depth: 10}},
	{"100 × 100 Hz × 10 kB", lab.Topic{Kind: lab.Blob, Name: "/load", Instances: 100, Hz: 100, Size: 10_000, Depth: 10}},
}

// shareNoise is how far the medians of one receiver lie apart where next to nothing is lost.
const shareNoise = 0.005

// checkUnprivileged has every receiver take 100 MB/s in turn, all of them and the publishers as nobody, with the receive
// buffers of a stock kernel.
func checkUnprivileged(b *bench) (err error) {
	restore, err := lab.LimitReceiveBuffers(lab.StockRmemMax)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, restore()) }()
	bags, err := openBags()
	if err != nil {
		return err
	}
	defer os.RemoveAll(bags)
	if err := os.Chmod(b.scratch, 0o755); err != nil { // gobag itself is in it
		return err
	}
	hints := 0
	records := 0
	for _, peer := range []lab.Vendor{lab.Cyclone, lab.Fast} {
		for _, load := range loads {
			shares := map[string][]float64{}
			receivers := []string{vendor(lab.Cyclone), vendor(lab.Fast), byProbe, byRecorder}
			for run := range pick(b, 3, 1) {
				for _, r := range receivers {
					got, err := receiveLoad(b, loadTrial{peer: peer, receiver: r, topics: []lab.Topic{load.topic}, nobody: true,
						rcvbuf: lab.StockRmemMax, dir: filepath.Join(bags, "bag")})
					if err != nil {
						return fmt.Errorf("%s from %s by %s: %w", load.name, vendor(peer), r, err)
					}
					shares[r] = append(shares[r], got.share())
					b.note("%s from %s, run %d, %s: %s", load.name, vendor(peer), run+1, r, got)
					if r == byRecorder {
						records++
						if strings.Contains(got.text, "416.0 KiB") && strings.Contains(got.text, "sysctl -w net.core.rmem_max=") {
							hints++
						}
					}
				}
			}
			c, cc := lab.Quantile(shares[receivers[0]], 0.5), lab.Quantile(shares[receivers[1]], 0.5)
			for _, r := range receivers[2:] {
				ours := lab.Quantile(shares[r], 0.5)
				b.figure(ours >= max(c, cc)-shareNoise, fmt.Sprintf("%s from %s, %s", load.name, vendor(peer), r),
					fmt.Sprintf("share received ≥ those of the peers' subscribers, to %g points", 100*shareNoise),
					"%.2f %% beside %.2f %% (Cyclone C), %.2f %% (Fast DDS)", 100*ours, 100*c, 100*cc)
			}
		}
	}
	b.figure(hints == records && records > 0, "record with a small receive buffer", "prints its size and the command that mends it", "%d of %d times", hints, records)
	return nil
}

// openBags makes a folder in memory that nobody may write to.
func openBags() (string, error) {
	dir, err := os.MkdirTemp("/dev/shm", "gobag-lab-"+strconv.Itoa(os.Getpid())+"-bags-")
	if err != nil {
		return "", err
	}
	return dir, os.Chown(dir, lab.Nobody, lab.Nobody)
}
