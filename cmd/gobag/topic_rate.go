package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// rateFlags are the flags of `topic hz` and `topic bw`.
type rateFlags struct {
	topicFlags
	window int
	wall   bool
}

func newTopicHz(a *app) *cobra.Command {
	return newTopicRate(a, "hz", "Measure how often messages come", 10000, hzText)
}

func newTopicBw(a *app) *cobra.Command {
	return newTopicRate(a, "bw", "Measure how many bytes a second come", 100, bwText)
}

func newTopicRate(a *app, verb, short string, window int, text func(*rateWindow) string) *cobra.Command {
	var f rateFlags
	cmd := &cobra.Command{
		Use:   verb + " [BAG] TOPIC...",
		Short: short,
		Long: short + `, over the last messages of a window. On the wire it is printed every second; of a bag once, by the
stamps of reception, over the whole bag unless --window is given.`,
		Example: "  gobag topic " + verb + " /scan\n  gobag topic " + verb + " run1 /scan",
		Args:    args(cobra.MinimumNArgs(1), "a topic is needed, and a bag before it to read it from there"),
		RunE: func(cmd *cobra.Command, words []string) error {
			if f.window < 1 {
				return usageError("topic %s: --window %d: want a number of messages", verb, f.window)
			}
			if isBag(words) && !cmd.Flags().Changed("window") {
				f.window = math.MaxInt
			}
			return runTopicRate(a, &f, words, text)
		},
	}
	f.define(cmd, true)
	fs := cmd.Flags()
	fs.IntVarP(&f.window, "window", "w", window, "`N` messages that are taken together")
	fs.BoolVar(&f.wall, "wall-time", false, "")
	hide(fs, "wall-time")
	return cmd
}

func runTopicRate(a *app, f *rateFlags, words []string, text func(*rateWindow) string) error {
	n, err := f.limit()
	if err != nil {
		return err
	}
	f.asIs = true
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	src, err := openTopics(a, &f.topicFlags, words)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // nothing is written
	names := src.topics()
	_, live := src.(*wireTopics)
	windows := map[string]*rateWindow{}
	for _, name := range names {
		windows[name] = &rateWindow{limit: f.window}
	}
	report := func() error {
		for _, name := range names {
			w := windows[name]
			if !w.fresh {
				continue
			}
			w.fresh = false
			s := text(w)
			if len(names) > 1 {
				s = name + "\n" + s
			}
			if _, err := io.WriteString(a.out, s); err != nil {
				return err
			}
		}
		return nil
	}
	next := time.Now().Add(time.Second)
	err = src.run(stop.ctx, untilLimit(n, func(m *topicMessage) error {
		windows[m.topic.name].add(m.recv, len(m.data))
		if now := time.Now(); live && now.After(next) {
			next = now.Add(time.Second)
			return report()
		}
		return nil
	}))
	if err == nil {
		err = report()
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	if err == nil {
		for _, name := range names {
			if windows[name].all.n == 0 {
				a.logger.Warn(fmt.Sprintf("no message of topic '%s'", name))
			}
		}
	}
	return err
}

// rateSums are what is printed of messages, summed up one by one.
type rateSums struct {
	n                int
	first, last      int64 // stamps, ns
	minGap, maxGap   float64
	mean, squares    float64 // of the gaps in s: Welford's sums
	bytes            int64
	minSize, maxSize int64
}

func (s *rateSums) add(stamp, size int64) {
	if s.n == 0 {
		s.first, s.minSize, s.minGap = stamp, size, math.Inf(1)
	} else {
		gap := float64(stamp-s.last) / 1e9
		s.minGap, s.maxGap = min(s.minGap, gap), max(s.maxGap, gap)
		d := gap - s.mean
		s.mean += d / float64(s.n)
		s.squares += d * (gap - s.mean)
	}
	s.n++
	s.last = stamp
	s.bytes += size
	s.minSize, s.maxSize = min(s.minSize, size), max(s.maxSize, size)
}

// rateWindow keeps the last messages of a topic; with no limit their sums only.
type rateWindow struct {
	limit int  // math.MaxInt none
	fresh bool // something came since it was printed
	all   rateSums

	stamps, sizes []int64 // a ring, of which next is the oldest once it is full
	next          int
}

func (w *rateWindow) add(stamp int64, size int) {
	w.fresh = true
	w.all.add(stamp, int64(size))
	switch {
	case w.limit == math.MaxInt:
	case len(w.stamps) < w.limit:
		w.stamps, w.sizes = append(w.stamps, stamp), append(w.sizes, int64(size))
	default:
		w.stamps[w.next], w.sizes[w.next] = stamp, int64(size)
		w.next = (w.next + 1) % w.limit
	}
}

func (w *rateWindow) sums() rateSums {
	if w.limit == math.MaxInt {
		return w.all
	}
	var s rateSums
	for i := range w.stamps {
		k := (w.next + i) % len(w.stamps)
		s.add(w.stamps[k], w.sizes[k])
	}
	return s
}

// hzText is a window as `ros2 topic hz` prints it.
func hzText(w *rateWindow) string {
	s := w.sums()
	if s.n < 2 {
		return "no rate of one message\n"
	}
	span := float64(s.last-s.first) / 1e9
	return fmt.Sprintf("average rate: %.3f\n\tmin: %.3fs max: %.3fs std dev: %.5fs window: %d\n",
		float64(s.n-1)/span, s.minGap, s.maxGap, math.Sqrt(s.squares/float64(s.n-1)), s.n)
}

// bwText is a window as `ros2 topic bw` prints it.
func bwText(w *rateWindow) string {
	s := w.sums()
	if s.n < 2 {
		return "no bandwidth of one message\n"
	}
	span := float64(s.last-s.first) / 1e9
	mean := float64(s.bytes) / float64(s.n)
	return fmt.Sprintf("%s/s from %s\n\tMessage size mean: %s min: %s max: %s\n",
		kilo(float64(s.bytes)/span), plural(uint64(s.n), "message"), kilo(mean), kilo(float64(s.minSize)), kilo(float64(s.maxSize)))
}

// kilo is a number of bytes in the units of `ros2 topic bw`.
func kilo(n float64) string {
	switch {
	case n < 1e3:
		return fmt.Sprintf("%.2f B", n)
	case n < 1e6:
		return fmt.Sprintf("%.2f KB", n/1e3)
	}
	return fmt.Sprintf("%.2f MB", n/1e6)
}
