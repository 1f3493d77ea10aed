package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/control"
	"github.com/gobag/gobag/metrics"
	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/ros/ros1"
)

// runPlay plays bags until their end or a signal.
func runPlay(a *app, f *playFlags) (err error) {
	if err := a.setLevel(f.logLevel); err != nil {
		return err
	}
	o, config, err := f.options()
	if err != nil {
		return err
	}
	inputs, err := inputsOf(f.inputs)
	if err != nil {
		return err
	}
	one, err := f.ros1.wanted(a, "play", &f.node)
	if err != nil {
		return err
	}
	for i, in := range inputs {
		if in.Options.StorageID == "" {
			in.Options.StorageID = f.storage
		}
		turning(a, playFormat(one), nil, true, &in.Options)
		in.Options.Config = config
		r, err := openBag(a.ctx, in.Path, in.Options)
		if err != nil {
			return err
		}
		defer r.Close()
		for _, w := range r.Info().Warnings {
			if len(inputs) > 1 {
				w = in.Path + ": " + w
			}
			a.logger.Warn(w)
		}
		if i == 0 {
			o.Bag = r
		} else {
			o.More = append(o.More, r)
		}
	}
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	node, err := f.joinForPlay(a, one, &o)
	if err != nil {
		return err
	}
	defer node.Close()
	o.Node, o.Logger = node, a.logger
	o.OnEvent = func(e player.Event) { a.logger.Log(a.ctx, e.Level, e.Text) }
	name := ""
	if f.node.name != "" && !one {
		name = "/" + strings.TrimPrefix(f.node.name, "/")
	}
	events := newPlayEvents(a, f, node, name, &o)
	p, err := player.New(o)
	if err != nil {
		if events != nil {
			_ = events.Close() // the node is closed behind it
		}
		return &exitError{exitUsage, err}
	}
	var ctl *controls
	if n1, ok := node.(*ros1.Node); ok {
		if !playsRosout(&o) {
			defer logToRosout(a, n1, n1.Name())()
		}
		ctl, err = controlROS1(a, &f.control, n1, f.node.name, control.PlayerCommands(p))
	} else {
		ctl, err = controlPlayer(a, &f.control, node, name, p, events)
	}
	if err != nil {
		return err
	}
	defer ctl.Close()
	server, err := f.metrics.serve(a, func() []metrics.Metric { return metrics.Player(p.Snapshot()) })
	if err != nil {
		return err
	}
	defer server.Close()
	if f.burst >= 0 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Burst(stop.ctx, uint64(f.burst))
		}()
		defer func() { <-done }()
	}
	res, err := play(a, p, stop.ctx, f)
	if err != nil {
		if errors.Is(err, player.ErrLive) {
			err = fmt.Errorf("%w (--remap, --exclude-topics, --exclude-services, --exclude-actions, --allow-live)", err)
		}
		return err
	}
	_, err = io.WriteString(a.out, playReport(res))
	return err
}

// play runs p with the progress line and the keyboard.
func play(a *app, p *player.Player, ctx context.Context, f *playFlags) (player.Result, error) {
	if !f.noKeyboard {
		stopKeys := readKeys(ctx, a.in, func(k key) {
			if err := playKey(p, k); err != nil {
				a.logger.Warn(err.Error())
			}
		})
		defer stopKeys()
	}
	if period := f.progressPeriod(); period > 0 {
		live := startLive(a.con, period, func() string { return playStatus(p.Snapshot()) })
		defer live.Stop()
	}
	return p.Run(ctx)
}

// progressPeriod is the time between two progress lines; 0 = there are none. A screen shows 25 a second.
func (f *playFlags) progressPeriod() time.Duration {
	const shortest = 40 * time.Millisecond
	switch {
	case f.progressRate == 0:
		return 0
	case f.progressRate < 0:
		return shortest
	}
	return max(time.Duration(float64(time.Second)/f.progressRate), shortest)
}

// rateStep is what the arrow keys add to or take off the rate, as in rosbag2.
const rateStep = 0.1

func playKey(p *player.Player, k key) error {
	switch k {
	case keySpace:
		p.Toggle()
	case keyRight:
		if !p.PlayNext() {
			return errors.New("the next message can be played while paused only: SPACE pauses")
		}
	case keyUp, keyDown:
		step := rateStep
		if k == keyDown {
			step = -rateStep
		}
		rate := math.Round((p.Rate()+step)*1e9) / 1e9
		if rate <= 0 {
			return fmt.Errorf("the rate is %g already: it stays above 0", p.Rate())
		}
		return p.SetRate(rate)
	}
	return nil
}

// options turns the flags into the player's options, bag, node and sinks excepted, and the storage's settings.
func (f *playFlags) options() (o player.Options, config map[string]any, err error) {
	if !(f.rate > 0) || math.IsInf(f.rate, 0) {
		return o, nil, usageError("play: --rate %g: must be above 0", f.rate)
	}
	if f.readAhead < 1 {
		return o, nil, usageError("play: --read-ahead-queue-size %d: must be above 0", f.readAhead)
	}
	for _, m := range f.remap {
		if from, to, ok := strings.Cut(m, ":="); !ok || from == "" || to == "" {
			return o, nil, usageError("play: --remap %q: want OLD:=NEW", m)
		}
	}
	duration, err := spanOf(f.playbackDuration)
	if err != nil {
		return o, nil, usageError("play: --playback-duration: %w", err)
	}
	o = player.Options{Rate: f.rate, Loop: f.loop, Topics: f.topics, Services: f.services, Actions: f.actions, ExcludeTopics: f.excludeTopics,
		ExcludeServices: f.excludeServices, ExcludeActions: f.excludeActions, Regex: f.regex, ExcludeRegex: f.excludeRegex,
		Remap: f.remap, StartOffset: time.Duration(f.startOffset), PlaybackDuration: duration, Delay: time.Duration(f.delay),
		ReadAhead: f.readAhead, WaitAcked: time.Duration(f.waitAcked) * time.Millisecond, StartPaused: f.startPaused, AllowLive: f.allowLive}
	if f.waitAcked < 0 {
		o.WaitAcked = -1
	}
	if err := f.clocks(&o); err != nil {
		return o, nil, err
	}
	if o.QoSOverrides, err = readQoS(f.qosFile); err != nil {
		return o, nil, fmt.Errorf("--qos-profile-overrides-path: %w", err)
	}
	if config, err = readYAML(f.configFile); err != nil {
		return o, nil, fmt.Errorf("--storage-config-file: %w", err)
	}
	return o, config, nil
}

// clocks reads the flags about times, /clock and services into o.
func (f *playFlags) clocks(o *player.Options) error {
	clocks := 0
	for _, given := range []bool{f.clock != 0, len(f.clockTopics) > 0, f.clockAll} {
		if given {
			clocks++
		}
	}
	switch {
	case clocks > 1:
		return usageError("play: --clock, --clock-topics and --clock-topics-all: one of them")
	case f.clock < 0 || math.IsNaN(f.clock) || math.IsInf(f.clock, 0):
		return usageError("play: --clock %g: must be above 0", f.clock)
	case f.untilSec >= 0 && f.untilNsec >= 0:
		return usageError("play: --playback-until-sec and --playback-until-nsec: one of them")
	case f.untilSec > math.MaxInt64/2/1e9 || math.IsNaN(f.untilSec):
		return usageError("play: --playback-until-sec %g is not a time", f.untilSec)
	}
	o.ClockRate, o.ClockTopics, o.ClockAll = f.clock, f.clockTopics, f.clockAll
	switch {
	case f.untilNsec >= 0:
		o.PlaybackUntil = max(1, f.untilNsec)
	case f.untilSec >= 0:
		whole, frac := math.Modf(f.untilSec)
		o.PlaybackUntil = max(1, int64(whole)*1e9+int64(math.Round(frac*1e9)))
	}
	switch f.messageOrder {
	case "received", "":
	case "sent":
		o.ByPublishTime = true
	default:
		return usageError("play: --message-order %q: not one of received, sent", f.messageOrder)
	}
	switch f.requestsSource {
	case "service_introspection", "":
	case "client_introspection":
		o.FromClient = true
	default:
		return usageError("play: --service-requests-source %q: not one of service_introspection, client_introspection", f.requestsSource)
	}
	o.CallServices, o.ActionsAsClient = f.callServices, f.asClient
	return nil
}

// openBag opens a bag. A path with nothing there gets a short error: the command line is well formed, so that the exit code
// is that of a failure (rosbag2's argument parser makes it 2).
func openBag(ctx context.Context, path string, o bag.ReaderOptions) (*bag.Reader, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("bag path %q does not exist", path)
	}
	o.AllowMissing = true // a warning names them
	return bag.Open(ctx, path, o)
}

var playStateLetter = map[player.State]string{player.StateWaiting: "waiting", player.StateDelay: "D", player.StatePlaying: "R", player.StatePaused: "P", player.StateStopped: "S"}

// playStatus is the progress line, in rosbag2's form with more behind it.
func playStatus(s player.Snapshot) string {
	line := fmt.Sprintf("[%d.%09d] Duration %.2f/%.2f [%s] | rate %g | %d played", s.Position/1e9, s.Position%1e9, s.Elapsed.Seconds(), s.Total.Seconds(),
		playStateLetter[s.State], s.Rate, s.Played)
	if s.Loops > 0 {
		line += fmt.Sprintf(" | loop %d", s.Loops+1)
	}
	if s.Lateness.Count > 0 {
		line += fmt.Sprintf(" | late p99 %s", millis(s.Lateness.P99))
	}
	return line
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

// playReport is what play prints at the end.
func playReport(r player.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nPlayed %s, %s, in %.1f s", plural(r.Played, "message"), fileSize(int64(r.Bytes)), r.Elapsed.Seconds())
	if r.Loops > 0 {
		fmt.Fprintf(&b, ", %d times from the start", r.Loops+1)
	}
	b.WriteString("\n")
	if l := r.Lateness; l.Count > 0 {
		fmt.Fprintf(&b, "Late: p50 %s, p99 %s, at most %s; %d of %d more than 1 ms\n", millis(l.P50), millis(l.P99), millis(l.Max), l.Late, l.Count)
	}
	if r.Starved > 0 {
		fmt.Fprintf(&b, "%s late because reading the bag did not keep up\n", plural(r.Starved, "message"))
	}
	if r.Unacked > 0 || r.Dropped > 0 {
		fmt.Fprintf(&b, "Not acknowledged at the end: %d; given up on before: %d\n", r.Unacked, r.Dropped)
	}
	if len(r.Topics) > 0 {
		t := table{header: []string{"Topic", "played", "subscriptions"}, right: map[int]bool{1: true, 2: true}}
		for _, x := range r.Topics {
			name := printable(x.Topic)
			if x.From != x.Topic {
				name += " (from " + printable(x.From) + ")"
			}
			t.add(name, fmt.Sprint(x.Played), fmt.Sprint(x.Matched))
		}
		b.WriteString("\n" + t.String())
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "not played: %s: %s\n", printable(s.Topic), s.Why)
	}
	return b.String()
}
