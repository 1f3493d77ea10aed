//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/interop/lab"
)

// checkReaders records some seconds, split into files, and reads the bag with three readers.
func checkReaders(b *bench) error {
	topics := []lab.Topic{
		{Kind: lab.String, Name: "/chatter", Hz: 100},
		{Kind: lab.Imu, Name: "/imu", Hz: 200},
		{Kind: lab.Image, Name: "/camera/image", Hz: 5, Size: 1 << 20},
		{Kind: lab.String, Name: "/latched", Count: 5, TransientLocal: true, Depth: 10, Early: true},
	}
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	scratch, err := b.dir("readers")
	if err != nil {
		return err
	}
	dir := filepath.Join(scratch, "bag")
	rec, err := b.gobag.Record(n, dir, topics, "-d", "2", "-s", "sqlite3", "--repeat-all-transient-local", "0")
	if err != nil {
		return err
	}
	defer rec.Kill()
	pub, err := n.PublishAs(b.peer, topics, "--seconds", "6", "--wait", "1")
	if err != nil {
		return err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(40*time.Second), rec.Stop(30*time.Second)); err != nil {
		return err
	}
	own, err := lab.ReadOwn(dir)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		name string
		read func(string) ([]lab.Line, error)
	}{{"sqlite3", lab.ReadSQLite}, {"@foxglove/rosbag2", lab.ReadNode}} {
		theirs, err := r.read(dir)
		if err != nil {
			return err
		}
		same := lab.SameLines("gobag", own, r.name, theirs)
		if same != nil {
			b.note("%v", same)
		}
		b.figure(same == nil && len(own) > 0, r.name, "same topics, types, counts, stamps and payloads as gobag reads", "%d messages, gobag %d",
			len(theirs), len(own))
	}
	return nil
}

// fixture is a SQLite bag or file with the messages it must have.
type fixture struct {
	path  string
	want  map[string]int64 // by topic, where it is known
	total int64
}

// checkFixtures opens copies of every SQLite bag of the shared fixtures.
func checkFixtures(b *bench) error {
	shared, ok := lab.Shared()
	if !ok {
		return fmt.Errorf("the fixtures are not there: %s", shared)
	}
	var all []fixture
	for _, find := range []func(string) ([]fixture, error){publicBags, rosbag2Bags} {
		found, err := find(filepath.Join(shared, "fixtures"))
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	good := 0
	for _, f := range all {
		dir, err := b.dir("fixture")
		if err != nil {
			return err
		}
		copied := filepath.Join(dir, filepath.Base(f.path))
		if err := copyTree(f.path, copied); err != nil {
			return err
		}
		if err := openFixture(b, copied, f); err != nil {
			b.note("%s: %v", filepath.Base(f.path), err)
			continue
		}
		good++
	}
	b.figure(good == len(all) && good > 0, "SQLite bags of the fixtures", "all open with the counts of their README or .expected.txt",
		"%d of %d", good, len(all))
	return nil
}

func openFixture(b *bench, path string, f fixture) error {
	info, err := b.gobag.Info(path)
	if err != nil {
		return err
	}
	if info.StorageIdentifier != "sqlite3" {
		return fmt.Errorf("storage identifier %q, want sqlite3", info.StorageIdentifier)
	}
	if info.MessageCount != f.total {
		return fmt.Errorf("%d messages, want %d", info.MessageCount, f.total)
	}
	for topic, n := range f.want {
		if got := info.Topic(topic).Count; got != n {
			return fmt.Errorf("%s: %d messages, want %d", topic, got, n)
		}
	}
	lines, err := lab.ReadOwn(path)
	if err != nil {
		return err
	}
	if int64(len(lines)) != f.total {
		return fmt.Errorf("reading gives %d messages, want %d", len(lines), f.total)
	}
	return nil
}

var (
	fileLine  = regexp.MustCompile(`^\* \./[^/]+/(\S+\.db3)$`)
	totalLine = regexp.MustCompile(`^  topics=\d+ messages=(\d+)$`)
	topicLine = regexp.MustCompile(`^   - id=\d+ (\S+) \[\S+\] \S+ n=(\d+) `)
)

// publicBags finds the SQLite bags of fixtures/bags: every file by itself, and every directory with a metadata.yaml as
// the sum of the files that it names.
func publicBags(fixtures string) ([]fixture, error) {
	readmes, err := filepath.Glob(filepath.Join(fixtures, "bags", "*", "README.md"))
	if err != nil {
		return nil, err
	}
	var all []fixture
	for _, readme := range readmes {
		dir := filepath.Dir(readme)
		files, err := measuredFiles(readme)
		if err != nil {
			return nil, err
		}
		byName := map[string]fixture{}
		for _, f := range files {
			byName[filepath.Base(f.path)] = f
			all = append(all, f)
		}
		text, err := os.ReadFile(filepath.Join(dir, "metadata.yaml"))
		if err != nil { // loose files, or a bag that lost its metadata
			if sum, ok := addFiles(dir, files); ok && len(files) > 1 {
				all = append(all, sum)
			}
			continue
		}
		meta, err := bag.ParseMetadata(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		if meta.StorageIdentifier != "sqlite3" {
			continue
		}
		var named []fixture
		for _, path := range meta.Paths {
			if f, ok := byName[filepath.Base(path)]; ok {
				named = append(named, f)
			}
		}
		sum, ok := addFiles(dir, named)
		if !ok { // compressed files: the README gives what metadata.yaml declares
			sum = fixture{path: dir, total: int64(meta.MessageCount)}
		}
		all = append(all, sum)
	}
	return all, nil
}

// measuredFiles reads a README's measured contents of its .db3 files.
func measuredFiles(readme string) ([]fixture, error) {
	text, err := os.ReadFile(readme)
	if err != nil {
		return nil, err
	}
	var files []fixture
	var current *fixture
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		line := s.Text()
		if strings.HasPrefix(line, "* ") {
			current = nil
			if m := fileLine.FindStringSubmatch(line); m != nil {
				files = append(files, fixture{path: filepath.Join(filepath.Dir(readme), m[1]), want: map[string]int64{}})
				current = &files[len(files)-1]
			}
			continue
		}
		if current == nil {
			continue
		}
		if m := totalLine.FindStringSubmatch(line); m != nil {
			current.total, _ = strconv.ParseInt(m[1], 10, 64)
		}
		if m := topicLine.FindStringSubmatch(line); m != nil {
			current.want[m[1]], _ = strconv.ParseInt(m[2], 10, 64)
		}
	}
	return files, nil
}

func addFiles(dir string, files []fixture) (sum fixture, ok bool) {
	sum = fixture{path: dir, want: map[string]int64{}}
	for _, f := range files {
		sum.total += f.total
		for topic, n := range f.want {
			sum.want[topic] += n
		}
	}
	return sum, len(files) > 0
}

// rosbag2Bags finds the SQLite bags of fixtures/rosbag2/bags with the list of their messages.
func rosbag2Bags(fixtures string) ([]fixture, error) {
	lists, err := filepath.Glob(filepath.Join(fixtures, "rosbag2", "bags", "*sqlite3*.expected.txt"))
	if err != nil {
		return nil, err
	}
	var all []fixture
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			return nil, err
		}
		f := fixture{path: strings.TrimSuffix(list, ".expected.txt"), want: map[string]int64{}}
		for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
			if topic, rest, ok := strings.Cut(s.Text(), " recv="); ok && strings.Contains(rest, " fnv1a64=") {
				f.want[topic]++
				f.total++
			}
		}
		all = append(all, f)
	}
	return all, nil
}

// copyTree copies a file or a directory: SQLite may write beside what it opens.
func copyTree(from, to string) error {
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
