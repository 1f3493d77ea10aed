package perf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// cellRun runs one cell of a matrix.
type cellRun struct {
	o         RecordOptions
	c         *Cell
	load      Load
	emulation *emulation
	work      string // directory of the cell
	tell      func(part time.Duration, what string)
}

// run runs the cell and fills it in.
func (r *cellRun) run(ctx context.Context) (err error) {
	if err := os.Mkdir(r.work, 0o777); err != nil {
		return err
	}
	if !r.o.Keep {
		defer os.RemoveAll(r.work)
	}
	place, err := r.emulation.newDisk(r.work, r.load)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.close()) }()
	bagDir := filepath.Join(place.dir, "bag")
	if err := r.processes(ctx, bagDir); err != nil {
		return err
	}
	r.c.Disk = place.stalls(r.c.Publisher.Start)
	r.tell(r.load.Span(), "reading the bag")
	dir, err := place.cut()
	if err != nil {
		return err
	}
	r.c.Durable = place.durable()
	return r.c.count(ctx, filepath.Join(dir, "bag"), r.load)
}

// processes runs the recorder and the publishers until both have ended.
func (r *cellRun) processes(ctx context.Context, bagDir string) error {
	// The children are not killed by ctx: they are stopped in order, so that what a stopped cell leaves is no wreck.
	free := context.WithoutCancel(ctx)
	cores := readCores()
	var rec, pub *child
	var err error
	if r.o.NoTransport {
		if pub, err = r.start("recorder with publishers", r.o.Command(free, r.noTransportArgs(bagDir)...)); err != nil {
			return err
		}
		rec = pub
	} else {
		if rec, err = r.start("recorder", r.o.Command(free, r.recordArgs(bagDir)...)); err != nil {
			return err
		}
		if pub, err = r.startPublishers(free); err != nil {
			return errors.Join(err, rec.stop(r.o.stopLimit))
		}
	}
	s := startSampler(rec, pub, bagDir, SeriesInterval(r.load.Span()), r.tell)
	defer s.stop()
	ended, err := r.await(ctx, rec, pub)
	r.c.StopSeconds = time.Since(ended).Seconds()
	s.stop()
	r.c.Cores = coresSince(cores)
	r.c.Recorder, r.c.RecorderExit = rec.usage(), rec.exitCode()
	if err != nil {
		return err
	}
	if err := r.result(pub); err != nil {
		return err
	}
	if r.o.NoTransport {
		r.c.StopSeconds = max(0, float64(time.Now().UnixNano()-r.c.Publisher.Start)/1e9-r.c.Publisher.Seconds)
	} else {
		u := pub.usage()
		r.c.Publisher.CPUSeconds, r.c.Publisher.PeakRSS = u.CPUSeconds, u.PeakRSS
	}
	r.c.Series = s.points(r.c.Publisher.Start)
	r.perGroup()
	if d := r.o.Device.Disk; d != nil {
		// Publishers that were held up gave the disk more time and offered less.
		offered := 0.0
		for _, g := range r.c.Groups {
			offered += float64(g.Sent) * float64(g.Size)
		}
		r.c.Ceiling = newCeiling(r.emulation.rate, r.c.Publisher.Seconds, r.emulation.kernelBytes(), r.emulation.held, r.emulation.cache(r.c.Cache), offered)
	}
	return nil
}

// await waits for the publishers, then stops the recorder. ended is when the publishers had ended.
func (r *cellRun) await(ctx context.Context, rec, pub *child) (ended time.Time, err error) {
	limit := r.o.stopLimit
	if rec == pub {
		select {
		case <-pub.done:
			return time.Now(), pub.failure()
		case <-ctx.Done():
			return time.Now(), errors.Join(ctx.Err(), pub.stop(limit))
		}
	}
	select {
	case <-pub.done:
	case <-rec.done:
		_ = pub.stop(limit)
		return time.Now(), fmt.Errorf("recorder ended by itself: %w", orEnded(rec.failure()))
	case <-ctx.Done():
		return time.Now(), errors.Join(ctx.Err(), pub.stop(limit), rec.stop(limit))
	}
	ended = time.Now()
	return ended, errors.Join(pub.failure(), rec.stop(limit))
}

// start starts a process within the limits of the device.
func (r *cellRun) start(name string, cmd command) (*child, error) {
	c, err := startChild(name, cmd)
	if err != nil {
		return nil, err
	}
	if err := r.emulation.confine(c.cmd.Process.Pid); err != nil {
		_ = c.cmd.Process.Kill()
		<-c.done
		return nil, err
	}
	return c, nil
}

func (r *cellRun) startPublishers(ctx context.Context) (*child, error) {
	if p := r.o.Publisher; p != nil {
		c, err := r.start("publisher", p.command(ctx, r.load, r.o.Domain))
		if c != nil {
			c.foreign = true
		}
		return c, err
	}
	return r.start("publisher", r.o.Command(ctx, "perf", "publish", "--load", r.loadJSON(), "--domain-id", strconv.Itoa(r.o.Domain), "--localhost", "--until-stdin-closes"))
}

// result reads what the publishers say at their end.
func (r *cellRun) result(pub *child) (err error) {
	if p := r.o.Publisher; p != nil {
		r.c.Publisher, err = p.result(pub.out.Bytes(), r.load)
	} else {
		err = json.Unmarshal(pub.out.Bytes(), &r.c.Publisher)
	}
	if err != nil {
		return fmt.Errorf("publisher: its result: %w", err)
	}
	if n := len(r.load.Topics()); len(r.c.Publisher.PerTopic) != n {
		return fmt.Errorf("publisher: its result: %d topics, want %d", len(r.c.Publisher.PerTopic), n)
	}
	return nil
}

// perGroup adds up what was sent by groups.
func (r *cellRun) perGroup() {
	at := 0
	for i := range r.c.Groups {
		g := &r.c.Groups[i]
		for _, n := range r.c.Publisher.PerTopic[at : at+g.Instances] {
			g.Sent += n
		}
		at += g.Instances
	}
	r.c.Publisher.PerTopic = nil
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("exit code 0")
	}
	return err
}

func (r *cellRun) loadJSON() string {
	b, err := json.Marshal(r.load)
	if err != nil {
		panic(err) // numbers and strings, validated
	}
	return string(b)
}

// storageArgs are the recorder's flags of the cell.
func (r *cellRun) storageArgs(dir string) []string {
	args := []string{"--regex", "^" + LoadTopicRoot, "-o", dir, "--log-level", "warn"}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	bytes := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	add("-s", r.c.Storage)
	add("--storage-preset-profile", r.c.Preset)
	add("--storage-config-file", r.c.ConfigFile)
	add("--max-cache-size", bytes(r.c.Cache))
	add("--max-bag-size", bytes(r.c.MaxBagSize))
	if r.c.Compression != "" {
		add("--compression-format", r.c.Compression)
		add("--compression-mode", "file")
	}
	return args
}

func (r *cellRun) recordArgs(dir string) []string {
	return append(append([]string{"record"}, r.storageArgs(dir)...), "--until-stdin-closes", "--domain-id", strconv.Itoa(r.o.Domain), "--localhost",
		"--control-socket", "off", "--remote-control", "off", "--disable-keyboard-controls")
}

func (r *cellRun) noTransportArgs(dir string) []string {
	return append(append([]string{"perf", "no-transport"}, r.storageArgs(dir)...), "--load", r.loadJSON(), "--until-stdin-closes")
}
