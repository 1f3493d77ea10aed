package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/gobag/gobag/control"
	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
	"github.com/spf13/pflag"
)

// controlFlags say who may steer a recorder or player, and how.
type controlFlags struct {
	remote, socket string
}

func (f *controlFlags) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.remote, "remote-control", "limited", "services of rosbag2 on the network, `WHICH`: limited (pause, resume, split, snapshot), full or off")
	fs.StringVar(&f.socket, "control-socket", "", "Unix socket `PATH` for \"gobag ctl\"; off = none (default: below $XDG_RUNTIME_DIR)")
}

// controls is what steers a recorder or player while it runs.
type controls struct {
	servers *control.Servers  // of ROS 2
	ros1    *control.Triggers // of ROS 1
	events  *control.Events
	socket  *control.Socket
	log     *slog.Logger
}

// openSocket makes the control socket. Where that fails without the user having asked for one, it is said and left out.
func (c *controls) openSocket(a *app, f *controlFlags, node string, commands control.Commands) error {
	if f.socket == "off" {
		return nil
	}
	path := f.socket
	if path == "" {
		path = control.SocketPath(a.env, node)
	}
	s, err := control.Listen(path, commands, a.logger)
	switch {
	case err != nil && f.socket != "":
		return err
	case err != nil:
		a.logger.Warn(fmt.Sprintf("no \"gobag ctl\": %v", err))
	default:
		c.socket = s
		a.logger.Debug("control socket " + path)
	}
	return nil
}

// controlRecorder opens everything for a recorder. events were made before, since the recorder tells them of splits.
func controlRecorder(a *app, f *recordFlags, node ros.Node, name string, r *recorder.Recorder, events *control.Events) (_ *controls, err error) {
	c := &controls{log: a.logger, events: events}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	remote, err := control.ParseRemote(f.control.remote)
	if err != nil {
		return nil, usageError("record: --remote-control %w", err)
	}
	if c.servers, err = control.ServeRecorder(node, name, r, remote, a.logger); err != nil {
		return nil, err
	}
	if events != nil {
		events.FollowLosses(r, statsPeriod(f.statsRate))
	}
	return c, c.openSocket(a, &f.control, name, control.RecorderCommands(r))
}

// controlPlayer does so for a player.
func controlPlayer(a *app, f *controlFlags, node ros.Node, name string, p *player.Player, events *control.Events) (_ *controls, err error) {
	c := &controls{log: a.logger, events: events}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	remote, err := control.ParseRemote(f.remote)
	if err != nil {
		return nil, usageError("play: --remote-control %w", err)
	}
	if c.servers, err = control.ServePlayer(node, name, p, remote, a.logger); err != nil {
		return nil, err
	}
	return c, c.openSocket(a, f, name, control.PlayerCommands(p))
}

// controlROS1 opens everything for a recorder or player on ROS 1: its services are below the plain name, without what makes
// a node's name unique there, so that they can be called without looking for it.
func controlROS1(a *app, f *controlFlags, node control.TriggerNode, name string, commands control.Commands) (_ *controls, err error) {
	c := &controls{log: a.logger}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	remote, err := control.ParseRemote(f.remote)
	if err != nil {
		return nil, usageError("--remote-control %w", err)
	}
	if name == "" {
		return c, c.openSocket(a, f, name, commands)
	}
	name = "/" + strings.Trim(name, "/")
	if c.ros1, err = control.ServeTriggers(node, name, commands, remote, a.logger); err != nil {
		return nil, err
	}
	return c, c.openSocket(a, f, name, commands)
}

// newRecordEvents announces a recorder's events; nil where that is not asked for or not possible. The recorder's OnSplit
// tells them.
func newRecordEvents(a *app, f *recordFlags, node ros.Node, name string, o *recorder.Options) *control.Events {
	if name == "" || f.control.remote == string(control.RemoteOff) {
		return nil
	}
	events, err := control.NewEvents(node, strings.TrimPrefix(name, "/"), false, a.logger)
	if err != nil {
		a.logger.Warn(fmt.Sprintf("no events: %v", err))
		return nil
	}
	dir := o.Output
	file := func(name string) string {
		if name == "" || f.snapshotMode { // snapshots have their directory in the name
			return name
		}
		return filepath.Join(dir, name)
	}
	o.OnSplit = func(closed, opened string) { events.Split(file(closed), file(opened)) }
	return events
}

// newPlayEvents announces a player's events; nil where that is not asked for or not possible.
func newPlayEvents(a *app, f *playFlags, node ros.Node, name string, o *player.Options) *control.Events {
	if name == "" || f.control.remote == string(control.RemoteOff) {
		return nil
	}
	events, err := control.NewEvents(node, strings.TrimPrefix(name, "/"), true, a.logger)
	if err != nil {
		a.logger.Warn(fmt.Sprintf("no events: %v", err))
		return nil
	}
	o.OnFile = events.Split
	return events
}

// Close ends all of it. What fails is said: the recording or playback is over and sound.
func (c *controls) Close() {
	var errs []error
	if c.socket != nil {
		errs = append(errs, c.socket.Close())
	}
	if c.servers != nil {
		errs = append(errs, c.servers.Close())
	}
	if c.ros1 != nil {
		errs = append(errs, c.ros1.Close())
	}
	if c.events != nil {
		errs = append(errs, c.events.Close())
	}
	if err := errors.Join(errs...); err != nil {
		c.log.Warn(err.Error())
	}
}
