package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
	"github.com/spf13/cobra"
)

func newDemo(a *app) *cobra.Command {
	d := demo{app: a}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Record, check and replay real message types over loopback; no robot needed",
		Long: `A small robot (IMU at 1 kHz, 1 MB images at 10 Hz, transforms, text, a latched description) publishes over real RTPS on
this host's loopback interface, in a ROS domain that nobody uses. Five seconds of it are recorded into the default storage,
the bag is shown and every byte in it is compared with what was published; then it is replayed at 10 times the speed and
every byte that a subscriber gets is compared again. Exit code 1 if anything is missing or differs.`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error { return d.run() },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&d.output, "output", "o", "", "bag directory `DIR` to create and keep (default: a temporary one)")
	fs.StringVarP(&d.storage, "storage", "s", defaultStorage, "storage format `ID`")
	d.seconds = secondsValue(5 * time.Second)
	fs.Var(&d.seconds, "duration", "how long the robot publishes")
	fs.Float64VarP(&d.rate, "rate", "r", 10, "how fast, `FACTOR`, it is replayed")
	completeFlag(cmd, "storage", completeStorage)
	return cmd
}

// demo is one run of the verb.
type demo struct {
	*app
	output, storage string
	seconds         secondsValue
	rate            float64

	domain  int
	streams []*perf.Stream
	sent    []uint64
	tmp     string // removed at the end
}

func (d *demo) run() (err error) {
	if !(d.rate > 0) || d.seconds <= 0 {
		return usageError("demo: --rate and --duration must be above 0")
	}
	if d.output != "" && exists(d.output) {
		return fmt.Errorf("output %s exists already: choose another directory with -o", d.output)
	}
	if d.output == "" {
		if d.tmp, err = os.MkdirTemp("", "gobag-demo-"); err != nil {
			return err
		}
		defer os.RemoveAll(d.tmp)
		d.output = filepath.Join(d.tmp, "demo")
	}
	if d.domain, err = freeDomain(); err != nil {
		return err
	}
	stop := newStopper(d.ctx, nil)
	defer stop.Close()
	d.streams = perf.DemoStreams(time.Now().UnixNano())

	fmt.Fprintf(d.out, "Publishing and recording for %g s in domain %d on loopback ...\n", time.Duration(d.seconds).Seconds(), d.domain)
	res, err := d.record(stop.ctx)
	if err != nil {
		return interrupted(stop.ctx, err)
	}
	kept, err := d.checkBag(stop.ctx, res)
	if err != nil {
		return interrupted(stop.ctx, err)
	}
	fmt.Fprintf(d.out, "\nReplaying at %g ×, comparing every byte ...\n", d.rate)
	if err := d.replay(stop.ctx, kept); err != nil {
		return interrupted(stop.ctx, err)
	}
	if d.tmp == "" {
		fmt.Fprintf(d.out, "\nThe bag is in %s; try: gobag info %s\n", d.output, d.output)
	}
	fmt.Fprintln(d.out, "\nDemo passed.")
	return nil
}

// interrupted says what happened when the user pressed Ctrl-C in the middle.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("demo: interrupted")
	}
	return fmt.Errorf("demo: %w", err)
}

// record lets the robot publish and records it, each on a participant of its own.
func (d *demo) record(ctx context.Context) (recorder.Result, error) {
	robotNode, err := loopbackNode(d.app, d.domain, "demo_robot")
	if err != nil {
		return recorder.Result{}, err
	}
	defer robotNode.Close()
	robot, err := perf.NewRobot(robotNode, d.streams)
	if err != nil {
		return recorder.Result{}, err
	}
	defer func() { _ = robot.Close() }() // what the recorder did not get is missing in the bag, and found there
	recNode, err := loopbackNode(d.app, d.domain, "gobag_recorder")
	if err != nil {
		return recorder.Result{}, err
	}
	defer recNode.Close()
	names := make([]string, len(d.streams))
	for i, s := range d.streams {
		names[i] = s.Topic.Name
	}
	rec, err := recorder.New(recorder.Options{Node: recNode, Output: d.output, Storage: d.storage, Topics: names, Logger: d.logger,
		OnEvent: quietEvents(d.app)})
	if err != nil {
		return recorder.Result{}, err
	}

	recording, stopRecording := context.WithCancel(ctx)
	defer stopRecording()
	var res recorder.Result
	ended := make(chan error, 1)
	go func() {
		var err error
		res, err = rec.Run(recording)
		ended <- err
	}()
	line := startLive(d.con, 500*time.Millisecond, func() string { return recordStatus(rec.Snapshot()) })
	defer line.Stop()

	robotDone := make(chan error, 1)
	robotCtx, stopRobot := context.WithCancel(ctx)
	defer stopRobot()
	go func() { robotDone <- runRobot(robotCtx, robot, time.Duration(d.seconds)) }()
	select {
	case err = <-robotDone:
		stopRecording()
		err = errors.Join(err, <-ended)
	case err = <-ended: // the recorder must not end before the robot
		stopRobot()
		err = errors.Join(err, <-robotDone)
		if err == nil {
			err = errors.New("the recorder stopped by itself")
		}
	}
	d.sent = robot.Sent()
	return res, err
}

// runRobot waits for the recorder and publishes.
func runRobot(ctx context.Context, robot *perf.Robot, seconds time.Duration) error {
	matching, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := robot.WaitMatched(matching); err != nil {
		return err
	}
	return robot.Run(ctx, seconds)
}

// quietEvents shows warnings only: the demo says itself what it does.
func quietEvents(a *app) func(recorder.Event) {
	return func(e recorder.Event) {
		if e.Level > 0 {
			a.logger.Log(a.ctx, e.Level, e.Text)
		}
	}
}

// openDemoBag opens what was recorded.
func (d *demo) openBag(ctx context.Context) (*bag.Reader, error) {
	return bag.Open(ctx, d.output, bag.ReaderOptions{})
}

// node makes a participant on the demo's domain.
func (d *demo) node(name string) (ros.Node, error) { return loopbackNode(d.app, d.domain, name) }
