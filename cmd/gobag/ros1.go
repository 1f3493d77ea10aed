package main

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/control"
	"github.com/gobag/gobag/convert"
	"github.com/gobag/gobag/metrics"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros1"
	"github.com/gobag/gobag/ros/transcode"
	"github.com/spf13/pflag"
)

// ros1Flags choose the generation of ROS.
type ros1Flags struct {
	ros string // "", "1" or "2"
	as  string // record: "ros1" or "cdr"
}

func (f *ros1Flags) define(fs *pflag.FlagSet, records bool) {
	fs.StringVar(&f.ros, "ros", "", "`N`: 2, or 1 for a ROS 1 master at ROS_MASTER_URI (default 1 where the environment has that and nothing of ROS 2)")
	if records {
		fs.StringVar(&f.as, "ros1-as", "", "`FORMAT` of what ROS 1 publishes: ros1, as it comes (default), or cdr, as ROS 2's types")
	}
}

// ofROS2 are variables that a ROS 2 environment has and a ROS 1 environment has not.
var ofROS2 = []string{"ROS_DOMAIN_ID", "RMW_IMPLEMENTATION", "AMENT_PREFIX_PATH", "CYCLONEDDS_URI", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_LOCALHOST_ONLY"}

// wanted says whether to speak ROS 1.
func (f *ros1Flags) wanted(a *app, verb string, n *nodeFlags) (bool, error) {
	if f.as != "" && f.as != transcode.FormatROS1 && f.as != transcode.FormatCDR {
		return false, usageError("%s: --ros1-as %q: not one of ros1, cdr", verb, f.as)
	}
	one := false
	switch f.ros {
	case "1":
		one = true
	case "2":
	case "":
		one = a.env("ROS_MASTER_URI") != "" && a.env("ROS_VERSION") != "2" && n.domain == -1 && len(n.interfaces)+len(n.peers) == 0
		for _, name := range ofROS2 {
			one = one && a.env(name) == ""
		}
		if one {
			a.logger.Info(fmt.Sprintf("ROS_MASTER_URI=%s and nothing of ROS 2 in the environment: speaking ROS 1 (--ros 2 overrides)", a.env("ROS_MASTER_URI")))
		}
	default:
		return false, usageError("%s: --ros %q: 1 or 2", verb, f.ros)
	}
	if one && (n.domain != -1 || len(n.interfaces)+len(n.peers) > 0) {
		return false, usageError("%s: --domain-id, --interface and --peer are of ROS 2: a ROS 1 node is told where by ROS_MASTER_URI, ROS_IP and ROS_HOSTNAME", verb)
	}
	if !one && f.as != "" {
		return false, usageError("%s: --ros1-as is for ROS 1 (--ros 1)", verb)
	}
	return one, nil
}

// openNode1 joins ROS 1.
func openNode1(a *app, n *nodeFlags, o ros1.Options) (*ros1.Node, error) {
	env, warnings, err := ros1.OptionsFromEnv(a.env)
	for _, w := range warnings {
		a.logger.Warn(w)
	}
	if err != nil {
		return nil, err
	}
	o.Master, o.Host, o.Name, o.Logger = env.Master, env.Host, strings.Trim(n.name, "/"), a.nodeLogger()
	node, err := ros1.New(o)
	if err == nil {
		a.logger.Debug("ROS 1 node " + node.Name())
	}
	return node, err
}

// runRecord1 is runRecord on ROS 1. rec is where the signals find the recorder.
func runRecord1(a *app, f *recordFlags, o recorder.Options, stop *stopper, rec **recorder.Recorder) error {
	if f.useSimTime {
		return usageError("record: --use-sim-time is for ROS 2")
	}
	node, err := openNode1(a, &f.node, ros1.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }() // the recording is over
	go func() {
		select {
		case <-node.Shutdown():
			stop.stop()
		case <-stop.ctx.Done():
		}
	}()
	o.Logger, o.Node, o.Format = a.logger, node, transcode.FormatROS1
	o.Definition = func(typ, hash string) (plugin.Definition, error) {
		text, ok := node.Definition(typ, hash)
		if !ok {
			return plugin.Definition{}, recorder.ErrDefinitionLater
		}
		return plugin.Definition{Encoding: msg.ROS1Encoding, Text: text}, nil
	}
	if f.ros1.as == transcode.FormatCDR {
		turned := transcode.NewNode(node, transcode.New(msg.Options{Dirs: msg.SearchDirs(f.msgPath)}), a.logger)
		o.Node, o.Format = turned, transcode.FormatCDR
		o.Definition = func(typ, hash string) (plugin.Definition, error) {
			encoding, text, ok := turned.Define(typ, hash)
			if !ok {
				return plugin.Definition{}, recorder.ErrDefinitionLater
			}
			return plugin.Definition{Encoding: encoding, Text: text}, nil
		}
	}
	if o.Compat == "" {
		o.Compat = plugin.CompatJazzy
	}
	if f.dryRun {
		return runDry(a, o, stop, node.Graph())
	}
	o.OnEvent = func(e recorder.Event) { a.logger.Log(a.ctx, e.Level, e.Text) }
	if *rec, err = recorder.New(o); err != nil {
		return &exitError{exitUsage, err}
	}
	defer logToRosout(a, node, node.Name())()
	ctl, err := controlROS1(a, &f.control, node, f.node.name, control.RecorderCommands(*rec))
	if err != nil {
		return err
	}
	defer ctl.Close()
	server, err := f.metrics.serve(a, func() []metrics.Metric { return metrics.Recorder((*rec).Snapshot()) })
	if err != nil {
		return err
	}
	defer server.Close()
	if !f.noKeyboard {
		defer readKeys(stop.ctx, a.in, func(k key) {
			if k == keySpace {
				(*rec).Toggle()
			}
		})()
	}
	return record(a, *rec, stop)
}

// joinForPlay joins the network that bags are played to.
func (f *playFlags) joinForPlay(a *app, one bool, o *player.Options) (ros.Node, error) {
	if !one {
		return openPlayNode(a, &f.node)
	}
	if f.clock != 0 || len(f.clockTopics) > 0 || f.clockAll || f.callServices {
		return nil, usageError("play: --clock, --clock-topics and --publish-service-requests are for ROS 2")
	}
	node, err := openNode1(a, &f.node, ros1.Options{Window: playWindow, MaxBlocking: playBlocking})
	if err != nil {
		return nil, err
	}
	o.Format = transcode.FormatROS1
	for _, r := range append([]*bag.Reader{o.Bag}, o.More...) {
		for _, t := range r.Info().Topics {
			if t.SerializationFormat != transcode.FormatROS1 || t.Definition.Text == "" {
				continue
			}
			if _, err := node.Define(t.Type, t.Definition.Text); err != nil {
				a.logger.Warn(fmt.Sprintf("topic '%s': %v; subscribers are not told its definition", t.Name, err))
			}
		}
	}
	return node, nil
}

// turning makes readers give every topic in a serialization format; with skip what cannot be turned is left out, said
// once per topic.
func turning(a *app, format string, dirs []string, skip bool, o *bag.ReaderOptions) {
	c := transcode.New(msg.Options{Dirs: msg.SearchDirs(dirs)})
	o.Transcode = func(t plugin.Topic) (*bag.Transcoding, error) { return transcoding(c, t, format) }
	if !skip {
		return
	}
	var mu sync.Mutex
	said := map[string]bool{}
	o.OnTurnError = func(e *bag.TurnError) {
		mu.Lock()
		defer mu.Unlock()
		if !said[e.Topic] {
			said[e.Topic] = true
			a.logger.Log(a.ctx, slog.LevelError, fmt.Sprintf("%v: this message is left out, and further ones like it", e))
		}
	}
}

// transcoding is how payloads of a topic come into a format; nil where they are in it.
func transcoding(c *transcode.Compiler, t plugin.Topic, format string) (*bag.Transcoding, error) {
	var p *transcode.Program
	var err error
	switch {
	case t.SerializationFormat == format || t.SerializationFormat == "" && format == transcode.FormatCDR:
		return nil, nil
	case format == transcode.FormatCDR && t.SerializationFormat == transcode.FormatROS1:
		if t.Definition.Text == "" && t.TypeHash == "" {
			return nil, fmt.Errorf("type %s: the bag has no definition of it", t.Type)
		}
		p, err = c.ToROS2(t.Type, t.Definition.Text)
		if err == nil && t.Definition.Text == "" {
			if d, derr := msg.BuiltinROS1(t.Type); derr == nil && d.MD5() != t.TypeHash {
				return nil, fmt.Errorf("type %s: the bag has no definition of it, and its md5sum %s is another than that of the usual one", t.Type, t.TypeHash)
			}
		}
	case format == transcode.FormatROS1 && (t.SerializationFormat == transcode.FormatCDR || t.SerializationFormat == ""):
		p, err = c.ToROS1(t.Type, t.TypeHash, t.Definition.Encoding, t.Definition.Text)
	default:
		return nil, fmt.Errorf("serialization format %q cannot be turned into %s", t.SerializationFormat, format)
	}
	if err != nil {
		return nil, err
	}
	var seq uint32 // Header.seq counts per publisher
	return &bag.Transcoding{Type: p.Type, TypeHash: p.Hash, SerializationFormat: format,
		Definition: plugin.Definition{Encoding: p.Encoding, Text: p.Definition},
		Append: func(dst, payload []byte) ([]byte, error) {
			out, err := p.Append(dst, payload, seq)
			if err == nil {
				seq++
			}
			return out, err
		}}, nil
}

// playFormat is the serialization of what is played.
func playFormat(one bool) string {
	if one {
		return transcode.FormatROS1
	}
	return transcode.FormatCDR
}

// turn is --to of convert.
func (f *convertFlags) turn(a *app, o *convert.Options) error {
	switch f.to {
	case "":
		return nil
	case transcode.FormatCDR, transcode.FormatROS1:
	default:
		return usageError("%s: --to %q: not one of cdr, ros1", f.verb, f.to)
	}
	o.Format = f.to
	for i := range o.Inputs {
		turning(a, f.to, nil, false, &o.Inputs[i].Options)
	}
	return nil
}
