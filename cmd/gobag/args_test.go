package main

import (
	"bytes"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func testRoot() (*cobra.Command, *[]string, *[]string, *[]string) {
	var topics, pairs, words []string
	var rate, output string
	var loop bool
	root := &cobra.Command{Use: "gobag", SilenceErrors: true, SilenceUsage: true}
	cmd := &cobra.Command{Use: "play", RunE: func(_ *cobra.Command, ws []string) error {
		words = ws
		return nil
	}}
	listFlag(cmd.Flags(), &topics, "topics", "t", "", true)
	listFlag(cmd.Flags(), &pairs, "remap", "m", "", false)
	cmd.Flags().StringVarP(&rate, "rate", "r", "", "")
	cmd.Flags().StringVarP(&output, "output", "o", "", "")
	cmd.Flags().BoolVarP(&loop, "loop", "l", false, "")
	root.AddCommand(cmd, &cobra.Command{Use: "record", Run: func(*cobra.Command, []string) {}})
	return root, &topics, &pairs, &words
}

func TestListFlags(t *testing.T) {
	for _, c := range []struct {
		in                   string
		topics, pairs, words []string
	}{
		{"play bag --topics /a /b", []string{"/a", "/b"}, nil, []string{"bag"}},
		{"play bag --topics /a,/b", []string{"/a", "/b"}, nil, []string{"bag"}},
		{"play bag --topics /a --topics /b", []string{"/a", "/b"}, nil, []string{"bag"}},
		{"play bag --topics=/a /b", []string{"/a"}, nil, []string{"bag", "/b"}},
		{"play bag --topics /a /b --loop", []string{"/a", "/b"}, nil, []string{"bag"}},
		{"play bag -t /a /b -l", []string{"/a", "/b"}, nil, []string{"bag"}},
		{"play bag -t/a", []string{"/a"}, nil, []string{"bag"}},
		{"play --topics /a /b -- bag", []string{"/a", "/b"}, nil, []string{"bag"}},
		{"play --topics /a bag", []string{"/a", "bag"}, nil, nil},
		{"play bag -m a:=b c:=d -r 2", nil, []string{"a:=b", "c:=d"}, []string{"bag"}},
		{"play bag --remap k=1,2", nil, []string{"k=1,2"}, []string{"bag"}},
		{"play bag -r -1 --topics /a", []string{"/a"}, nil, []string{"bag"}},
		{"play bag -o record --topics /a", []string{"/a"}, nil, []string{"bag"}}, // a value that is named like a verb
		{"play -l bag", nil, nil, []string{"bag"}},
		{"play bag --topics -", []string{"-"}, nil, []string{"bag"}},
	} {
		root, topics, pairs, words := testRoot()
		root.SetArgs(expandLists(root, strings.Fields(c.in)))
		if err := root.Execute(); err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if !equal(*topics, c.topics) || !equal(*pairs, c.pairs) || !equal(*words, c.words) {
			t.Errorf("%s: topics %q pairs %q words %q", c.in, *topics, *pairs, *words)
		}
	}
}

func equal(a, b []string) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }

func TestListFlagErrors(t *testing.T) {
	for _, in := range []string{"play bag --topics", "play bag --topics -l", "play bag --topics --", "play bag --nonsense /a"} {
		root, _, _, _ := testRoot()
		root.SetArgs(expandLists(root, strings.Fields(in)))
		root.SetOut(io.Discard)
		root.SetErr(io.Discard)
		if err := root.Execute(); err == nil {
			t.Errorf("%s: accepted", in)
		}
	}
}

func TestSpans(t *testing.T) {
	for in, want := range map[string]time.Duration{"30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "0": 0, "90s": 90 * time.Second, "5m": 5 * time.Minute, "1e3": 1000 * time.Second} {
		var v secondsValue
		if err := v.Set(in); err != nil || time.Duration(v) != want {
			t.Errorf("%q: %v, %v", in, time.Duration(v), err)
		}
	}
	var ms millisValue
	if err := ms.Set("250"); err != nil || time.Duration(ms) != 250*time.Millisecond {
		t.Errorf("250 ms: %v, %v", time.Duration(ms), err)
	}
	for _, in := range []string{"", "x", "-1", "-1s", "NaN", "Inf", "1e300", "5 parsecs"} {
		var v secondsValue
		if err := v.Set(in); err == nil {
			t.Errorf("%q accepted as %v", in, time.Duration(v))
		}
	}
}

func TestBytes(t *testing.T) {
	for in, want := range map[string]int64{"0": 0, "1000000": 1000000, "1MB": 1e6, "1MiB": 1 << 20, "1.5 GiB": 3 << 29, "9223372036854775807": 1<<63 - 1, "10k": 10000, "7b": 7} {
		if n, err := parseBytes(in); err != nil || n != want {
			t.Errorf("%q: %d, %v", in, n, err)
		}
	}
	for _, in := range []string{"", "MB", "-1", "1 PB", "9223372036854775808", "1e30GB", "0x10", "1 2", "NaN"} {
		if n, err := parseBytes(in); err == nil {
			t.Errorf("%q accepted as %d", in, n)
		}
	}
}

func TestPairs(t *testing.T) {
	got := parsePairs([]string{"a=1", "b", "c=x=y", "a=2"})
	if want := map[string]string{"a": "2", "b": "", "c": "x=y"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	if p, err := parsePriorities([]string{"/imu=10", "/cam=-1"}); err != nil || p["/imu"] != 10 || p["/cam"] != -1 {
		t.Errorf("%v, %v", p, err)
	}
	for _, w := range []string{"/imu", "/imu=", "/imu=x", "=1"} {
		if _, err := parsePriorities([]string{w}); err == nil {
			t.Errorf("priority %q accepted", w)
		}
	}
	if m, err := parseThrottles([]string{"/imu=10", "cam=0.5"}); err != nil || m["/imu"] != 10 || m["cam"] != 0.5 {
		t.Errorf("%v, %v", m, err)
	}
	for _, w := range []string{"/imu", "/imu=", "/imu=x", "=1", "/imu=0", "/imu=-1", "/imu=NaN", "/imu=1e9"} {
		if _, err := parseThrottles([]string{w}); err == nil {
			t.Errorf("throttle %q accepted", w)
		}
	}
}

func TestConsole(t *testing.T) {
	var b bytes.Buffer
	c := newConsole(&b, false)
	c.SetStatus("12 messages")
	io.WriteString(c, "line\n")
	c.Close()
	if b.String() != "line\n" {
		t.Errorf("without a terminal: %q", b.String())
	}
	b.Reset()
	c = newConsole(&b, true)
	c.width = func() int { return 10 }
	c.SetStatus("0123456789abc")
	io.WriteString(c, "line\n")
	c.Close()
	if want := "012345678\r\x1b[Kline\n012345678\r\x1b[K"; b.String() != want {
		t.Errorf("terminal: %q", b.String())
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{"/a/b": "/a/b", "/ü": "/ü", "/\xff\xfe": `/\xff\xfe`, "a\x1b[2Jb": `a\x1b[2Jb`, "a\nb": `a\nb`, "\u200b": `\u200b`} {
		if got := printable(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 50: "3072.0 TiB"} {
		if got := fileSize(n); got != want {
			t.Errorf("size %d: %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{0: "0.000000000s", 1: "0.000000001s", -1500000000: "-1.500000000s", 1<<63 - 1: "9223372036.854775807s", -1 << 63: "-9223372036.854775808s"} {
		if got := durationSeconds(d); got != want {
			t.Errorf("duration %d: %s", d, got)
		}
	}
	for ns, want := range map[int64]string{
		0:                   "Jan  1 1970 00:00:00.000000000 (0.000000000)",
		1796041461838582078: "Nov 30 2026 12:24:21.838582078 (1796041461.838582078)",
		-1:                  "Dec 31 1969 23:59:59.999999999 (-0.000000001)",
	} {
		if got := timePoint(ns, time.UTC); got != want {
			t.Errorf("time %d: %s", ns, got)
		}
	}
	for _, c := range []struct {
		part, whole uint64
		want        string
	}{{0, 0, "-"}, {1, 1, "100.00 %"}, {999999, 1000000, "99.99 %"}, {0, 5, "0.00 %"}, {1, 3, "33.33 %"}} {
		if got := percent(c.part, c.whole); got != c.want {
			t.Errorf("%d of %d: %s", c.part, c.whole, got)
		}
	}
}

func TestKeyParser(t *testing.T) {
	var p keyParser
	var got []key
	for _, b := range []byte(" x\x1b[A\x1bOB\x1b[C\x1b[D\x1b[1;5A \x1b \x1b\x1b[A") {
		if k := p.feed(b); k != keyNone {
			got = append(got, k)
		}
	}
	// ESC followed by a blank is Alt+blank: no key of ours.
	if want := []key{keySpace, keyUp, keyDown, keyRight, keyUp, keySpace, keyUp}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestBufferHint(t *testing.T) {
	for _, size := range []int{0, smallBuffer, 16 << 20} {
		if h := bufferHint(size); h != "" {
			t.Errorf("%d: %q", size, h)
		}
	}
	if h := bufferHint(425984); !strings.Contains(h, "416.0 KiB only") || runtime.GOOS == "linux" && !strings.Contains(h, "sudo sysctl -w net.core.rmem_max=33554432") {
		t.Errorf("%q", h)
	}
}

// FuzzExpandLists: whatever is typed, no word is lost and none is invented.
func FuzzExpandLists(f *testing.F) {
	for _, s := range []string{"play bag --topics /a /b -l", "record -b100 /a", "play -- --topics", "play --topics", "-", "--", "-x", "play -m", "play --=", "play -\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		root, _, _, _ := testRoot()
		in := strings.Fields(line)
		out := expandLists(root, in)
		if len(out) > 0 {
			if f := findFlag(root.Commands()[0], out[len(out)-1]); f != nil && isList(f) && !strings.Contains(out[len(out)-1], "=") {
				return // an empty list: a mistake that is reported
			}
		}
		var flat []string
		for _, w := range out {
			for _, list := range []string{"--topics=", "--remap="} {
				if v, ok := strings.CutPrefix(w, list); ok {
					w = v
				}
			}
			flat = append(flat, w)
		}
		for _, w := range in {
			switch {
			case strings.HasPrefix(w, "--topics"), strings.HasPrefix(w, "--remap"), strings.HasPrefix(w, "-t"), strings.HasPrefix(w, "-m"):
				continue // the flag itself goes
			}
			if !slices.Contains(flat, w) {
				t.Errorf("%q: %q is lost in %q", in, w, flat)
			}
		}
	})
}
