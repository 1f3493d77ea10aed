//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/all" // the formats that are judged
)

// format is a storage format and its package.
type format struct{ name, pkg string }

// wanted are the formats that the acceptance asks for.
var wanted = []format{
	{"sqlite3", "./plugins/sqlite"}, {"leveldb", "./plugins/leveldb"}, {"mcap", "./plugins/mcap"},
}

// chooseFormats are the wanted formats, or those of them that are named.
func chooseFormats(names string) ([]format, error) {
	if names == "" {
		return wanted, nil
	}
	var chosen []format
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(wanted, func(f format) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no storage format named %q is judged", name)
		}
		chosen = append(chosen, wanted[i])
	}
	return chosen, nil
}

// judges says whether a format is one of those to be judged.
func (b *bench) judges(name string) bool {
	return slices.ContainsFunc(b.judged, func(f format) bool { return f.name == name })
}

// formats are the judged formats that are linked in; each that is missing is a failed figure.
func formats(b *bench) []string {
	var names []string
	for _, w := range b.judged {
		if _, err := plugin.Lookup(w.name); err != nil {
			b.figure(false, w.name, "there is such a format", "no")
			continue
		}
		names = append(names, w.name)
	}
	return names
}

// checkStorageConformance runs the conformance suite of every format with the race detector.
func checkStorageConformance(b *bench) error {
	for _, r := range goTests(b, b.judged, "^(TestConformance|TestCrash|TestDamage)", "-race") {
		if r.err != nil {
			b.figure(false, r.of.name, "every case passes with -race", "%s", firstLine(r.err.Error()))
			continue
		}
		pass, fail, skip := r.run.count(2)
		tests, failed, skipped := r.run.count(1)
		b.figure(tests > 0 && pass >= 40 && fail+failed+skipped == 0, r.of.name+", conformance cases", "at least 40 run with -race, none fails",
			"%d cases pass in %d tests, %d fail, %d skipped", pass, tests, fail+failed, skip+skipped)
	}
	return nil
}

// storageRecordings is a recording in each format.
func storageRecordings(b *bench, what string) []recordingOf {
	var rs []recordingOf
	for _, name := range formats(b) {
		rs = append(rs, recordingOf{name + ", " + what, []string{"-s", name}})
	}
	return rs
}

// checkStorageKill kills recordings of each format.
func checkStorageKill(b *bench) error {
	return killRecordings(b, pick(b, 100, 4), storageRecordings(b, "SIGKILL")...)
}

// checkStoragePowerCut cuts the power of recordings of each format.
func checkStoragePowerCut(b *bench) error {
	return cutRecordings(b, pick(b, 15, 2), storageRecordings(b, "power cut")...)
}

// checkOddInputs runs the tests of odd inputs: of the formats and of what reads bags.
func checkOddInputs(b *bench) error {
	for _, r := range goTests(b, append(slices.Clone(b.judged), []format{{"bags", "./bag"}, {"the command", "./cmd/gobag"}}...), "Odd|Damage|Torn|Flip|Leftover|Truncat|Mutation|Hostile|Salvage|Fixture|ByCpp|TwoJournals") {
		if r.err != nil {
			b.figure(false, r.of.name+", odd inputs", "tests are there and pass", "%s", firstLine(r.err.Error()))
			continue
		}
		tests, failed, skipped := r.run.count(1)
		cases, below, _ := r.run.count(2)
		b.figure(tests > 0 && failed+below+skipped == 0, r.of.name+", odd inputs", "none fails, none is skipped", "%d tests with %d cases pass, %d fail, %d skipped",
			tests, cases, failed+below, skipped)
	}
	return nil
}

// big is traffic that fills a small disk in seconds.
var big = []lab.Topic{
	{Kind: lab.String, Name: "/chatter", Hz: 100},
	{Kind: lab.Image, Name: "/camera/image", Hz: 20, Size: 1 << 20, Depth: 20},
}

// checkDiskFull records to a small disk until there is no room, once with a limit of free space and once to the last byte.
func checkDiskFull(b *bench) error {
	for _, name := range formats(b) {
		for _, limit := range []string{"16MB", "0"} {
			if err := diskFull(b, name, limit); err != nil {
				return fmt.Errorf("%s, --min-free-space %s: %w", name, limit, err)
			}
		}
	}
	return nil
}

var (
	freeText   = regexp.MustCompile(`(?i)\bfree\b|\bleft\b`)
	amountText = regexp.MustCompile(`\d+(\.\d+)? ?([KMG]i?)?[Bb]`)
)

func diskFull(b *bench, format, limit string) error {
	disk, err := lab.NewDisk(lab.DiskOptions{Size: 96 << 20})
	if err != nil {
		return err
	}
	defer disk.Close()
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	dir := filepath.Join(disk.Dir, "bag")
	rec, err := b.gobag.Record(n, dir, big, "-s", format, "--min-free-space", limit)
	if err != nil {
		return err
	}
	defer rec.Kill()
	pub, err := n.PublishAs(b.peer, big, "--wait", "1")
	if err != nil {
		return err
	}
	defer pub.Kill()
	_ = rec.Wait(60 * time.Second) // its exit code is judged
	name := fmt.Sprintf("%s, disk full, --min-free-space %s", format, limit)
	said := rec.Stderr()
	if rec.ExitCode() != 4 {
		b.note("%s said: %s", name, strings.TrimSpace(said))
	}
	b.figure(rec.ExitCode() == 4, name+", exit code", "4", "%d", rec.ExitCode())
	amounts := len(amountText.FindAllString(said, -1))
	b.figure(freeText.MatchString(said) && amounts >= 2, name+", message", "names free and needed bytes", "%d amounts: %.160s", amounts, lastLine(said))
	_, statErr := os.Stat(filepath.Join(dir, "metadata.yaml"))
	info, err := b.gobag.Info(dir)
	if err != nil {
		b.figure(false, name+", the bag opens", "yes", "%s", firstLine(err.Error()))
		return nil
	}
	got, err := lab.Contents(dir, big)
	if err != nil {
		b.figure(false, name+", everything before is readable", "yes", "%s", firstLine(err.Error()))
		return nil
	}
	read, bad, holes := int64(0), 0, int64(0)
	for _, r := range got {
		bad += r.Bad
		read += int64(len(r.Numbers))
		if k := len(r.Numbers); k > 0 {
			holes += r.Numbers[k-1] - r.Numbers[0] + 1 - int64(k)
		}
	}
	lost := int64(0)
	for _, t := range info.Topics {
		lost += t.Lost.Sum()
	}
	b.figure(statErr == nil && read > 0 && bad == 0 && read == info.MessageCount, name+", what is there", "metadata, and every message counted, as published",
		"%d messages, info says %d, %d differ, metadata: %v", read, info.MessageCount, bad, statErr == nil)
	b.figure(holes <= lost, name+", holes", "counted as lost", "%d missing between the first and the last, %d counted as lost", holes, lost)
	return nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
