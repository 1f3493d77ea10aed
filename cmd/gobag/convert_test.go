package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// makePlain writes n messages, alternately on /a and /b, 10 ms apart from 1000 s on.
func makePlain(t *testing.T, dir string, n int) {
	t.Helper()
	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var ids []plugin.TopicID
	for _, name := range []string{"/a", "/b"} {
		id, err := w.AddTopic(plugin.Topic{Name: name, Type: "std_msgs/msg/String", TypeHash: "RIHS01_00"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for i := range n {
		m := plugin.Message{Topic: ids[i%2], RecvTime: 1_000_000_000_000 + int64(i)*10_000_000, Data: []byte(fmt.Sprintf("%08d", i))}
		if err := w.Write([]plugin.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// described is the part of info --json that these tests look at.
type described struct {
	Messages int `json:"message_count"`
	Topics   []struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	} `json:"topics"`
	Files       []any  `json:"files"`
	Compression string `json:"compression"`
}

func describe(t *testing.T, dir string) (d described) {
	t.Helper()
	r := cli(nil, "info", dir, "--json")
	if r.code != 0 {
		t.Fatalf("info: %s", r.errOut)
	}
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestConvertFlags(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	makePlain(t, a, 200)
	makePlain(t, b, 100)
	file := filepath.Join(dir, "out.yaml")
	if err := os.WriteFile(file, []byte("output_bags:\n- {uri: "+filepath.Join(dir, "y1")+", all: true}\n- {uri: "+filepath.Join(dir, "y2")+", topics: [/b]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		words    []string
		messages int
		topics   int
	}{
		"copy":    {[]string{a}, 200, 2},
		"merge":   {[]string{a, b}, 300, 2},
		"inputs":  {[]string{"-i", a, "mcap", "-i", b}, 300, 2},
		"topics":  {[]string{a, "--topics", "/a"}, 100, 1},
		"exclude": {[]string{a, "-x", "b$"}, 100, 1},
		"span":    {[]string{a, "--start", "+0.5", "--end", "1001"}, 51, 2},
		"ns":      {[]string{a, "--start", "1001000000000000", "--end", "1970-01-01T00:16:41Z"}, 0, 2},
		"file":    {[]string{a, "--compression-mode", "file"}, 200, 2},
		"message": {[]string{a, "-s", "sqlite3", "--compression-mode", "message", "--compression-format", "zstd", "--compression-threads", "2"}, 200, 2},
		"split":   {[]string{a, "-d", "0.5"}, 200, 2},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(dir, "out-"+name)
			r := cli(nil, append(append([]string{"convert"}, x.words...), "-o", out)...)
			if name == "ns" { // start behind the end
				if r.code != exitUsage || exists(out) {
					t.Errorf("exit %d: %s", r.code, r.errOut)
				}
				return
			}
			if r.code != 0 {
				t.Fatalf("exit %d: %s", r.code, r.errOut)
			}
			d := describe(t, out)
			if d.Messages != x.messages || len(d.Topics) != x.topics {
				t.Errorf("%+v; %s", d, r.out)
			}
			if name == "file" || name == "message" {
				if d.Compression != strings.ToUpper(name)+" zstd" {
					t.Errorf("compression %q", d.Compression)
				}
			}
			if name == "split" && len(d.Files) != 4 {
				t.Errorf("%d files", len(d.Files))
			}
		})
	}
	if r := cli(nil, "convert", a, "-o", file); r.code != 0 || describe(t, filepath.Join(dir, "y1")).Messages != 200 || describe(t, filepath.Join(dir, "y2")).Messages != 100 {
		t.Errorf("exit %d: %s", r.code, r.errOut)
	}
}

func TestConvertUsage(t *testing.T) {
	dir := t.TempDir()
	a, out := filepath.Join(dir, "a"), filepath.Join(dir, "out")
	makePlain(t, a, 10)
	for _, x := range []struct {
		code  int
		want  string
		words []string
	}{
		{exitUsage, "-o is needed", []string{a}},
		{exitUsage, "name a bag", []string{"-o", out}},
		{exitUsage, "tape", []string{a, "-o", out, "-s", "tape"}},
		{exitUsage, "compat", []string{a, "-o", out, "--compat", "foxy"}},
		{exitUsage, "without a compression mode", []string{a, "-o", out, "--compression-format", "zstd"}},
		{exitUsage, "lz4", []string{a, "-o", out, "--compression-mode", "file", "--compression-format", "lz4"}},
		{exitUsage, "negative", []string{a, "-o", out, "--compression-mode", "file", "--compression-queue-size", "-1"}},
		{exitUsage, "not a time", []string{a, "-o", out, "--start", "soon"}},
		{exitUsage, "below", []string{a, "-o", out, "-b", "1000"}},
		{exitUsage, "--topics", []string{a, "-o", "x.yaml", "--topics", "/a"}},
		{exitFailure, "does not exist", []string{filepath.Join(dir, "x"), "-o", out}},
		{exitFailure, "/nowhere", []string{a, "-o", out, "--topics", "/nowhere"}},
		{exitFailure, "already exists", []string{a, "-o", a}},
		{exitFailure, "no such file", []string{a, "-o", "x.yaml"}},
	} {
		r := cli(nil, append([]string{"convert"}, x.words...)...)
		if r.code != x.code || !strings.Contains(r.errOut, x.want) || exists(out) {
			t.Errorf("%v: exit %d, want %d: %s", x.words, r.code, x.code, r.errOut)
		}
	}
}

func TestParseStamp(t *testing.T) {
	base := func() (int64, error) { return 5, nil }
	for text, want := range map[string]int64{"+1.5": 1_500_000_005, "1.000000001": 1_000_000_001, "1700000000000000000": 1_700_000_000_000_000_000,
		"1700000000": 1_700_000_000_000_000_000, "2000-01-01T00:00:00Z": 946_684_800_000_000_000, "-3": -3_000_000_000, "0": 0} {
		if got, err := parseStamp(text, base); got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "1.0000000001", "-1.5", "1e9", "+x", "99999999999", "1.-5"} {
		if got, err := parseStamp(text, base); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
	if got, err := parseStamp("+1", func() (int64, error) { return math.MaxInt64, nil }); got != math.MaxInt64 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}
