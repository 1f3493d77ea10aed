//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// humbleFixture is a bag that a ROS 2 Humble recorded, below the shared fixtures.
const humbleFixture = "bags/31-humble-schema3-recorded"

// checkCompat records a bag for Humble from a peer of each vendor and holds it against one that Humble recorded.
func checkCompat(b *bench) error {
	shared, ok := lab.Shared()
	if !ok {
		return fmt.Errorf("the fixtures are not there: %s", shared)
	}
	want, err := formOf(filepath.Join(shared, "fixtures", humbleFixture))
	if err != nil {
		return err
	}
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	scratch, err := b.dir("compat")
	if err != nil {
		return err
	}
	for _, peer := range []lab.Vendor{lab.Cyclone, lab.Fast} {
		dir := filepath.Join(scratch, string(peer))
		if err := recordHumble(b, n, peer, dir); err != nil {
			return err
		}
		got, err := formOf(dir)
		if err != nil {
			return err
		}
		name := "recorded from " + vendor(peer) + " for Humble, "
		for _, part := range []struct {
			name      string
			got, want []string
		}{{"metadata.yaml", got.metadata, want.metadata}, {"QoS profiles", got.qos, want.qos}, {"tables", got.tables, want.tables}} {
			same := slices.Equal(part.got, part.want)
			if !same {
				b.note("%s: %q, want %q", part.name, part.got, part.want)
			}
			b.figure(same && len(part.want) > 0, name+part.name, "every key and kind of value as in a bag of Humble", "%s",
				either(same, fmt.Sprintf("the same %d lines", len(part.want)), "differs"))
		}
		b.figure(slices.Equal(got.files, []string{string(peer) + "_0.db3", "metadata.yaml"}), name+"files", "BAG_0.db3, metadata.yaml", "%v", got.files)
	}
	r, err := goTest(b, "./bag", "Humble|TestEncodeVersions|TestParseFixtures")
	if err != nil {
		return err
	}
	pass, fail, skip := r.count(1)
	b.figure(pass > 0 && fail == 0 && skip == 0, "tests of that form", "pass", "%d pass, %d fail, %d skipped", pass, fail, skip)
	return nil
}

func recordHumble(b *bench, n *lab.Net, peer lab.Vendor, dir string) error {
	topics := []lab.Topic{{Kind: lab.String, Name: "/chatter", Hz: 100}, {Kind: lab.Imu, Name: "/imu", Hz: 200, BestEffort: true, Depth: 5},
		{Kind: lab.String, Name: "/latched", Count: 3, TransientLocal: true, Depth: 3, Early: true}}
	rec, err := b.gobag.Record(n, dir, topics, "--compat", "humble", "-s", "sqlite3")
	if err != nil {
		return err
	}
	defer rec.Kill()
	pub, err := n.PublishAs(peer, topics, "--seconds", "3", "--wait", "1")
	if err != nil {
		return err
	}
	defer pub.Kill()
	return errors.Join(pub.Wait(40*time.Second), b.sleep(200*time.Millisecond), rec.Stop(30*time.Second))
}

// form is what a bag looks like whatever is in it.
type form struct {
	metadata []string // keys of metadata.yaml with their depth and kinds of values, each line once
	qos      []string // the same of the text of QoS profiles
	tables   []string // of the database, with the number of its schema; not gobag's own, which no other reader asks for
	files    []string
}

// formOf reads the form of a bag of one SQLite file, without gobag's own packages: a strict reader has nothing else to go
// by.
func formOf(dir string) (f form, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "metadata.yaml"))
	if err != nil {
		return f, err
	}
	f.metadata = shape(string(text))
	for _, m := range regexp.MustCompile(`(?m)^ +offered_qos_profiles: (".+")$`).FindAllStringSubmatch(string(text), -1) {
		profiles, err := strconv.Unquote(m[1])
		if err != nil {
			return f, fmt.Errorf("QoS profiles in %s: %w", dir, err)
		}
		for _, line := range shape(profiles) {
			if !slices.Contains(f.qos, line) {
				f.qos = append(f.qos, line)
			}
		}
	}
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return f, err
	}
	for _, path := range all {
		f.files = append(f.files, filepath.Base(path))
		if !strings.HasSuffix(path, ".db3") {
			continue
		}
		tool, err := lab.Tool("sqlite3")
		if err != nil {
			return f, err
		}
		out, err := exec.Command(tool, "-readonly", "-batch", "file:"+path+"?immutable=1",
			"select sql from sqlite_master where name not like 'sqlite_%' and name not like 'gobag_%' order by name; select schema_version from schema").Output()
		if err != nil {
			return f, fmt.Errorf("sqlite3 %s: %w", path, err)
		}
		f.tables = strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	return f, nil
}

// shape reduces YAML to its keys, indented as they are, with N for a number and T for a text as their value, each line
// once; the version stays.
func shape(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		key, value, _ := strings.Cut(line, ": ")
		if _, err := strconv.ParseInt(value, 10, 64); err == nil && strings.TrimSpace(key) != "version" {
			line = key + ": N"
		} else if strings.HasPrefix(value, `"`) {
			line = key + `: "T"`
		} else if value != "" && err != nil && value != "true" && value != "false" {
			line = key + ": T"
		} else if item, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "- "); ok && !strings.Contains(item, ":") {
			line = strings.Repeat(" ", len(line)-len(strings.TrimLeft(line, " "))) + "- T"
		}
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}
