package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/metrics"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros/ros2"
	"github.com/gobag/gobag/rtps"
)

// defaultStorage is what record uses without -s, but for Humble.
var defaultStorage = bag.DefaultStorage(plugin.CompatJazzy)

// runRecord records until a signal or a limit and prints the ledger.
func runRecord(a *app, f *recordFlags) error {
	if err := a.setLevel(f.logLevel); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	if err := applyProfile(a, f.profile); err != nil {
		return err
	}
	limitMemory(o, a.env)
	f.compression.warn(a)

	var rec *recorder.Recorder
	stop := newStopper(a.ctx, func(sig os.Signal, n int) {
		switch {
		case n == 1:
			a.logger.Info(fmt.Sprintf("%v: stopping", sig))
		case n == 2 && rec != nil:
			a.logger.Warn(fmt.Sprintf("%v again: stopping at once, without what is still in memory", sig))
		}
	})
	defer stop.Close()
	if f.untilStdinCloses {
		go func() {
			_, _ = io.Copy(io.Discard, a.in) // an error ends it as well
			stop.stop()
		}()
	}

	one, err := f.ros1.wanted(a, "record", &f.node)
	if err != nil {
		return err
	}
	if one {
		return runRecord1(a, f, o, stop, &rec)
	}
	node, err := openNode(a, &f.node)
	if err != nil {
		return err
	}
	defer node.Close()
	if hint := bufferHint(node.Stats().RecvBuffer); hint != "" {
		a.logger.Warn(hint)
	}
	o.Node, o.Logger = node, a.logger
	if o.Compat == "" {
		if o.Compat = chooseCompat(stop.ctx, node.Graph()); o.Compat == plugin.CompatHumble {
			a.logger.Info("no publisher announces a type hash: writing a bag that Humble can open (--compat jazzy overrides)")
		}
	}
	if f.dryRun {
		return runDry(a, o, stop, node.Graph())
	}
	name := ""
	if f.node.name != "" {
		name = "/" + strings.TrimPrefix(f.node.name, "/")
	}
	events := newRecordEvents(a, f, node, name, &o)
	o.OnEvent = func(e recorder.Event) {
		a.logger.Log(a.ctx, e.Level, e.Text)
		if e.Kind == recorder.EventMissing {
			reportUnreachable(a, node)
		}
	}
	if rec, err = recorder.New(o); err != nil {
		return &exitError{exitUsage, err}
	}
	ctl, err := controlRecorder(a, f, node, name, rec, events)
	if err != nil {
		return err
	}
	defer ctl.Close()
	server, err := f.metrics.serve(a, func() []metrics.Metric { return metrics.Recorder(rec.Snapshot()) })
	if err != nil {
		return err
	}
	defer server.Close()
	defer notifySystemd(a, func() bool { return rec.Snapshot().Healthy })()
	if !f.noKeyboard {
		defer readKeys(stop.ctx, a.in, func(k key) {
			if k == keySpace {
				rec.Toggle()
			}
		})()
	}
	err = record(a, rec, stop)
	reportDrops(a, node.Stats())
	return err
}

// recording is what record needs of a *recorder.Recorder.
type recording interface {
	Run(context.Context) (recorder.Result, error)
	Abort()
	Snapshot() recorder.Snapshot
}

// record runs rec with a live line until the first signal; the second aborts.
func record(a *app, rec recording, stop *stopper) error {
	done := make(chan struct{})
	aborted := make(chan struct{})
	go func() {
		defer close(aborted)
		select {
		case <-stop.hurry.Done():
			rec.Abort()
		case <-done:
		}
	}()
	live := startLive(a.con, 500*time.Millisecond, func() string { return recordStatus(rec.Snapshot()) })
	res, err := rec.Run(stop.ctx)
	close(done)
	<-aborted
	live.Stop()
	if res.Output != "" {
		if _, werr := io.WriteString(a.out, recordReport(res)); err == nil {
			err = werr
		}
	}
	return recordError(err)
}

// reportUnreachable names participants that we see but cannot receive.
func reportUnreachable(a *app, node *ros2.Node) {
	for _, p := range node.Peers() {
		if p.Reachable {
			continue
		}
		name := p.Name
		if len(p.Nodes) > 0 {
			name = strings.Join(p.Nodes, ", ")
		}
		a.logger.Warn(fmt.Sprintf("participant %s (%s, %s) cannot be received: %s", name, p.Vendor, p.ID, p.Reason))
	}
}

// reportDrops says what the machine itself lost before it reached us: the cause of losses on the wire that can be mended.
func reportDrops(a *app, s rtps.Stats) {
	if s.Refused > 0 {
		a.logger.Warn(fmt.Sprintf("%s of announcements and samples were turned away, since a limit on what one or all participants may use was reached; gobag doctor names the participants.", plural(s.Refused, "case")))
	}
	if s.KernelDrops == 0 {
		return
	}
	text := fmt.Sprintf("the kernel dropped %d datagrams since the receive buffer (%s) was full; reliable writers send them again.", s.KernelDrops, fileSize(int64(s.RecvBuffer)))
	if hint := sysctlHint(); hint != "" && s.RecvBuffer < 16<<20 {
		text += " A larger one: " + hint
	}
	a.logger.Warn(text)
}

// recordError gives a recording's error its exit code.
func recordError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, recorder.ErrDiskFull):
		return &exitError{exitDiskFull, err}
	case errors.Is(err, plugin.ErrExists), errors.Is(err, recorder.ErrGaveUp):
		return &exitError{exitFailure, err}
	case onlyNothing(err):
		return &exitError{exitNothing, err}
	}
	return &exitError{exitFailure, err}
}

// onlyNothing: nothing else is wrong than that topics or messages did not come.
func onlyNothing(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it goes through the tree itself, to look at every branch
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if !onlyNothing(part) {
				return false
			}
		}
		return true
	case *recorder.MissingTopicsError:
		return true
	case interface{ Unwrap() error }:
		return e.Unwrap() != nil && onlyNothing(e.Unwrap())
	}
	return errors.Is(err, recorder.ErrNothingRecorded)
}
