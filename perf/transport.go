package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// The sides of a transport measurement: whose publisher or subscriber it is.
const (
	SideGobag   = "gobag"
	SideCyclone = "cyclone" // cy_pub and cy_sub of interop/
	SideFast    = "fast"    // fa_pub and fa_sub
)

// TransportLoad is topics of equal publishers in one process.
type TransportLoad struct {
	Instances int     `json:"instances"`
	Frequency float64 `json:"frequency_hz"` // of each; 0 = as fast as the subscriber acknowledges
	Size      int     `json:"size_bytes"`   // of data in a message
}

func (l TransportLoad) String() string {
	rate := "unthrottled"
	if l.Frequency > 0 {
		rate = strconv.FormatFloat(l.Frequency, 'g', -1, 64) + " Hz"
	}
	return fmt.Sprintf("%d × %s × %s", l.Instances, rate, SizeText(int64(l.Size)))
}

// DefaultTransportLoads are 100 MB/s in large, middle and small messages, and many tiny ones.
var DefaultTransportLoads = []TransportLoad{{1, 100, 1_000_000}, {10, 100, 100_000}, {100, 100, 10_000}, {1, 10_000, 100}}

// TransportOptions describe a run of `gobag perf transport`.
type TransportOptions struct {
	Loads    []TransportLoad // default DefaultTransportLoads
	Sides    []string        // default all; a publisher or a subscriber of every pair is gobag's or stands where gobag's does
	Receive  bool            // measure subscribers of the sides, with the peers' publishers
	Send     bool            // measure publishers of the sides, with the peers' subscribers
	Duration time.Duration   // of publishing; default 5 s
	Repeat   int             // default 1
	Depth    int             // history of the publishers; 0 keep all
	Peers    string          // where the peers' programs are
	Domain   int             // ROS domain, on this host's loopback only

	// Command makes a process of this program: `perf transport-task` with its flags.
	Command func(ctx context.Context, args ...string) *exec.Cmd

	OnCell func(TransportCell) // called with every finished cell; may be nil
}

// TransportCell is one pair at one load.
type TransportCell struct {
	Load       TransportLoad `json:"load"`
	Publisher  string        `json:"publisher"`
	Subscriber string        `json:"subscriber"`
	Repeat     int           `json:"repeat"` // from 1

	Sent     uint64        `json:"sent"`
	Received uint64        `json:"received"`
	Seconds  float64       `json:"seconds"`      // from the first message to the last acknowledgement
	WriteP99 time.Duration `json:"write_p99_ns"` // of the publisher's write calls, the topic where it was worst
	Lag      time.Duration `json:"lag_ns"`       // how far the publisher fell behind its schedule, at worst

	PublisherUsage  Usage  `json:"publisher_usage"`
	SubscriberUsage Usage  `json:"subscriber_usage"`
	Error           string `json:"error,omitempty"`
}

// Share is what arrived of what was sent, 0…1.
func (c *TransportCell) Share() float64 { return float64(c.Received) / float64(max(c.Sent, 1)) }

// Rate is what arrived in MB/s.
func (c *TransportCell) Rate() float64 {
	return float64(c.Received) * float64(c.Load.Size) / 1e6 / max(c.Seconds, 1e-9)
}

// TransportReport is the result of a run.
type TransportReport struct {
	Machine Machine         `json:"machine"`
	Start   time.Time       `json:"start"`
	Cells   []TransportCell `json:"cells"`
}

func (o TransportOptions) withDefaults() TransportOptions {
	if len(o.Loads) == 0 {
		o.Loads = DefaultTransportLoads
	}
	if len(o.Sides) == 0 {
		o.Sides = []string{SideGobag, SideCyclone, SideFast}
	}
	if o.Duration == 0 {
		o.Duration = 5 * time.Second
	}
	if o.Repeat == 0 {
		o.Repeat = 1
	}
	if !o.Receive && !o.Send {
		o.Receive, o.Send = true, true
	}
	if o.OnCell == nil {
		o.OnCell = func(TransportCell) {}
	}
	return o
}

// Validate returns all problems, joined.
func (o TransportOptions) Validate() error {
	o = o.withDefaults()
	var errs []error
	for _, l := range o.Loads {
		if l.Instances < 1 || l.Instances > 1000 || l.Frequency < 0 || l.Frequency > 1e6 || l.Size < 1 || l.Size > 64<<20 {
			errs = append(errs, fmt.Errorf("load %v: 1 to 1000 instances, up to 1000000 Hz, 1 byte to 64 MiB expected", l))
		}
	}
	for _, s := range o.Sides {
		if s != SideGobag && s != SideCyclone && s != SideFast {
			errs = append(errs, fmt.Errorf("side %q: not one of %s, %s, %s", s, SideGobag, SideCyclone, SideFast))
		}
	}
	if len(o.peers()) == 0 {
		errs = append(errs, errors.New("no peer among the sides: gobag is measured with the programs of others"))
	}
	for _, side := range o.peers() {
		for _, role := range []string{"pub", "sub"} {
			if path := o.program(side, role); !isFile(path) {
				errs = append(errs, fmt.Errorf("peer %s is not there: make -C interop peers", path))
			}
		}
	}
	if o.Duration < 0 || o.Repeat < 0 || o.Depth < 0 {
		errs = append(errs, errors.New("duration, repeat and depth must not be negative"))
	}
	if o.Command == nil {
		errs = append(errs, errors.New("no command to start processes with"))
	}
	if runtime.GOOS == "windows" {
		errs = append(errs, errors.New("the peers' programs are not for Windows"))
	}
	return errors.Join(errs...)
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

func (o *TransportOptions) peers() []string {
	return slices.DeleteFunc(slices.Clone(o.Sides), func(s string) bool { return s == SideGobag })
}

// program is the path of a peer's publisher ("pub") or subscriber ("sub").
func (o *TransportOptions) program(side, role string) string {
	return filepath.Join(o.Peers, map[string]string{SideCyclone: "cy_", SideFast: "fa_"}[side]+role)
}

// pairs lists publishers and subscribers: those of gobag and, where it stands, those of the others.
func (o *TransportOptions) pairs() (list [][2]string) {
	add := func(pub, sub string) {
		if p := [2]string{pub, sub}; !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	for _, peer := range o.peers() {
		for _, side := range o.Sides {
			if o.Receive {
				add(peer, side)
			}
			if o.Send {
				add(side, peer)
			}
		}
	}
	return list
}

// RunTransport measures every pair at every load, in turns, each process on its own. A cell that fails carries its error. When
// ctx ends, the cells finished so far are returned with ctx's error.
func RunTransport(ctx context.Context, o TransportOptions) (TransportReport, error) {
	if err := o.Validate(); err != nil {
		return TransportReport{}, fmt.Errorf("perf transport: %w", err)
	}
	o = o.withDefaults()
	rep := TransportReport{Machine: ThisMachine(os.TempDir()), Start: time.Now().UTC().Truncate(time.Second)}
	for _, l := range o.Loads {
		for run := range o.Repeat {
			for _, p := range o.pairs() {
				c := TransportCell{Load: l, Publisher: p[0], Subscriber: p[1], Repeat: run + 1}
				err := o.runPair(ctx, &c)
				if ctx.Err() != nil {
					return rep, fmt.Errorf("perf transport: stopped: %w", ctx.Err())
				}
				if err != nil {
					c.Error = err.Error()
				}
				rep.Cells = append(rep.Cells, c)
				o.OnCell(c)
			}
		}
	}
	return rep, nil
}

// Write prints the cells of one load after the other; of several runs the medians.
func (r TransportReport) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "load\tpublisher\tsubscriber\treceived\tMB/s\tsub CPU s\tsub RSS\tpub CPU s\tpub RSS\twrite p99\tlag\t")
	for _, cells := range r.grouped() {
		c := cells[0]
		if i := slices.IndexFunc(cells, func(c TransportCell) bool { return c.Error != "" }); i >= 0 {
			text, _, _ := strings.Cut(cells[i].Error, "\n")
			fmt.Fprintf(t, "%v\t%s\t%s\t%s\t\t\t\t\t\t\t\t\n", c.Load, c.Publisher, c.Subscriber, text)
			continue
		}
		median := func(f func(c *TransportCell) float64) float64 {
			var v []float64
			for i := range cells {
				v = append(v, f(&cells[i]))
			}
			slices.Sort(v)
			return v[len(v)/2]
		}
		mib := func(f func(c *TransportCell) int64) string {
			return fmt.Sprintf("%.0f MiB", median(func(c *TransportCell) float64 { return float64(f(c)) })/(1<<20))
		}
		fmt.Fprintf(t, "%v\t%s\t%s\t%.3f %%\t%.1f\t%.2f\t%s\t%.2f\t%s\t%v\t%v\t\n", c.Load, c.Publisher, c.Subscriber,
			100*median((*TransportCell).Share), median((*TransportCell).Rate),
			median(func(c *TransportCell) float64 { return c.SubscriberUsage.CPUSeconds }), mib(func(c *TransportCell) int64 { return c.SubscriberUsage.PeakRSS }),
			median(func(c *TransportCell) float64 { return c.PublisherUsage.CPUSeconds }), mib(func(c *TransportCell) int64 { return c.PublisherUsage.PeakRSS }),
			time.Duration(median(func(c *TransportCell) float64 { return float64(c.WriteP99) })).Round(time.Microsecond),
			time.Duration(median(func(c *TransportCell) float64 { return float64(c.Lag) })).Round(100*time.Microsecond))
	}
	return t.Flush()
}

// grouped puts the runs of a pair and load together, in the order of the first of them.
func (r TransportReport) grouped() (groups [][]TransportCell) {
	same := func(a, b *TransportCell) bool {
		return a.Load == b.Load && a.Publisher == b.Publisher && a.Subscriber == b.Subscriber
	}
	for i := range r.Cells {
		c := &r.Cells[i]
		k := slices.IndexFunc(groups, func(g []TransportCell) bool { return same(&g[0], c) })
		if k < 0 {
			groups = append(groups, nil)
			k = len(groups) - 1
		}
		groups[k] = append(groups[k], *c)
	}
	return groups
}

// WriteJSON writes every cell.
func (r TransportReport) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
