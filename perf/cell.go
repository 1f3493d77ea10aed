package perf

import (
	"fmt"
	"strings"
	"time"

	"github.com/gobag/gobag/ros"
)

// Cell is one combination of the matrix, its configuration first.
type Cell struct {
	Load        string  `json:"load"`    // name
	Groups      []Share `json:"groups"`  // what published, and what became of it
	Storage     string  `json:"storage"` // as recorded; "" before
	Preset      string  `json:"preset"`  // "" default
	Cache       int64   `json:"cache_bytes"`
	MaxBagSize  int64   `json:"max_bag_size_bytes,omitempty"`
	Compression string  `json:"compression,omitempty"` // of whole files: "zstd"
	ConfigFile  string  `json:"storage_config_file,omitempty"`
	Publishers  string  `json:"publishers"` // whose they are: "gobag", "no transport" or the name of a program
	Repeat      int     `json:"repeat"`     // from 1

	Publisher    LoadResult `json:"publisher"`
	Recorder     Usage      `json:"recorder"`
	RecorderExit int        `json:"recorder_exit"`
	Recorded     uint64     `json:"recorded"` // read back from the bag, one by one
	Lost         Lost       `json:"lost"`     // by the bag's ledger
	// Unknown is what is neither recorded nor counted as lost: with best effort, what a publisher's first or last
	// messages may be; with reliable it must be 0.
	Unknown  int64 `json:"unknown"`
	Balanced bool  `json:"balanced"` // recorded + lost = sent, or for best effort not above, in every group

	// Latency is from when a message was due until the recorder's stamp of its arrival, ns. It has the clock's error.
	Latency Latency `json:"latency"`

	Durable     string  `json:"durable"`      // how it is known that what is recorded is durable
	StopSeconds float64 `json:"stop_seconds"` // from the end of publishing until all was durable and the recorder had ended
	BagBytes    int64   `json:"bag_bytes"`

	Ceiling *Ceiling  `json:"ceiling,omitempty"`
	Series  []Point   `json:"series,omitempty"`
	Cores   []float64 `json:"cores_percent,omitempty"` // load of each core of the machine during the cell
	Disk    []Stall   `json:"disk_stalls,omitempty"`   // of an emulated disk, as they were made

	Error string `json:"error,omitempty"`
}

// Share is one group of a cell: what it published and what became of it.
type Share struct {
	Group
	Expected uint64  `json:"expected"`
	Sent     uint64  `json:"sent"`
	Recorded uint64  `json:"recorded"`
	Lost     Lost    `json:"lost"`
	Unknown  int64   `json:"unknown"`
	Latency  Latency `json:"latency"`
}

// Lost says where messages were lost.
type Lost struct {
	Wire    uint64 `json:"wire"`
	Queue   uint64 `json:"queue"`
	Storage uint64 `json:"storage"`
}

// Total is the sum.
func (l Lost) Total() uint64 { return l.Wire + l.Queue + l.Storage }

func (l *Lost) add(o Lost) {
	l.Wire += o.Wire
	l.Queue += o.Queue
	l.Storage += o.Storage
}

// Latency is what a histogram says, ns.
type Latency struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

func latencyOf(h *Histogram) Latency { return Latency{h.Quantile(0.5), h.Quantile(0.99), h.Max()} }

// Ceiling is the share that no recorder can exceed on a disk of limited speed, for data that does not compress: what the
// disk takes while the load lasts, what the kernel may hold back, and the recorder's cache.
type Ceiling struct {
	Percent  float64 `json:"percent"`
	Bare     float64 `json:"bare_percent"`     // the same with what the kernel held back of a program that only wrote, in place of what it may
	DiskRate float64 `json:"disk_bytes_per_s"` // measured before the run
	Seconds  float64 `json:"seconds"`
	Kernel   int64   `json:"kernel_bytes"` // vm.dirty_bytes
	Cache    int64   `json:"cache_bytes"`
	Offered  float64 `json:"offered_bytes"`
}

func (c *Ceiling) String() string {
	s := fmt.Sprintf("ceiling %.1f %%: (%.1f MB/s × %.0f s + %s of dirty pages + %s of cache) of %s", c.Percent, c.DiskRate/1e6, c.Seconds,
		shortMB(float64(c.Kernel)), shortMB(float64(c.Cache)), shortMB(c.Offered))
	if c.Bare > 0 {
		s += fmt.Sprintf("; %.1f %% with the dirty pages that a bare write loop got", c.Bare)
	}
	return s
}

func shortMB(n float64) string { return fmt.Sprintf("%.0f MB", n/1e6) }

// newCeiling computes the share. held is what a bare write loop got of the kernel's bytes; 0 unknown.
func newCeiling(rate, seconds float64, kernel int64, held float64, cache int64, offered float64) *Ceiling {
	c := &Ceiling{DiskRate: rate, Seconds: seconds, Kernel: kernel, Cache: cache, Offered: offered}
	if offered > 0 {
		c.Percent = min(100, 100*(rate*seconds+float64(kernel)+float64(cache))/offered)
		if held > 0 {
			c.Bare = min(100, 100*(rate*seconds+held+float64(cache))/offered)
		}
	}
	return c
}

// Point is what the processes of a cell did at one moment.
type Point struct {
	Seconds      float64 `json:"s"`                        // since the first message was due; negative before
	RecorderCPU  float64 `json:"recorder_cpu"`             // of one core, since the point before; 1 = a whole core
	RecorderRSS  int64   `json:"recorder_rss_bytes"`       //
	PublisherCPU float64 `json:"publisher_cpu"`            //
	PublisherRSS int64   `json:"publisher_rss_bytes"`      //
	BagBytes     int64   `json:"bag_bytes"`                // size of the bag's files
	Latency      int64   `json:"latency_max_ns,omitempty"` // largest of the messages recorded that were due since the point before
	Late         int64   `json:"late_max_ns,omitempty"`    // largest lateness of the publishers in that time
}

// Stall is a time in which an emulated disk did nothing.
type Stall struct {
	Seconds float64 `json:"s"`     // since the first message was due; negative before
	For     float64 `json:"for_s"` // how long
}

// setup is the cell's configuration but for the load: "mcap, small, cache 10 MB".
func (c *Cell) setup() string {
	parts := []string{c.Storage}
	if c.Storage == "" {
		parts[0] = "default storage"
	}
	if c.Preset != "" {
		parts = append(parts, c.Preset)
	}
	if c.Cache > 0 {
		parts = append(parts, "cache "+shortBytes(c.Cache))
	}
	if c.MaxBagSize > 0 {
		parts = append(parts, "files of "+shortBytes(c.MaxBagSize))
	}
	if c.Compression != "" {
		parts = append(parts, c.Compression)
	}
	if c.ConfigFile != "" {
		parts = append(parts, c.ConfigFile)
	}
	if c.Publishers != "" && c.Publishers != ownPublishers {
		parts = append(parts, "publishers: "+c.Publishers)
	}
	return strings.Join(parts, ", ")
}

// ownPublishers is Cell.Publishers for ours.
const ownPublishers = "gobag"

// key is the cell's whole configuration, the same for repeats of one cell and for the same cell of another run.
func (c *Cell) key() string { return c.Load + " | " + c.qos() + c.setup() }

// qos names what differs from reliable, keep all.
func (c *Cell) qos() string {
	for _, g := range c.Groups {
		if g.Reliability == ros.BestEffort.String() {
			return "best effort, "
		}
	}
	return ""
}

// Name says which cell it is: "10 × 100 Hz × 100 kB, sqlite3".
func (c *Cell) Name() string { return c.Load + ", " + c.qos() + c.setup() }

// Percent is the share of the messages sent that was recorded, 0..100; -1 when none was sent.
func (c *Cell) Percent() float64 { return percentOf(c.Recorded, c.Publisher.Sent) }

func percentOf(part, whole uint64) float64 {
	if whole == 0 {
		return -1
	}
	return 100 * float64(part) / float64(whole)
}

// BytePercent is the share of the data sent that was recorded, 0..100; -1 when none was sent. It is what a disk's speed
// bounds.
func (c *Cell) BytePercent() float64 {
	var sent, recorded float64
	for _, g := range c.Groups {
		sent += float64(g.Sent) * float64(g.Size)
		recorded += float64(g.Recorded) * float64(g.Size)
	}
	if sent == 0 {
		return -1
	}
	return 100 * recorded / sent
}

// MBPerSecond is what was offered, in 10^6 bytes of data per second.
func (c *Cell) MBPerSecond() float64 {
	if c.Publisher.Seconds <= 0 {
		return 0
	}
	var sent float64
	for _, g := range c.Groups {
		sent += float64(g.Sent) * float64(g.Size)
	}
	return sent / 1e6 / c.Publisher.Seconds
}

// span is how long the cell's publishers take when nothing holds them up, seconds.
func (c *Cell) span() (s float64) {
	for _, g := range c.Groups {
		if n := float64(g.Instances) * g.Frequency; n > 0 {
			s = max(s, float64(g.Expected)/n)
		}
	}
	return s
}

// Failed is why a cell does not count; "" if it does.
func (c *Cell) Failed() string {
	switch {
	case c.Error != "":
		return c.Error
	case !c.Balanced:
		return fmt.Sprintf("the books do not balance: sent %d, recorded %d, lost %d, unaccounted %d", c.Publisher.Sent, c.Recorded, c.Lost.Total(), c.Unknown)
	}
	return ""
}

// balance checks that every message sent is recorded or counted as lost, group by group. Only of best-effort publishers
// may some be unaccounted for.
func (c *Cell) balance() {
	c.Recorded, c.Lost, c.Unknown, c.Balanced = 0, Lost{}, 0, true
	for i := range c.Groups {
		g := &c.Groups[i]
		g.Unknown = int64(g.Sent) - int64(g.Recorded) - int64(g.Lost.Total())
		if g.Unknown < 0 || g.Unknown > 0 && g.Reliability != ros.BestEffort.String() {
			c.Balanced = false
		}
		c.Recorded += g.Recorded
		c.Lost.add(g.Lost)
		c.Unknown += g.Unknown
	}
}
