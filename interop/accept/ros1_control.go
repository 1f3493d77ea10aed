//go:build linux

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// checkROS1Control steers a recorder with rosservice and reads its log with rostopic.
func checkROS1Control(b *bench) error {
	r, err := newROS1(b)
	if err != nil {
		return err
	}
	defer func() { r.close() }()
	echo, err := r.start(python, "/usr/bin/rostopic", "echo", "/rosout")
	if err != nil {
		return err
	}
	defer echo.Kill()
	talk, err := r.start(python, "/usr/bin/rostopic", "pub", "-r", "50", "/chatter", "std_msgs/String", "data: x")
	if err != nil {
		return err
	}
	defer talk.Kill()
	if err := b.sleep(2 * time.Second); err != nil {
		return err
	}
	dir := filepath.Join(r.dir, "control")
	rec, err := r.record(dir, "/chatter", "--remote-control", "full")
	if err != nil {
		return err
	}
	defer rec.Kill()
	if err := b.sleep(3 * time.Second); err != nil {
		return err
	}
	call := func(name string) (string, error) {
		cmd := exec.CommandContext(b.ctx, python, "/usr/bin/rosservice", "call", "/rosbag2_recorder/"+name)
		cmd.Env = append(cmd.Environ(), r.env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("rosservice call %s: %w: %s", name, err, out)
		}
		return string(out), nil
	}
	for _, x := range []struct{ name, want string }{{"pause", `paused\":true`}, {"status", `\"paused\":true`}, {"resume", `paused\":false`}, {"split", "success: True"},
		{"snapshot", "success: False"}, {"stop", "success: True"}} {
		out, err := call(x.name)
		if err != nil {
			return err
		}
		said := strings.Join(strings.Fields(out), " ")
		b.figure(strings.Contains(out, x.want), "rosservice call "+x.name, x.want, "%s", said[:min(60, len(said))])
	}
	if err := errors.Join(rec.Wait(30*time.Second), b.sleep(time.Second)); err != nil {
		return err
	}
	info, err := b.gobag.Info(dir)
	if err != nil {
		return err
	}
	b.figure(len(info.Files) == 2 && info.Topic("/chatter").Count > 0, "the bag", "2 files", "%d files, %d messages", len(info.Files), info.Topic("/chatter").Count)
	text := echo.Stdout()
	b.figure(strings.Contains(text, "/rosbag2_recorder_") && strings.Contains(text, "split: closed control_0.mcap"), "rostopic echo /rosout", "the recorder's log", "%d lines", strings.Count(text, "msg: "))
	return nil
}
