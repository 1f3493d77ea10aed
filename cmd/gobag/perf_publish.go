package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros/ros2"
	"github.com/gobag/gobag/ros/rostest"
	"github.com/spf13/cobra"
)

// loadValue is a perf.Load as JSON.
type loadValue perf.Load

func (v *loadValue) String() string { return "" }
func (v *loadValue) Type() string   { return "JSON" }

func (v *loadValue) Set(s string) error {
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	return d.Decode((*perf.Load)(v))
}

// newPerfPublish is the publishers' process of `perf record`: it prints one perf.LoadResult as JSON.
func newPerfPublish(a *app) *cobra.Command {
	var l loadValue
	var node nodeFlags
	var untilStdinCloses bool
	cmd := &cobra.Command{
		Use:    "publish",
		Short:  "Publish a load (what perf record starts)",
		Hidden: true,
		Args:   args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			if err := perf.Load(l).Validate(); err != nil {
				return usageError("perf publish: %w", err)
			}
			stop := newStopper(a.ctx, nil)
			defer stop.Close()
			if untilStdinCloses {
				stopWithStdin(a, stop)
			}
			return publishLoad(a, stop.ctx, perf.Load(l), &node)
		},
	}
	fs := cmd.Flags()
	fs.Var(&l, "load", "")
	switchFlag(fs, &untilStdinCloses, "until-stdin-closes", "", "")
	node.define(fs, "gobag_load")
	return cmd
}

// stopWithStdin stops when standard input ends.
func stopWithStdin(a *app, stop *stopper) {
	go func() {
		_, _ = io.Copy(io.Discard, a.in) // an error ends it as well
		stop.stop()
	}()
}

// matchLimit is how long the publishers wait for the recorder to subscribe to everything: for 1000 topics on a slow machine.
const matchLimit = 60 * time.Second

// What publishers of a load keep of a topic for a subscription that is behind, and how long they wait for it: what DDS
// publishers do that keep all.
const (
	loadWindow   = 64 << 20
	loadBlocking = 10 * time.Second
)

func publishLoad(a *app, ctx context.Context, l perf.Load, nf *nodeFlags) error {
	o, err := nf.options(a)
	if err != nil {
		return err
	}
	o.Window, o.MaxBlocking = loadWindow, loadBlocking
	node, err := ros2.New(o)
	if err != nil {
		return err
	}
	defer node.Close()
	limited, cancel := context.WithTimeout(ctx, matchLimit+3*l.Span())
	defer cancel()
	res, err := perf.Publish(limited, node, l)
	if err != nil {
		return err
	}
	return json.NewEncoder(a.out).Encode(res)
}

// newPerfNoTransport is `record` with publishers of its own in the same process, on a network in memory: it takes record's
// flags and prints one perf.LoadResult as JSON.
func newPerfNoTransport(a *app) *cobra.Command {
	var l loadValue
	cmd := newRecordVerb(func(f *recordFlags) error { return recordInMemory(a, f, perf.Load(l)) })
	cmd.Use, cmd.Short, cmd.Long, cmd.Example = "no-transport", "Record a load without DDS (what perf record starts)", "", ""
	cmd.Hidden = true
	cmd.Flags().Var(&l, "load", "")
	return cmd
}

func recordInMemory(a *app, f *recordFlags, l perf.Load) error {
	if err := l.Validate(); err != nil {
		return usageError("perf no-transport: %w", err)
	}
	if err := a.setLevel(f.logLevel); err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	limitMemory(o, a.env)
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	if f.untilStdinCloses {
		stopWithStdin(a, stop)
	}
	net := rostest.NewNetwork(rostest.Options{QueueBytes: 16 << 20, MaxBlocking: time.Minute})
	publishers, receiver := net.Node("gobag_load"), net.Node("gobag_recorder")
	defer func() { _, _ = publishers.Close(), receiver.Close() }() // a network in memory
	o.Node, o.Logger = receiver, a.logger
	o.OnEvent = func(e recorder.Event) { a.logger.Log(a.ctx, e.Level, e.Text) }
	rec, err := recorder.New(o)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	ctx, end := context.WithCancel(stop.ctx)
	defer end()
	var res perf.LoadResult
	var published error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer end()
		res, published = perf.Publish(ctx, publishers, l)
	}()
	_, err = rec.Run(ctx)
	end()
	<-done
	if err = errors.Join(recordError(err), published); err != nil {
		return fmt.Errorf("perf no-transport: %w", err)
	}
	return json.NewEncoder(a.out).Encode(res)
}
