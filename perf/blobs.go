package perf

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/gobag/gobag/plugin"
)

// BlobSizes are the sizes that `perf blobs` looks for the break-even in. 10 KB is the one of SQLite's own measurement.
var BlobSizes = []int{1_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000}

// BlobSteps are what it does: the write experiment, then reading everything in order by one scan, in order blob by blob,
// and at random blob by blob. The storage is opened once for each.
var BlobSteps = []StorageStep{{Op: OpWrite, Order: OrderSequential}, {Op: OpRead, Order: OrderSequential}, {Op: OpRead, Order: OrderEach},
	{Op: OpRead, Order: OrderRandom}}

// blobBase is what the others are compared with: os.WriteFile and os.ReadFile.
var blobBase = StorageTarget{Name: targetFiles}

// BlobTargets are files, read by os.ReadFile and by bare system calls where the system has them, and every format with
// each of the presets.
func BlobTargets(presets []string) []StorageTarget {
	ts := []StorageTarget{blobBase}
	if rawReadFile != nil {
		ts = append(ts, StorageTarget{Name: targetFilesRaw})
	}
	for _, d := range plugin.Drivers() {
		if d.Features().ReadOnly {
			continue
		}
		for _, p := range presets {
			ts = append(ts, StorageTarget{d.Name(), p})
		}
	}
	return ts
}

// WriteBlobText prints a run with BlobSteps: rates, their ratios to files, disk space, and up to which size a format is
// ahead of files.
func (r StorageReport) WriteBlobText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Machine: %s\nBlobs of %s, seed %d, in the page cache; medians of %d runs in turns, each in a process of its own.\n", r.Machine, r.Payload, r.Seed, r.repeats())
	b.WriteString("\"files\" is os.WriteFile and os.ReadFile, one file for each blob; \"files-raw\" the bare system calls. × is the ratio to files.\n")
	var sizes []int
	var targets []StorageTarget
	for _, c := range r.Cells {
		sizes = appendNew(sizes, c.Size)
		targets = appendNew(targets, StorageTarget{c.Target, c.Preset})
	}
	for _, size := range sizes {
		r.writeBlobTable(&b, size, targets)
	}
	for _, t := range targets {
		if t == blobBase || len(sizes) < 2 {
			continue
		}
		for _, s := range BlobSteps {
			if text := r.breakEven(t, s, sizes); text != "" {
				fmt.Fprintf(&b, "\n%s, %s: %s", t, blobStepNames[s], text)
			}
		}
		b.WriteString("\n")
	}
	for _, c := range r.Failed() {
		fmt.Fprintf(&b, "\nFailed: %s: %s\n", c.Name(), c.Error)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

var blobStepNames = map[StorageStep]string{BlobSteps[0]: "written", BlobSteps[1]: "read in sequence", BlobSteps[2]: "read in order, each asked for",
	BlobSteps[3]: "read at random"}

func appendNew[T comparable](list []T, x T) []T {
	for _, y := range list {
		if x == y {
			return list
		}
	}
	return append(list, x)
}

func (r StorageReport) writeBlobTable(b *strings.Builder, size int, targets []StorageTarget) {
	count := 0
	for _, c := range r.Cells {
		if c.Size == size {
			count = c.Count
		}
	}
	fmt.Fprintf(b, "\n%d blobs of %s, blobs/s\n", count, SizeText(int64(size)))
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\tin sequence\t×\tin order, each asked for\t×\tat random\t×\twritten\t×\ton disk per byte\t×\t")
	for _, t := range targets {
		fmt.Fprintf(tw, "%s\t", t)
		for _, s := range []StorageStep{BlobSteps[1], BlobSteps[2], BlobSteps[3], BlobSteps[0]} {
			rate, ratio := "–", "–"
			if c := r.Find(t, s, size); c != nil {
				rate = figure(c.PerSecond())
			}
			if v, ok := r.blobRatio(t, s, size); ok {
				ratio = figure(v)
			}
			fmt.Fprintf(tw, "%s\t%s\t", rate, ratio)
		}
		c, base := r.Find(t, BlobSteps[0], size), r.Find(blobBase, BlobSteps[0], size)
		switch {
		case c == nil:
			fmt.Fprint(tw, "–\t–\t")
		case base == nil || base.Disk() == 0:
			fmt.Fprintf(tw, "%s\t–\t", figure(c.Disk()))
		default:
			fmt.Fprintf(tw, "%s\t%s\t", figure(c.Disk()), figure(c.Disk()/base.Disk()))
		}
		fmt.Fprintln(tw)
	}
	_ = tw.Flush() // a Builder takes everything
}

// blobRatio is a target's rate by that of files.
func (r StorageReport) blobRatio(t StorageTarget, s StorageStep, size int) (float64, bool) {
	c, base := r.Find(t, s, size), r.Find(blobBase, s, size)
	if c == nil || base == nil || base.PerSecond() == 0 {
		return 0, false
	}
	return c.PerSecond() / base.PerSecond(), true
}

// breakEven says in words between which sizes a target falls behind files, the size interpolated.
func (r StorageReport) breakEven(t StorageTarget, s StorageStep, sizes []int) string {
	type point struct{ size, ratio float64 }
	var ps []point
	for _, size := range sizes {
		if v, ok := r.blobRatio(t, s, size); ok && v > 0 {
			ps = append(ps, point{float64(size), v})
		}
	}
	if len(ps) == 0 {
		return ""
	}
	var crossings []string
	for i := 1; i < len(ps); i++ {
		p, q := ps[i-1], ps[i]
		if p.ratio >= 1 == (q.ratio >= 1) {
			continue
		}
		// Straight in the logarithms of size and ratio.
		at := math.Exp(math.Log(p.size) + math.Log(q.size/p.size)*math.Log(p.ratio)/math.Log(p.ratio/q.ratio))
		word := "falls behind at about "
		if q.ratio >= 1 {
			word = "gets ahead at about "
		}
		crossings = append(crossings, word+SizeText(int64(at)))
	}
	first := "ahead of files"
	if ps[0].ratio < 1 {
		first = "behind files"
	}
	if len(crossings) == 0 {
		return first + " at every size"
	}
	return fmt.Sprintf("%s at %s, %s", first, SizeText(int64(ps[0].size)), strings.Join(crossings, ", "))
}
