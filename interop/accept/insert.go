//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"time"

	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/plugin"
)

func init() {
	addChecks("perf", check{"insert", "objects inserted one at a time, durable and crash-safe, every format", checkInsert})
}

// addChecks puts checks behind those of a group.
func addChecks(group string, more ...check) {
	s := groups[group]
	s.checks = append(s.checks[:len(s.checks):len(s.checks)], more...)
	groups[group] = s
}

// checkInsert measures inserts beside a bare loop and C SQLite, and looks for what killed processes had acknowledged.
func checkInsert(b *bench) error {
	o := perf.InsertOptions{Count: pick(b, 1_000_000, 20_000), Limit: pick(b, 10*time.Second, time.Second), Repeat: pick(b, 5, 1), Kills: pick(b, 10, 1), Seed: 1,
		Dir: b.scratch, Peers: peerPrograms, Command: b.command}
	rep, err := perf.RunInsert(b.ctx, o)
	if err != nil {
		return err
	}
	if err := rep.WriteText(os.Stdout); err != nil {
		return err
	}
	for _, c := range rep.Failed() {
		b.figure(false, c.Name(), "runs, and finds all that it has inserted", "%s", firstLine(c.Error))
	}
	for _, d := range plugin.Drivers() {
		name := d.Name()
		if d.Features().ReadOnly || name != "columnar" && !b.judges(name) {
			continue
		}
		durable, safe := rep.Find(perf.InsertDurable, name), rep.Find(perf.InsertCrashSafe, name)
		if durable == nil || safe == nil || len(durable.Runs) == 0 || len(safe.Runs) == 0 {
			b.figure(false, name, "is measured", "no")
			continue
		}
		gain := rep.Gain(perf.InsertDurable, name, "bare-loop")
		b.figure(gain >= 0.8, "durable, "+name, "≥ 0.8 × a bare loop of write and fdatasync", "%.2f × (%.0f/s)", gain, durable.Rate())
		b.figure(safe.Rate() >= 300_000, "crash-safe, "+name, "≥ 300,000/s", "%.0f/s", safe.Rate())
		for _, c := range []*perf.InsertCell{durable, safe} {
			b.figure(c.Steady() >= 0.95, "last tenth, "+c.Name(), "≥ 0.95 × the first", "%.3f", c.Steady())
			b.figure(c.RSS() <= 64e6, "RSS, "+c.Name(), "≤ 64 MB", "%.1f MB", c.RSS()/1e6)
		}
		lost := 0
		for _, k := range safe.Kills {
			lost += max(0, k.Acknowledged-k.Found)
		}
		b.figure(lost == 0 && len(safe.Kills) > 0, "killed, "+name, "nothing that was acknowledged is lost", "%d lost in %d processes", lost, len(safe.Kills))
	}
	return nil
}

// command is a process of the program that is judged.
func (b *bench) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, b.gobag.Path, args...)
}
