//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// checkStorageReaders runs the tests that read our bags with readers that no one here wrote.
func checkStorageReaders(b *bench) error {
	r, err := goTest(b, "./interop", "Reader")
	if err != nil {
		return err
	}
	tests, failed, skipped := r.count(1)
	cases, below, _ := r.count(2)
	b.figure(tests > 0 && failed+below+skipped == 0, "sqlite3, npm, PyPI and C++ readers", "equal content, none is skipped",
		"%d tests with %d cases pass, %d fail, %d skipped", tests, cases, failed+below, skipped)
	return nil
}

// checkStorageFixtures reads every bag of the fixtures in any format and the MCAP conformance files.
func checkStorageFixtures(b *bench) error {
	shared, ok := lab.Shared()
	if !ok {
		return fmt.Errorf("the fixtures are not there: %s", shared)
	}
	if err := checkFixtures(b); err != nil {
		return err
	}
	fixtures := filepath.Join(shared, "fixtures")
	if err := listedBags(b, fixtures); err != nil {
		return err
	}
	if err := publicMCAP(b, fixtures); err != nil {
		return err
	}
	return mcapConformance(b, filepath.Join(fixtures, "bags", "33-mcap-conformance"))
}

var expectedLine = regexp.MustCompile(`^(\S+) recv=(-?\d+) send=(-?\d+) len=(\d+) fnv1a64=([0-9a-f]+)$`)

// listedBags compares every bag that has a list of its messages with that list: topic, stamp, length and hash of each.
func listedBags(b *bench, fixtures string) error {
	lists, err := filepath.Glob(filepath.Join(fixtures, "rosbag2", "bags", "*.expected.txt"))
	if err != nil {
		return err
	}
	good, messages := 0, 0
	for _, list := range lists {
		path := strings.TrimSuffix(list, ".expected.txt")
		n, err := listedBag(b, list, path)
		if err != nil {
			b.note("%s: %v", filepath.Base(path), err)
			continue
		}
		good++
		messages += n
	}
	b.figure(good == len(lists) && good > 0, "bags of rosbag2, every message by its .expected.txt", "all", "%d of %d bags, %d messages", good, len(lists), messages)
	return nil
}

func listedBag(b *bench, list, path string) (int, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return 0, err
	}
	var want []string
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		if m := expectedLine.FindStringSubmatch(s.Text()); m != nil {
			want = append(want, fmt.Sprintf("%s %s %s %s", m[1], m[2], m[4], strings.TrimLeft(m[5], "0")))
		}
	}
	copied, err := copyFixture(b, path)
	if err != nil {
		return 0, err
	}
	var got []string
	if err := lab.EachMessage(copied, func(t plugin.Topic, m *plugin.Message) error {
		got = append(got, fmt.Sprintf("%s %d %d %x", t.Name, m.RecvTime, len(m.Data), plugintest.ListedSum(m.Data)))
		return nil
	}); err != nil {
		return 0, err
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) == 0 || len(got) != len(want) {
		return 0, fmt.Errorf("%d messages, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			return 0, fmt.Errorf("message %q, want %q", got[i], want[i])
		}
	}
	return len(want), nil
}

func copyFixture(b *bench, path string) (string, error) {
	dir, err := b.dir("fixture")
	if err != nil {
		return "", err
	}
	copied := filepath.Join(dir, filepath.Base(path))
	return copied, copyTree(path, copied)
}

var (
	mcapFileLine  = regexp.MustCompile(`^\* \./[^/]+/(\S+\.mcap)$`)
	mcapCountLine = regexp.MustCompile(`^  counted messages=(\d+) `)
)

// publicMCAP opens every MCAP file of the fixtures whose README counts its messages.
func publicMCAP(b *bench, fixtures string) error {
	readmes, err := filepath.Glob(filepath.Join(fixtures, "bags", "*", "README.md"))
	if err != nil {
		return err
	}
	good, all := 0, 0
	for _, readme := range readmes {
		text, err := os.ReadFile(readme)
		if err != nil {
			return err
		}
		file := ""
		for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
			if m := mcapFileLine.FindStringSubmatch(s.Text()); m != nil {
				file = filepath.Join(filepath.Dir(readme), m[1])
			}
			m := mcapCountLine.FindStringSubmatch(s.Text())
			if m == nil || file == "" {
				continue
			}
			all++
			want, _ := strconv.Atoi(m[1])
			lines, err := lab.ReadOwn(file)
			if err == nil && len(lines) != want {
				err = fmt.Errorf("%d messages, want %d", len(lines), want)
			}
			if err != nil {
				b.note("%s: %v", file, err)
			} else {
				good++
			}
			file = ""
		}
	}
	b.figure(good == all && all > 0, "MCAP files of the fixtures", "all have the messages that their README counts", "%d of %d", good, all)
	return nil
}

// mcapConformance compares the messages of every conformance file with the JSON beside it.
func mcapConformance(b *bench, dir string) error {
	if missing(b, "mcap") {
		return nil
	}
	d, err := plugin.Lookup("mcap")
	if err != nil {
		return err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.mcap"))
	if err != nil {
		return err
	}
	good, all := 0, len(paths)
	why := map[string]int{}
	for _, path := range paths {
		if err := conformanceFile(b.ctx, d, path); err != nil {
			why[strings.ReplaceAll(err.Error(), path, "FILE")]++
			continue
		}
		good++
	}
	for text, n := range why {
		b.note("%d conformance files: %s", n, text)
	}
	b.figure(all == 416 && good == all, "MCAP conformance files", "416 give the messages of their .json", "%d of %d", good, all)
	return nil
}

// conformanceFile reads one file and compares stamps, sequence numbers and payloads.
func conformanceFile(ctx context.Context, d plugin.Driver, path string) error {
	text, err := os.ReadFile(strings.TrimSuffix(path, ".mcap") + ".json")
	if err != nil {
		return err
	}
	var described struct {
		Records []struct {
			Type   string
			Fields [][2]any
		}
	}
	if err := json.Unmarshal(text, &described); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var want []string
	for _, r := range described.Records {
		if r.Type != "Message" {
			continue
		}
		f := map[string]any{}
		for _, pair := range r.Fields {
			name, _ := pair[0].(string)
			f[name] = pair[1]
		}
		data, _ := f["data"].([]any)
		want = append(want, fmt.Sprint(f["log_time"], " ", f["publish_time"], " ", f["sequence"], " ", data))
	}
	// A storage reads by ascending stamps, a file need not have them so.
	slices.SortStableFunc(want, func(a, b string) int {
		x, _ := strconv.ParseInt(strings.Fields(a)[0], 10, 64)
		y, _ := strconv.ParseInt(strings.Fields(b)[0], 10, 64)
		return cmp.Compare(x, y)
	})
	reader, err := d.OpenReader(ctx, path, plugin.ReadOptions{})
	if err != nil {
		return err
	}
	defer reader.Close()
	it, err := reader.Messages(plugin.Query{})
	if err != nil {
		return err
	}
	defer it.Close()
	var got []string
	for {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		got = append(got, fmt.Sprint(m.RecvTime, " ", m.SendTime, " ", m.Seq, " ", m.Data))
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: messages %q, want %q", path, got, want)
	}
	return nil
}

// checkRoundTrips converts a bag from each format to each other and back, and compares field by field.
func checkRoundTrips(b *bench) error {
	scratch, err := b.dir("roundtrip")
	if err != nil {
		return err
	}
	names := formats(b)
	for _, x := range names {
		first := filepath.Join(scratch, x)
		if err := oddBag(b.ctx, first, x); err != nil {
			return err
		}
		for _, y := range names {
			name := fmt.Sprintf("%s → %s → %s", x, y, x)
			there, back := filepath.Join(scratch, x+"-"+y), filepath.Join(scratch, x+"-"+y+"-"+x)
			err := errors.Join(convertBag(b, first, there, y), convertBag(b, there, back, x))
			n, diff := 0, ""
			if err == nil {
				n, diff, err = sameBags(first, back)
			}
			if err != nil {
				b.figure(false, name, "equal field by field", "%s", firstLine(err.Error()))
				continue
			}
			b.figure(diff == "" && n > 0, name, "equal field by field", "%d messages %s", n, diff)
		}
	}
	return nil
}

func convertBag(b *bench, from, to, format string) error {
	if out, err := exec.CommandContext(b.ctx, b.gobag.Path, "convert", from, "-s", format, "-o", to).CombinedOutput(); err != nil {
		return fmt.Errorf("convert to %s: %w: %s", format, err, lastLine(string(out)))
	}
	return nil
}

// oddBag writes a bag with what formats trip over: equal stamps, stamps out of order, extreme ones, empty and large
// payloads, sources, definitions, a topic without messages.
func oddBag(ctx context.Context, dir, format string) error {
	w, err := bag.Create(ctx, dir, bag.WriterOptions{StorageID: format})
	if err != nil {
		return err
	}
	var ids []plugin.TopicID
	for i := range 4 {
		id, err := w.AddTopic(plugin.Topic{Name: fmt.Sprintf("/t%d", i), Type: "a_msgs/msg/B", SerializationFormat: "cdr",
			OfferedQoS: "- history: 3\n  depth: 0\n  reliability: 1\n  durability: 2\n", TypeHash: "RIHS01_" + strings.Repeat("0f", 32),
			Definition: plugin.Definition{Encoding: "ros2msg", Text: "byte[] data\n"}, Sources: []string{"01.02.03", "04.05.06"}})
		if err != nil {
			return errors.Join(err, w.Close())
		}
		ids = append(ids, id)
	}
	const base = int64(1_700_000_000_000_000_000)
	stamps := []int64{base, base, base + 5, base + 3, 1, base, base + 1e9, base + 7, base + 7}
	for i := range 900 {
		size := []int{0, 4, 5, 100, 3000, 70_000}[i%6]
		m := plugin.Message{Topic: ids[i%3], RecvTime: stamps[i%len(stamps)] + int64(i/90), SendTime: base - int64(i), Source: uint32(i%3%2 + 1),
			Seq: uint64(i + 1), Order: uint64(i*2 + 1), Data: bytes.Repeat([]byte{0, 1, byte(i), byte(i >> 8)}, size/4+1)[:size]}
		if err := w.Write([]plugin.Message{m}); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// sameBags compares two bags field by field; diff says where they differ first.
func sameBags(x, y string) (n int, diff string, err error) {
	a, err := fieldsOf(x)
	if err != nil {
		return 0, "", err
	}
	c, err := fieldsOf(y)
	if err != nil {
		return 0, "", err
	}
	for i := range min(len(a), len(c)) {
		if a[i] != c[i] {
			return len(a), fmt.Sprintf("but number %d was %.120s and is %.120s", i, a[i], c[i]), nil
		}
	}
	if len(a) != len(c) {
		return len(a), fmt.Sprintf("but there are %d", len(c)), nil
	}
	return len(a), "", nil
}

// fieldsOf is a line for each topic and each message of a bag, in the bag's order. Order is left out where it only numbers:
// what it decides is the order of the lines.
func fieldsOf(dir string) ([]string, error) {
	r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{})
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, t := range r.Info().Topics {
		lines = append(lines, fmt.Sprintf("%s %s %s %q %s %q %d", t.Name, t.Type, t.SerializationFormat, t.OfferedQoS, t.TypeHash, t.Definition, t.Count))
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	slices.Sort(lines)
	err = lab.EachMessage(dir, func(t plugin.Topic, m *plugin.Message) error {
		source := ""
		if m.Source > 0 && int(m.Source) <= len(t.Sources) {
			source = t.Sources[m.Source-1]
		}
		lines = append(lines, fmt.Sprintf("%s %d %d %s %d %d %x", t.Name, m.RecvTime, m.SendTime, source, m.Seq, len(m.Data), lab.FNV1a(m.Data)))
		return nil
	})
	return lines, err
}
