package perf

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/ros/rostest"
)

func TestTransportPairs(t *testing.T) {
	for _, c := range []struct {
		name string
		o    TransportOptions
		want [][2]string
	}{
		{"receive", TransportOptions{Sides: []string{"gobag", "fast"}, Receive: true}, [][2]string{{"fast", "gobag"}, {"fast", "fast"}}},
		{"send", TransportOptions{Sides: []string{"gobag", "fast"}, Send: true}, [][2]string{{"gobag", "fast"}, {"fast", "fast"}}},
		{"both", TransportOptions{Sides: []string{"gobag", "cyclone"}, Send: true, Receive: true},
			[][2]string{{"cyclone", "gobag"}, {"gobag", "cyclone"}, {"cyclone", "cyclone"}}},
	} {
		if got := c.o.pairs(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTransportValidate(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cy_pub", "cy_sub", "fa_pub", "fa_sub"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	good := func() TransportOptions {
		return TransportOptions{Peers: dir, Command: func(ctx context.Context, args ...string) *exec.Cmd { return exec.CommandContext(ctx, "gobag", args...) }}
	}
	if err := good().Validate(); err != nil && runtime.GOOS != "windows" {
		t.Errorf("zero options: %v", err)
	}
	for _, c := range []struct {
		want   string
		change func(o *TransportOptions)
	}{
		{"no command", func(o *TransportOptions) { o.Command = nil }},
		{"no peer among the sides", func(o *TransportOptions) { o.Sides = []string{SideGobag} }},
		{`side "rti"`, func(o *TransportOptions) { o.Sides = []string{SideGobag, "rti"} }},
		{"make -C interop peers", func(o *TransportOptions) { o.Peers = filepath.Join(dir, "none") }},
		{"load 0 × 100 Hz", func(o *TransportOptions) { o.Loads = []TransportLoad{{0, 100, 100}} }},
		{"must not be negative", func(o *TransportOptions) { o.Depth = -1 }},
	} {
		o := good()
		c.change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}

func TestTransportReport(t *testing.T) {
	l := TransportLoad{1, 0, 1_000_000}
	r := TransportReport{Cells: []TransportCell{
		{Load: l, Publisher: "cyclone", Subscriber: "gobag", Repeat: 1, Sent: 100, Received: 100, Seconds: 1},
		{Load: l, Publisher: "cyclone", Subscriber: "fast", Repeat: 1, Error: "it fell\nover"},
		{Load: l, Publisher: "cyclone", Subscriber: "gobag", Repeat: 2, Sent: 100, Received: 90, Seconds: 1},
		{Load: l, Publisher: "cyclone", Subscriber: "gobag", Repeat: 3, Sent: 100, Received: 95, Seconds: 1, Lag: time.Second},
	}}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Count(text, "\n") != 3 || !strings.Contains(text, "95.000 %") || !strings.Contains(text, " 95.0 ") || !strings.Contains(text, "it fell") ||
		strings.Contains(text, "over\n") || !strings.Contains(text, "1 × unthrottled × 1 MB") {
		t.Error(text)
	}
	b.Reset()
	if err := r.WriteJSON(&b); err != nil || !json.Valid(b.Bytes()) {
		t.Errorf("%v: %s", err, b.String())
	}
}

// lockedBuffer is written and read by different goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// What gobag's publisher says it sent is what gobag's subscriber says it got.
func TestTransportTask(t *testing.T) {
	net := rostest.NewNetwork(rostest.Options{})
	a, b := net.Node("a"), net.Node("b")
	defer a.Close()
	defer b.Close()
	for _, l := range []TransportLoad{{3, 200, 100}, {2, 0, 5000}} {
		task := TransportTask{Load: l, Duration: 200 * time.Millisecond}
		ctx, cancel := context.WithCancel(context.Background())
		sub, pub := new(lockedBuffer), new(lockedBuffer)
		done := make(chan error, 1)
		go func() { done <- task.Subscribe(ctx, b, sub) }()
		err := task.Publish(context.Background(), a, pub)
		time.Sleep(50 * time.Millisecond)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		sent, got := total(t, pub.String()), total(t, sub.String())
		if sent.Sent == 0 || sent.Sent != got.Got || sent.topics != l.Instances || got.topics != l.Instances {
			t.Errorf("%v: sent %+v, got %+v", l, sent, got)
		}
		if l.Frequency > 0 && (sent.Sent < 3*30 || sent.Sent > 3*41) {
			t.Errorf("%v: %d sent in 200 ms", l, sent.Sent)
		}
	}
}

type totals struct {
	event
	topics int
}

func total(t *testing.T, text string) (sum totals) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if e.Event == "topic" {
			sum.Sent, sum.Got, sum.topics = sum.Sent+e.Sent, sum.Got+e.Got, sum.topics+1
		}
	}
	return sum
}

// A pair of programs is run and judged by what they print; one that does not find the other is said to do so.
func TestTransportRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("shell scripts")
	}
	dir := t.TempDir()
	script := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script("cy_sub", `echo '{"event":"ready"}'; trap 'echo "{\"event\":\"topic\",\"got\":9}"; exit 0' INT; while :; do sleep 0.05; done`)
	script("cy_pub", `echo '{"event":"start","mono_ns":1000000000}'; echo '{"event":"topic","sent":10,"p99_ns":7,"lag_ns":3}'; echo '{"event":"done","mono_ns":3000000000}'`)
	script("fa_pub", "exit 3")
	script("fa_sub", `echo '{"event":"ready"}'; trap 'exit 0' INT; while :; do sleep 0.05; done`)
	o := TransportOptions{Loads: []TransportLoad{{1, 1, 1_000_000}}, Sides: []string{SideCyclone, SideFast}, Receive: true, Duration: time.Second, Peers: dir,
		Command: func(ctx context.Context, args ...string) *exec.Cmd { return exec.CommandContext(ctx, "gobag", args...) }}
	rep, err := RunTransport(context.Background(), o)
	if err != nil || len(rep.Cells) != 4 {
		t.Fatalf("%d cells, %v", len(rep.Cells), err)
	}
	for _, c := range rep.Cells {
		switch {
		case c.Publisher == SideFast:
			if !strings.Contains(c.Error, "do not find each other") {
				t.Errorf("%+v", c)
			}
		case c.Subscriber == SideCyclone:
			if c.Error != "" || c.Sent != 10 || c.Received != 9 || c.Seconds != 2 || c.WriteP99 != 7 || c.Lag != 3 || c.Rate() != 4.5 {
				t.Errorf("%+v", c)
			}
		}
	}
}
