package plugintest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// ReadAll returns every message of a query, with payloads of their own. Beside an error it returns what was read until
// then.
func ReadAll(r plugin.Reader, q plugin.Query) ([]plugin.Message, error) {
	it, err := r.Messages(q)
	if err != nil {
		return nil, err
	}
	var ms []plugin.Message
	for {
		var m plugin.Message
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return ms, it.Close()
		} else if err != nil {
			return ms, errors.Join(err, it.Close())
		}
		m.Data = bytes.Clone(m.Data)
		ms = append(ms, m)
	}
}

// Shared returns a directory of the fixtures that are kept outside of this repository: in GOBAG_SHARED, by default the
// directory shared beside the module. Where it is not there, the test is skipped.
func Shared(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("GOBAG_SHARED")
	if root == "" {
		module, err := moduleRoot()
		if err != nil {
			t.Skipf("no shared fixtures: %v", err)
		}
		root = filepath.Join(module, "..", "shared")
	}
	dir := filepath.Join(root, "fixtures", filepath.FromSlash(name))
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no shared fixtures: %v", err)
	}
	return dir
}

// moduleRoot is the folder of go.mod above the working directory, which for a test is that of its package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
	return "", err
}

// Listed is a bag of rosbag2 with what the real rosbag2 reads of it: a line for each message.
type Listed struct {
	Files []string // its storages, in the order of their numbers
	list  string   // path of the .expected.txt beside it
}

// EachListed runs f as a subtest with every listed bag of the shared fixtures whose storages have the extension ext, and
// fails if there are fewer than least.
func EachListed(t *testing.T, ext string, least int, f func(t *testing.T, bag Listed)) {
	t.Helper()
	n := 0
	for _, sub := range []string{"rosbag2/bags", "rosbag2/fastrtps/bags"} {
		lists, err := filepath.Glob(filepath.Join(Shared(t, sub), "*"+expectedSuffix))
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range lists {
			bag := strings.TrimSuffix(list, expectedSuffix)
			files, err := filepath.Glob(filepath.Join(bag, "*"+ext))
			if err != nil {
				t.Fatal(err)
			}
			if len(files) == 0 {
				continue
			}
			n++
			slices.SortFunc(files, func(a, b string) int { return cmp.Compare(fileNumber(a, ext), fileNumber(b, ext)) })
			t.Run(filepath.Base(bag), func(t *testing.T) { f(t, Listed{Files: files, list: list}) })
		}
	}
	if n < least {
		t.Errorf("only %d bags found", n)
	}
}

const expectedSuffix = ".expected.txt"

// fileNumber is the N of x_N.db3.
func fileNumber(path, ext string) int {
	s := strings.TrimSuffix(filepath.Base(path), ext)
	n, _ := strconv.Atoi(s[strings.LastIndex(s, "_")+1:])
	return n
}

// Compare compares the messages of the bag's storages with the list: topic, stamps, length and hash of each, in order.
// Of payloads that are compressed one by one, which a storage does not undo, length and hash are left out. open returns a
// reader that the test closes.
func (l Listed) Compare(t *testing.T, open func(t *testing.T, path string) plugin.Reader) {
	t.Helper()
	text, err := os.ReadFile(l.list)
	if err != nil {
		t.Fatal(err)
	}
	payloads := !strings.Contains(l.list, "zstd_message")
	var got, want []string
	for _, f := range l.Files {
		r := open(t, f)
		names := map[plugin.TopicID]string{}
		for _, ti := range r.Info().Topics {
			names[ti.ID] = ti.Name
		}
		ms, err := ReadAll(r, plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			line := fmt.Sprintf("%s recv=%d send=%d", names[m.Topic], m.RecvTime, m.SendTime)
			if payloads {
				line += fmt.Sprintf(" len=%d fnv1a64=%016x", len(m.Data), ListedSum(m.Data))
			}
			got = append(got, line)
		}
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "read ") {
			continue // how long it took
		}
		if !payloads {
			line, _, _ = strings.Cut(line, " len=")
		}
		want = append(want, line)
	}
	if strings.Contains(l.list, "fastwrite") { // there the real reader gives the order of the file
		slices.Sort(got)
		slices.Sort(want)
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Fatalf("message %d of %d: got\n%s\nwant\n%s", i+1, len(got), append(got, "nothing")[min(i, len(got))], want[i])
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d messages, want %d", len(got), len(want))
	}
}

// ListedSum is the hash in the lists: FNV-1a with the starting value of the program that wrote them, one digit short of
// the usual one.
func ListedSum(b []byte) uint64 {
	h := uint64(1469598103934665603)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
