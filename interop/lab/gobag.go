//go:build linux

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
)

// Gobag is the built command.
type Gobag struct{ Path string }

// Recording is a running gobag record.
type Recording struct {
	*Proc
	Dir     string
	Started int64 // monotonic ns, before the process was started
}

// Record starts gobag record on topics into dir, which must not exist.
func (g Gobag) Record(n *Net, dir string, topics []Topic, flags ...string) (*Recording, error) {
	return g.RecordEnv(n, nil, dir, topics, flags...)
}

// RecordEnv is Record with environment variables on top of the network's.
func (g Gobag) RecordEnv(n *Net, env []string, dir string, topics []Topic, flags ...string) (*Recording, error) {
	return g.record(n, env, dir, append(append([]string{"--topics"}, Names(topics)...), flags...))
}

// RecordAll starts gobag record -a.
func (g Gobag) RecordAll(n *Net, dir string, flags ...string) (*Recording, error) {
	return g.RecordWith(n, dir, append([]string{"-a"}, flags...)...)
}

// RecordWith starts gobag record with flags that say what to record.
func (g Gobag) RecordWith(n *Net, dir string, flags ...string) (*Recording, error) {
	return g.record(n, nil, dir, flags)
}

func (g Gobag) record(n *Net, env []string, dir string, args []string) (*Recording, error) {
	r := &Recording{Dir: dir, Started: Mono()}
	var err error
	r.Proc, err = n.Start(env, append(append([]string{g.Path, "record"}, args...), "-o", dir)...)
	return r, err
}

// Play starts gobag play.
func (g Gobag) Play(n *Net, dir string, flags ...string) (*Proc, error) {
	return n.Start(nil, append([]string{g.Path, "play", dir}, flags...)...)
}

// Info is what gobag info --json says, as far as the tests need it.
type Info struct {
	StorageIdentifier string      `json:"storage_identifier"`
	MessageCount      int64       `json:"message_count"`
	StartNS           int64       `json:"start_ns"`
	EndNS             int64       `json:"end_ns"`
	DurationNS        int64       `json:"duration_ns"`
	BagSize           int64       `json:"bag_size"`
	Topics            []TopicInfo `json:"topics"`
	Files             []struct {
		Path     string `json:"path"`
		Messages int64  `json:"message_count"`
	} `json:"files"`
	Warnings   []string    `json:"warnings"`
	CutOff     bool        `json:"cut_off"`
	ClockSteps []ClockStep `json:"clock_steps"`
}

// ClockStep is a jump of the wall clock in Info.
type ClockStep struct {
	Monotonic int64 `json:"monotonic_ns"`
	Before    int64 `json:"before_ns"`
	After     int64 `json:"after_ns"`
}

// TopicInfo is a topic in Info.
type TopicInfo struct {
	Name                string `json:"name"`
	Type                string `json:"type"`
	Count               int64  `json:"count"`
	SerializationFormat string `json:"serialization_format"`
	TypeHash            string `json:"type_hash"`
	Lost                Lost   `json:"lost"`
	QoS                 []struct {
		History     string `json:"history"`
		Depth       int    `json:"depth"`
		Reliability string `json:"reliability"`
		Durability  string `json:"durability"`
	} `json:"qos"`
}

// Lost is a topic's losses by reason.
type Lost struct{ Wire, Queue, Storage int64 }

// Sum adds them up.
func (l Lost) Sum() int64 { return l.Wire + l.Queue + l.Storage }

// Info runs gobag info --json.
func (g Gobag) Info(path string) (Info, error) {
	var i Info
	out, err := exec.Command(g.Path, "info", path, "--json").Output()
	if err != nil {
		text := ""
		if e := new(exec.ExitError); errors.As(err, &e) {
			text = strings.TrimSpace(string(e.Stderr))
		}
		return i, fmt.Errorf("info %s: %w: %s", path, err, text)
	}
	if err := json.Unmarshal(out, &i); err != nil {
		return i, fmt.Errorf("info %s: %w in %.200s", path, err, out)
	}
	return i, nil
}

// Topic returns the entry of a topic; a zero one where there is none.
func (i Info) Topic(name string) TopicInfo {
	for _, t := range i.Topics {
		if t.Name == name {
			return t
		}
	}
	return TopicInfo{}
}

// FirstOnDisk polls a bag being recorded until another process (this one) reads a message in it, and returns the
// monotonic time.
func FirstOnDisk(dir string, timeout time.Duration) (int64, error) {
	var last error
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{})
		if err != nil {
			last = err
			continue
		}
		count := uint64(0)
		for _, t := range r.Info().Topics {
			count += t.Count
		}
		if err := r.Close(); err != nil {
			return 0, err
		}
		if count > 0 {
			return Mono(), nil
		}
	}
	return 0, fmt.Errorf("no message in %s after %v: %w", dir, timeout, last)
}
