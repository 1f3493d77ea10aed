package mcap

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

func open(t *testing.T, path string) plugin.Reader {
	t.Helper()
	r, err := Driver{}.OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

var (
	readmeFile    = regexp.MustCompile(`^\* \./[^/]+/(.+\.mcap)$`)
	readmeCount   = regexp.MustCompile(`^  counted messages=(\d+) log time (\d+)\.\.(\d+) `)
	readmeSchema  = regexp.MustCompile(`^   schema (\d+) (.*) enc='.*' len=\d+$`)
	readmeChannel = regexp.MustCompile(`^   channel \d+ (.*) schema=(\d+) enc='(.*)' n=(\d+) `)
	readmeMore    = regexp.MustCompile(`^   \.\.\. (\d+) more channels`)
)

type readmeEntry struct {
	count    string // messages, first and last stamp
	topics   map[string]int
	channels int
}

// readmeBags returns what the README of a fixture, measured with another program, says of each of its files.
func readmeBags(t *testing.T, path string) map[string]*readmeEntry {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*readmeEntry{}
	var e *readmeEntry
	schemas := map[string]string{}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		if m := readmeFile.FindStringSubmatch(line); m != nil {
			e = &readmeEntry{topics: map[string]int{}}
			files[m[1]], schemas = e, map[string]string{}
		} else if strings.HasPrefix(line, "* ") {
			e = nil
		} else if e == nil {
			continue
		} else if m := readmeCount.FindStringSubmatch(line); m != nil {
			e.count = strings.Join(m[1:], " ")
		} else if m := readmeSchema.FindStringSubmatch(line); m != nil {
			schemas[m[1]] = m[2]
		} else if m := readmeChannel.FindStringSubmatch(line); m != nil {
			var n, more int
			_, _ = fmt.Sscan(m[4], &n)
			_, _ = fmt.Sscan(m[2], &more)
			typ := schemas[m[2]]
			e.topics[m[1]+" "+typ+" "+m[3]] += n
			e.channels++
		} else if m := readmeMore.FindStringSubmatch(line); m != nil {
			var n int
			_, _ = fmt.Sscan(m[1], &n)
			e.channels += n
		}
	}
	return files
}

func TestFixtureBags(t *testing.T) {
	dir := plugintest.Shared(t, "bags")
	readmes, err := filepath.Glob(filepath.Join(dir, "*", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, readme := range readmes {
		if strings.Contains(readme, "33-mcap") {
			continue
		}
		for file, want := range readmeBags(t, readme) {
			n++
			t.Run(filepath.Base(filepath.Dir(readme))+"/"+file, func(t *testing.T) {
				r := open(t, filepath.Join(filepath.Dir(readme), file))
				info := r.Info()
				if got := fmt.Sprint(info.Messages, " ", info.Start, " ", info.End); got != want.count {
					t.Errorf("%s, want %s", got, want.count)
				}
				if len(info.Topics) != want.channels || info.Unclean {
					t.Errorf("%d topics, want %d; unclean %v %q", len(info.Topics), want.channels, info.Unclean, info.Warnings)
				}
				got := map[string]int{}
				for _, ti := range info.Topics {
					got[ti.Name+" "+ti.Type+" "+ti.SerializationFormat] = int(ti.Count)
				}
				for k, n := range want.topics {
					if g, ok := got[k]; (!ok || g != n) && !strings.Contains(k, "  ") {
						t.Errorf("%s: %d messages (there: %v), want %d", k, g, ok, n)
					}
				}
				checkRead(t, r)
			})
		}
	}
	if n < 15 {
		t.Errorf("only %d files found", n)
	}
}

// checkRead reads all of a file in several ways, and compares with Info.
func checkRead(t *testing.T, r plugin.Reader) {
	t.Helper()
	info := r.Info()
	ms, err := plugintest.ReadAll(r, plugin.Query{})
	if err != nil || uint64(len(ms)) != info.Messages {
		t.Fatalf("%d messages, info %d, %v", len(ms), info.Messages, err)
	}
	if !sort.SliceIsSorted(ms, func(i, k int) bool {
		return ms[i].RecvTime < ms[k].RecvTime || ms[i].RecvTime == ms[k].RecvTime && ms[i].Order < ms[k].Order
	}) {
		t.Error("out of order")
	}
	back, err := plugintest.ReadAll(r, plugin.Query{Reverse: true})
	if err != nil || len(back) != len(ms) {
		t.Fatalf("backwards: %d messages, %v", len(back), err)
	}
	for i := range back {
		if !plugintest.SameMessage(&back[i], &ms[len(ms)-1-i]) {
			t.Fatalf("backwards, message %d: %+v", i, back[i])
		}
	}
	for _, ti := range info.Topics {
		some, err := plugintest.ReadAll(r, plugin.Query{Topics: []plugin.TopicID{ti.ID}})
		bytes := int64(0)
		for _, m := range some {
			bytes += int64(len(m.Data))
		}
		if err != nil || uint64(len(some)) != ti.Count || ti.Bytes != bytes {
			t.Errorf("%s: %d messages of %d bytes, want %d of %d, %v", ti.Name, len(some), bytes, ti.Count, ti.Bytes, err)
		}
	}
}

// TestFixtureMessages compares every message of the bags made with the real rosbag2 with what the real reader says.
func TestFixtureMessages(t *testing.T) {
	plugintest.EachListed(t, ".mcap", 4, func(t *testing.T, bag plugintest.Listed) { bag.Compare(t, open) })
}

func TestFixtureKilled(t *testing.T) {
	dir := plugintest.Shared(t, "rosbag2/bags")
	r := open(t, filepath.Join(dir, "jazzy_mcap_killed_chunks", "k_0.mcap"))
	if i := r.Info(); i.Messages != 776 || !i.Unclean || len(i.Warnings) == 0 {
		t.Errorf("%+v", i)
	}
	checkRead(t, r)
	if _, err := (Driver{}).OpenReader(context.Background(), filepath.Join(dir, "jazzy_mcap_killed", "jazzy_mcap_killed_0.mcap"), plugin.ReadOptions{}); !errors.Is(err, plugin.ErrFormat) {
		t.Errorf("an empty file: %v", err)
	}
}

func TestFixtureEras(t *testing.T) {
	n := 0
	err := filepath.WalkDir(plugintest.Shared(t, "rosbag2/era"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".mcap" {
			n++
			checkRead(t, open(t, path))
		}
		return err
	})
	if err != nil || n < 20 {
		t.Error(n, err)
	}
}

// TestMCAPConformance reads the conformance files of the MCAP project: each has a description of its records beside it.
func TestMCAPConformance(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(plugintest.Shared(t, "bags/33-mcap-conformance"), "*", "*.mcap"))
	if err != nil || len(files) != 416 {
		t.Fatal(len(files), err)
	}
	for _, f := range files {
		want := conformanceMessages(t, strings.TrimSuffix(f, ".mcap")+".json")
		r := open(t, f)
		info := r.Info()
		var got []string
		ms, err := plugintest.ReadAll(r, plugin.Query{})
		if err != nil || info.Unclean {
			t.Errorf("%s: %v, unclean %v %q", filepath.Base(f), err, info.Unclean, info.Warnings)
		}
		for _, m := range ms {
			tp := info.Topics[m.Topic-1]
			got = append(got, fmt.Sprint(tp.Name, " ", tp.Type, " ", tp.SerializationFormat, " ", tp.Definition.Encoding, " ", []byte(tp.Definition.Text), " ", m.RecvTime, " ", m.SendTime, " ", m.Seq, " ", m.Data))
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") || info.Messages != uint64(len(want)) {
			t.Errorf("%s: got\n%s\nwant\n%s", filepath.Base(f), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func conformanceMessages(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Records []struct {
			Type   string
			Fields [][]any
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	schemas, channels := map[string]map[string]any{}, map[string]map[string]any{}
	type stamped struct {
		at   int64
		line string
	}
	var out []stamped
	for _, rec := range doc.Records {
		f := map[string]any{}
		for _, p := range rec.Fields {
			f[p[0].(string)] = p[1]
		}
		switch rec.Type {
		case "Schema":
			schemas[f["id"].(string)] = f
		case "Channel":
			channels[f["id"].(string)] = f
		case "Message":
			c := channels[f["channel_id"].(string)]
			s := schemas[c["schema_id"].(string)]
			name, encoding, data := "", "", any([]byte{})
			if s != nil {
				name, encoding, data = s["name"].(string), s["encoding"].(string), s["data"]
			}
			at, err := strconv.ParseInt(f["log_time"].(string), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, stamped{at, fmt.Sprint(c["topic"], " ", name, " ", c["message_encoding"], " ", encoding, " ", data, " ", f["log_time"], " ", f["publish_time"], " ", f["sequence"], " ", f["data"])})
		}
	}
	slices.SortStableFunc(out, func(a, b stamped) int { return cmp.Compare(a.at, b.at) })
	lines := make([]string, len(out))
	for i := range out {
		lines[i] = out[i].line
	}
	return lines
}
