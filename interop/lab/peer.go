//go:build linux

package lab

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Mono is the kernel's monotonic clock in ns: the one in the peers' logs.
func Mono() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // cannot fail for this clock
	return t.Nano()
}

// Publish starts a cy_pub with options ("--seconds", "5") and topics.
func (n *Net) Publish(topics []Topic, options ...string) (*Proc, error) {
	return n.startPeer("cy_pub", topics, options)
}

// Subscribe starts a cy_sub and waits until its readers are there.
func (n *Net) Subscribe(topics []Topic, options ...string) (*Proc, error) {
	p, err := n.startPeer("cy_sub", topics, options)
	if err != nil {
		return nil, err
	}
	if _, err := p.Await("ready", 1, 10*time.Second); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

func (n *Net) startPeer(name string, topics []Topic, options []string) (*Proc, error) {
	path, err := Peer(name)
	if err != nil {
		return nil, err
	}
	return n.Start(nil, append(append([]string{path}, options...), Args(topics)...)...)
}

// Sent is what a publisher says of a topic at its end.
type Sent struct {
	Count         int64         // running numbers 0…Count-1 went out
	Failed        int64         // write calls that gave up; their number was used again
	P50, P99, Max time.Duration // of write calls
	Late          time.Duration // worst, behind the schedule
}

// SentBy returns what a publisher that has ended sent, by topic name.
func SentBy(p *Proc) map[string]Sent {
	sent := map[string]Sent{}
	for _, e := range p.Events("topic") {
		sent[e.Text("topic")] = Sent{Count: e.Int("sent"), Failed: e.Int("failed"), P50: time.Duration(e.Int("p50_ns")),
			P99: time.Duration(e.Int("p99_ns")), Max: time.Duration(e.Int("max_ns")), Late: time.Duration(e.Int("lag_ns"))}
	}
	return sent
}

// Arrival is a line of a subscriber's log.
type Arrival struct {
	Topic      string
	Number     int64 // -1 = none
	Wall, Mono int64 // ns
	Source     int64 // the writer's stamp, ns
	Header     string
	Length     int // header included
	Hash       uint64
}

// ReadArrivals reads the --log file of a subscriber. A last line that is cut short is left out.
func ReadArrivals(path string) ([]Arrival, error) {
	var all []Arrival
	err := eachLine(path, 8, func(f []string) error {
		a := Arrival{Topic: f[0], Header: f[5]}
		var errs [6]error
		a.Number, errs[0] = strconv.ParseInt(f[1], 10, 64)
		a.Wall, errs[1] = strconv.ParseInt(f[2], 10, 64)
		a.Mono, errs[2] = strconv.ParseInt(f[3], 10, 64)
		a.Source, errs[3] = strconv.ParseInt(f[4], 10, 64)
		a.Length, errs[4] = strconv.Atoi(f[6])
		a.Hash, errs[5] = strconv.ParseUint(f[7], 16, 64)
		all = append(all, a)
		return firstError(errs[:])
	})
	return all, err
}

// Call is a line of a publisher's log: one write call.
type Call struct {
	Topic  string
	Number int64
	Mono   int64 // ns, when it began
	Took   time.Duration
	Result int // 0 = written
}

// ReadCalls reads the --calls file of a publisher.
func ReadCalls(path string) ([]Call, error) {
	var all []Call
	err := eachLine(path, 5, func(f []string) error {
		c := Call{Topic: f[0]}
		var errs [4]error
		var took int64
		c.Number, errs[0] = strconv.ParseInt(f[1], 10, 64)
		c.Mono, errs[1] = strconv.ParseInt(f[2], 10, 64)
		took, errs[2] = strconv.ParseInt(f[3], 10, 64)
		c.Result, errs[3] = strconv.Atoi(f[4])
		c.Took = time.Duration(took)
		all = append(all, c)
		return firstError(errs[:])
	})
	return all, err
}

func firstError(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// eachLine hands the fields of every whole line to f.
func eachLine(path string, fields int, f func([]string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := bufio.NewReaderSize(file, 1<<20)
	for number := 1; ; number++ {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) { // the end, or a line cut short
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: line %d: %w", path, number, err)
		}
		v := strings.Fields(line)
		if len(v) != fields {
			return fmt.Errorf("read %s: line %d has %d fields, want %d", path, number, len(v), fields)
		}
		if err := f(v); err != nil {
			return fmt.Errorf("read %s: line %d: %w", path, number, err)
		}
	}
}
