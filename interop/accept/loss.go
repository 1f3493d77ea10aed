//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// large is the traffic of the loss check. The first sample of a run warms up and its time is only shown: a Cyclone reader
// may throw away the first large one of a writer, and gobag learns by it how the path loses datagrams.
var large = []lab.Topic{{Kind: lab.Blob, Name: "/large", Hz: 2, Size: 8_000_000}}

// pair is a publisher and a subscriber.
type pair struct{ pub, sub lab.Vendor }

func (p pair) String() string { return vendor(p.pub) + " to " + vendor(p.sub) }

// checkLoss sends large samples through a relay that drops datagrams, from a peer to gobag, from gobag to the peer, and
// between two peers of that vendor, in turn. What is lost is UDP datagrams as each sends them: those of the peers that are
// larger than a frame are lost with all frames of theirs.
func checkLoss(b *bench) error {
	losses := pick(b, []float64{0.01, 0.05, 0.1}, []float64{0.1})
	for _, cable := range []struct {
		name string
		mtu  int
	}{{"datagrams in one frame", lab.LargeMTU}, {"frames of 1500 bytes", lab.EthernetMTU}} {
		h, err := lab.NewHosts(cable.mtu)
		if err != nil {
			return err
		}
		for _, peer := range []lab.Vendor{lab.Cyclone, lab.Fast} {
			for _, loss := range losses {
				name := fmt.Sprintf("%s, %s, %g %% lost", vendor(peer), cable.name, 100*loss)
				if err := lossCell(b, h, name, peer, loss); err != nil {
					return errors.Join(fmt.Errorf("%s: %w", name, err), h.Close())
				}
			}
		}
		if lost := h.Relay.Lost.Load() + h.Relay.Overrun(); lost > 0 {
			b.note("%s: the relay itself lost %d frames", cable.name, lost)
		}
		if err := h.Close(); err != nil {
			return err
		}
	}
	return nil
}

// lossCell compares the three pairs of one vendor at one loss, run by run in turn.
func lossCell(b *bench, h *lab.Hosts, name string, peer lab.Vendor, loss float64) error {
	theirs := pair{peer, peer}
	ours := []pair{{peer, lab.Own}, {lab.Own, peer}}
	times := map[pair][]time.Duration{} // of every sample of every run
	whole := map[pair]string{}          // what was not complete
	for run := range pick(b, 3, 1) {
		h.Relay.SetRule(lab.Lossy(rand.Uint64(), loss))
		for _, p := range append([]pair{theirs}, ours...) {
			took, wrong, err := sendLarge(b, h, p, pick(b, 4, 3))
			if err != nil {
				return fmt.Errorf("%v: %w", p, err)
			}
			times[p] = append(times[p], took[min(1, len(took)):]...)
			if wrong != "" {
				whole[p] += fmt.Sprintf(" run %d: %s;", run+1, wrong)
			}
			b.note("%s, run %d, %v: %s", name, run+1, p, durations(took))
		}
	}
	median := lab.Quantile(times[theirs], 0.5)
	for _, p := range ours {
		ok := whole[p] == ""
		b.figure(ok, fmt.Sprintf("%s, %v", name, p), "all arrive in order", "%s", either(ok, "all", whole[p]))
		m := lab.Quantile(times[p], 0.5)
		b.figure(len(times[p]) > 0 && m <= median*12/10, fmt.Sprintf("%s, %v, time of a sample", name, p),
			"≤ 1.2 × "+theirs.String(), "%s beside %s (%.2f ×)", ms(m), ms(median), float64(m)/float64(median))
	}
	return nil
}

func either(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

func durations(all []time.Duration) string {
	var text []string
	for _, d := range all {
		text = append(text, fmt.Sprintf("%.0f", float64(d)/1e6))
	}
	return strings.Join(text, " ") + " ms"
}

// sendLarge sends some samples and returns how long each took until it arrived, from the call to write on or, where the
// one before came only later, from then on; wrong says what is missing or out of order.
func sendLarge(b *bench, h *lab.Hosts, p pair, count int) (took []time.Duration, wrong string, err error) {
	topics := append([]lab.Topic(nil), large...)
	topics[0].Count = count
	dir, err := b.dir("loss")
	if err != nil {
		return nil, "", err
	}
	calls, log := filepath.Join(dir, "calls"), filepath.Join(dir, "arrivals")
	sub, err := h.B.SubscribeAs(p.sub, topics, "--log", log, "--expect", fmt.Sprint(count), "--idle", "12")
	if err != nil {
		return nil, "", err
	}
	defer sub.Kill()
	pub, err := h.A.PublishAs(p.pub, topics, "--wait", "1", "--linger", "20", "--calls", calls)
	if err != nil {
		return nil, "", err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(60*time.Second), sub.Stop(20*time.Second)); err != nil {
		return nil, "", err
	}
	written, err := lab.ReadCalls(calls)
	if err != nil {
		return nil, "", err
	}
	arrivals, err := lab.ReadArrivals(log)
	if err != nil {
		return nil, "", err
	}
	checker := &lab.Checker{Topic: topics[0]}
	began := map[int64]int64{}
	for _, w := range written {
		if w.Result == 0 {
			began[w.Number] = w.Mono
		}
	}
	var numbers []int64
	before := int64(0)
	for _, a := range arrivals {
		numbers = append(numbers, a.Number)
		if err := checker.CheckHash(a); err != nil {
			wrong = err.Error()
		}
		took = append(took, time.Duration(a.Mono-max(began[a.Number], before)))
		before = a.Mono
	}
	if seq := lab.Sequence(numbers); seq != (lab.Run{First: 0, Last: int64(count - 1)}) {
		wrong = fmt.Sprintf("%d of %d arrived: %v", len(numbers), count, numbers)
	}
	return took, wrong, nil
}
