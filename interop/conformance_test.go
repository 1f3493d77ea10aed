//go:build linux

package interop_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

var update = flag.Bool("update", false, "write docs/interop.md from this run of TestConformance")

// statement is one of the numbered statements of what gobag does on the wire, checked with each real peer in each
// direction: receive (the peer publishes, gobag subscribes) and send.
type statement struct {
	number        int
	name, text    string
	receive, send func(c *cell) // nil: not applicable
	why           string        // why a direction that is nil is not applicable
	waits         bool          // takes long and costs nothing: does not count against the cells that run at a time
}

// cell is a statement with one peer in one direction.
type cell struct {
	*testing.T
	peer    lab.Vendor
	sending bool
	result  *result
}

// result is what became of a cell.
type result struct {
	outcome string // "pass", "FAIL", "n/a", "" not run
	notes   []string
}

// note keeps a figure for the report.
func (c *cell) note(format string, args ...any) {
	c.result.notes = append(c.result.notes, fmt.Sprintf(format, args...))
	c.Logf(format, args...)
}

// notApplicable ends the cell.
func (c *cell) notApplicable(reason string) {
	c.result.outcome = "n/a"
	c.result.notes = []string{reason}
	c.Skip(reason)
}

// only makes the cell one for the given peer.
func (c *cell) only(v lab.Vendor, reason string) {
	c.Helper()
	if c.peer != v {
		c.notApplicable(reason)
	}
}

// roles are the vendors of publisher and subscriber.
func (c *cell) roles() (pub, sub lab.Vendor) {
	if c.sending {
		return lab.Own, c.peer
	}
	return c.peer, lab.Own
}

func (c *cell) must(err error) {
	c.Helper()
	must(c.T, err)
}

func (c *cell) net() *lab.Net { return newNet(c.T) }

// mtu is LargeMTU where the peer sends, so that each of its datagrams is one frame, and that of Ethernet where gobag does,
// so that it cuts samples as on a real cable.
func (c *cell) mtu() int {
	if c.sending {
		return lab.EthernetMTU
	}
	return lab.LargeMTU
}

// hosts makes two hosts with a relay between them; what the relay itself loses fails the cell.
func (c *cell) hosts(mtu int) *lab.Hosts {
	c.Helper()
	h, err := lab.NewHosts(mtu)
	if errors.Is(err, lab.ErrNoHosts) {
		needs(c.T, err)
	}
	c.must(err)
	c.Cleanup(func() {
		if lost := h.Relay.Lost.Load() + h.Relay.Overrun(); lost > 0 {
			c.Logf("the relay itself lost %d frames", lost)
		}
		c.must(h.Close())
	})
	return h
}

func (c *cell) publish(n *lab.Net, v lab.Vendor, topics []lab.Topic, options ...string) *lab.Proc {
	c.Helper()
	return publishAs(c.T, n, v, topics, options...)
}

func (c *cell) subscribe(n *lab.Net, v lab.Vendor, topics []lab.Topic, options ...string) (*lab.Proc, string) {
	c.Helper()
	return subscribeAs(c.T, n, v, topics, options...)
}

// end stops a subscriber and returns its running numbers by topic, payloads checked.
func (c *cell) end(sub *lab.Proc, log string, topics []lab.Topic) map[string][]int64 {
	c.Helper()
	c.must(sub.Stop(patience))
	return numbersOf(c.T, log, topics)
}

// complete checks that every number that was sent arrived, once and in order.
func (c *cell) complete(numbers map[string][]int64, sent map[string]lab.Sent) {
	c.Helper()
	for name, s := range sent {
		if seq := lab.Sequence(numbers[name]); s.Count == 0 || seq != (lab.Run{First: 0, Last: s.Count - 1}) {
			c.Errorf("%s: %d sent, %d arrived: %+v", name, s.Count, len(numbers[name]), seq)
		}
	}
}

// transfer publishes from host A to a subscriber on host B and returns what arrived, and the two processes, which have
// ended.
func (c *cell) transfer(h *lab.Hosts, topics []lab.Topic, pubOptions ...string) (numbers map[string][]int64, pub, sub *lab.Proc) {
	c.Helper()
	return c.transferWith(h, topics, pubOptions, nil)
}

// transferWith is transfer with options for both sides.
func (c *cell) transferWith(h *lab.Hosts, topics []lab.Topic, pubOptions, subOptions []string) (numbers map[string][]int64, pub, sub *lab.Proc) {
	c.Helper()
	p, s := c.roles()
	sub, log := c.subscribe(h.B, s, topics, subOptions...)
	pub = c.publish(h.A, p, topics, append([]string{"--wait", "1", "--linger", "10"}, pubOptions...)...)
	c.must(pub.Wait(2 * patience))
	time.Sleep(200 * time.Millisecond)
	return c.end(sub, log, topics), pub, sub
}

// tries runs attempt until it returns nil, at most n times: for what must be quick on a machine that is busy at times.
func (c *cell) tries(n int, attempt func() error) {
	c.Helper()
	var errs []string
	for range n {
		err := attempt()
		if err == nil {
			return
		}
		errs = append(errs, err.Error())
	}
	c.Errorf("%d attempts: %s", n, strings.Join(errs, "; "))
}

// cellsAtOnce bounds the cells that run at a time beside those that only wait.
const cellsAtOnce = 4

// TestConformance checks the statements with every peer in both directions; -update writes the table of docs/interop.md.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("real peers")
	}
	needPeers(t)
	r := newReport()
	slots := make(chan struct{}, cellsAtOnce)
	var wg sync.WaitGroup
	// Not by t.Parallel: how many run at a time must not depend on the number of processors.
	for i := range statements {
		s := &statements[i]
		wg.Go(func() {
			t.Run(fmt.Sprintf("%02d_%s", s.number, s.name), func(t *testing.T) { s.run(t, r, slots) })
		})
	}
	wg.Wait()
	if *update {
		must(t, r.write())
	}
}

// run runs the cells of a statement.
func (s *statement) run(t *testing.T, r *report, slots chan struct{}) {
	var wg sync.WaitGroup
	for _, peer := range reportPeers {
		for _, direction := range reportDirections {
			sending := direction == "send"
			check := s.receive
			if sending {
				check = s.send
			}
			res := r.result(s.number, peer, direction)
			if check == nil {
				res.outcome, res.notes = "n/a", []string{s.why}
				continue
			}
			wg.Go(func() {
				if !s.waits {
					slots <- struct{}{}
					defer func() { <-slots }()
				}
				t.Run(string(peer)+"/"+direction, func(t *testing.T) {
					t.Cleanup(func() {
						switch {
						case t.Failed():
							res.outcome = "FAIL"
						case !t.Skipped():
							res.outcome = "pass"
						}
					})
					check(&cell{T: t, peer: peer, sending: sending, result: res})
				})
			})
		}
	}
	wg.Wait()
}

// The peers and directions of the report, in its order.
var (
	reportPeers      = []lab.Vendor{lab.Cyclone, lab.Fast}
	reportDirections = []string{"receive", "send"}
)

// soak is how much longer checks run that last long only to see more.
func soak() bool { return os.Getenv("GOBAG_SOAK") != "" }
