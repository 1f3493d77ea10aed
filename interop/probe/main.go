//go:build linux

// Command probe is a publisher or subscriber on gobag's rtps package by itself, without recorder, player and ROS graph:
//
//	probe pub|sub [options] -t SPEC …
//	probe ask -topic /NAME
//
// It takes the command line of the C and C++ peers (interop/peers) and prints the same events, so that it can stand where
// one of them stands. More options: see flags below. ask is a client of ros2.Node.DescribeType (see ask.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/ros/ros2"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		code := 1
		if errors.Is(err, errUsage) {
			code = 2
		}
		if errors.Is(err, errUnmatched) {
			code = 3
		}
		os.Exit(code)
	}
}

var (
	errUsage     = errors.New("usage: probe pub|sub [options] -t SPEC …")
	errUnmatched = errors.New("not every topic has its readers")
)

// options are the flags of both roles.
type options struct {
	flag.FlagSet
	topics []lab.Topic

	seconds, linger, waitTimeout, idle float64
	wait, settle                       int
	expect                             uint64
	calls, log                         string
	slow                               time.Duration

	peer                  string
	noMulticast, graph    bool
	rcvbuf, fragment, max int
	window                int
	lease                 time.Duration
}

func parse(args []string) (*options, error) {
	o := &options{}
	o.Init("probe", flag.ContinueOnError)
	o.Func("t", "SPEC of a topic", func(s string) error {
		t, err := lab.ParseTopic(s)
		o.topics = append(o.topics, t)
		return err
	})
	o.Float64Var(&o.seconds, "seconds", 0, "end after; 0 = never")
	o.Float64Var(&o.linger, "linger", 2, "pub: seconds to wait for acknowledgements at the end")
	o.Float64Var(&o.waitTimeout, "wait-timeout", 20, "pub: seconds to wait for readers")
	o.Float64Var(&o.idle, "idle", 0, "sub: end after so many seconds without a sample")
	o.IntVar(&o.wait, "wait", 0, "pub: readers of every topic to wait for")
	o.IntVar(&o.settle, "settle", 200, "pub: ms to wait then")
	o.Uint64Var(&o.expect, "expect", 0, "sub: end after so many samples")
	o.StringVar(&o.calls, "calls", "", "pub: log of write calls")
	o.StringVar(&o.log, "log", "", "sub: log of arrivals")
	o.Func("slow-us", "sub: pause after each sample", func(s string) error {
		us, err := strconv.Atoi(s)
		o.slow = time.Duration(us) * time.Microsecond
		return err
	})
	o.StringVar(&o.peer, "peer", "", "announce to this address by unicast as well")
	o.BoolVar(&o.noMulticast, "no-multicast", false, "use no multicast")
	o.BoolVar(&o.graph, "graph", false, "sub: print every endpoint and participant that is found")
	o.IntVar(&o.rcvbuf, "rcvbuf", 0, "receive buffer asked for, bytes")
	o.IntVar(&o.fragment, "fragment", 0, "pub: bytes of a fragment")
	o.IntVar(&o.window, "window", 0, "pub: bytes not acknowledged before a write blocks")
	o.IntVar(&o.max, "max-reassembly", 0, "sub: bytes of incomplete samples")
	o.Func("lease-ms", "lease of the participant", func(s string) error {
		ms, err := strconv.Atoi(s)
		o.lease = time.Duration(ms) * time.Millisecond
		return err
	})
	o.SetOutput(io.Discard)
	if err := o.Parse(args); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	if len(o.topics) == 0 || o.NArg() > 0 {
		return nil, errUsage
	}
	return o, nil
}

func run(args []string) error {
	domain := 0
	if text := os.Getenv("ROS_DOMAIN_ID"); text != "" {
		var err error
		if domain, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("ROS_DOMAIN_ID: %w", err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 && args[0] == "ask" {
		return ask(ctx, args[1:], domain)
	}
	if len(args) == 0 || args[0] != "pub" && args[0] != "sub" {
		return errUsage
	}
	o, err := parse(args[1:])
	if err != nil {
		return err
	}
	c := rtps.Config{Domain: domain, NoMulticast: o.noMulticast, RecvBuffer: o.rcvbuf, MaxReassembly: int64(o.max), Lease: o.lease}
	if o.peer != "" {
		c.Peers = []string{o.peer}
	}
	p, err := rtps.NewParticipant(c)
	if err != nil {
		return err
	}
	if args[0] == "pub" {
		err = publish(ctx, p, o)
	} else {
		err = subscribe(ctx, p, o)
	}
	return errors.Join(err, p.Close())
}

// names returns topic and type on the wire.
func names(t lab.Topic, name string) (topic, typ string) {
	if typ = t.As; typ == "" {
		typ = ros2.MangleType(t.Kind.Type())
	}
	return ros2.MangleTopic(name), typ
}

func qos(t lab.Topic) rtps.QoS {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	q := rtps.QoS{Reliability: rtps.Reliable, History: rtps.KeepAll, Deadline: ms(t.DeadlineMS), LatencyBudget: ms(t.LatencyMS),
		LeaseDuration: ms(t.LeaseMS), MaxBlocking: ms(t.BlockMS)}
	if t.BlockMS == 0 {
		q.MaxBlocking = 10 * time.Second
	}
	if t.BestEffort {
		q.Reliability = rtps.BestEffort
	}
	if t.TransientLocal {
		q.Durability = rtps.TransientLocal
	}
	if t.Depth > 0 {
		q.History, q.Depth = rtps.KeepLast, t.Depth
	}
	switch t.Liveliness {
	case "manual_participant":
		q.Liveliness = rtps.ManualByParticipant
	case "manual_topic":
		q.Liveliness = rtps.ManualByTopic
	}
	if t.Exclusive {
		q.Ownership = 1
	}
	if t.SourceOrder {
		q.DestinationOrder = 1
	}
	if t.XCDR2 {
		q.Representation = []int16{wire.XCDR2}
	}
	if t.Partition != "" {
		q.Partition = []string{t.Partition}
	}
	return q
}

func userData(t lab.Topic) []byte {
	if t.Hash == "" {
		return nil
	}
	return []byte("typehash=" + t.Hash + ";")
}
