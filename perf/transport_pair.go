package perf

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// cycloneOnLoopback is the configuration of the Cyclone DDS peers.
const cycloneOnLoopback = `<CycloneDDS><Domain id="any"><General><Interfaces><NetworkInterface name="lo" multicast="true"/></Interfaces></General></Domain></CycloneDDS>`

// peerBuffer is the receive buffer of a Fast DDS subscriber, which asks for nothing by itself.
const peerBuffer = 4 << 20

// event is a JSON line that the peers' programs, and our own task, print.
type event struct {
	Event    string `json:"event"`
	Sent     uint64 `json:"sent"`
	Got      uint64 `json:"got"`
	LagNS    int64  `json:"lag_ns"`
	WriteP99 int64  `json:"p99_ns"`
	MonoNS   int64  `json:"mono_ns"`
}

// talker is a process that prints events. It ends on SIGINT.
type talker struct {
	name string
	cmd  *exec.Cmd
	log  tail
	done chan struct{}
	err  error // of Wait, after done

	mu     sync.Mutex
	events []event
	line   bytes.Buffer
	ready  chan struct{} // closed at the event "ready"
	peak   int64
}

// Write takes standard output.
func (p *talker) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line.Write(b)
	for {
		i := bytes.IndexByte(p.line.Bytes(), '\n')
		if i < 0 {
			return len(b), nil
		}
		var e event
		if line := p.line.Next(i + 1); line[0] == '{' && json.Unmarshal(line, &e) == nil {
			if e.Event == "ready" && !p.has("ready") {
				close(p.ready)
			}
			p.events = append(p.events, e)
		}
	}
}

func (p *talker) has(name string) bool {
	for _, e := range p.events {
		if e.Event == name {
			return true
		}
	}
	return false
}

func startTalker(name string, cmd *exec.Cmd, domain int) (*talker, error) {
	p := &talker{name: name, cmd: cmd, done: make(chan struct{}), ready: make(chan struct{})}
	cmd.Env = append(os.Environ(), "ROS_DOMAIN_ID="+strconv.Itoa(domain), "CYCLONEDDS_URI="+cycloneOnLoopback)
	cmd.Stdout, cmd.Stderr = p, &p.log
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if rss := peakRSS(cmd.Process.Pid); rss > 0 {
				p.mu.Lock()
				p.peak = max(p.peak, rss)
				p.mu.Unlock()
			}
			select {
			case <-p.done:
				return
			case <-tick.C:
			}
		}
	}()
	return p, nil
}

// await waits for a channel, the end of the process or a limit.
func (p *talker) await(ctx context.Context, what <-chan struct{}, limit time.Duration) error {
	select {
	case <-what:
		return nil
	default:
	}
	select {
	case <-what:
		return nil
	case <-p.done:
		if what == p.done {
			return nil
		}
		return fmt.Errorf("%s ended early: %w: %s", p.name, orEnded(p.err), p.log.String())
	case <-time.After(limit):
		return fmt.Errorf("%s: nothing within %v: %s", p.name, limit, p.log.String())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop ends the process, by force if it must be.
func (p *talker) stop() error {
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s: did not stop and was killed", p.name)
	}
	if p.err != nil {
		return fmt.Errorf("%s: %w: %s", p.name, p.err, p.log.String())
	}
	return nil
}

// exitUnmatched is the peers' exit code where not every topic has its readers.
const exitUnmatched = 3

// exitCode is that of a process that has ended, -1 of one that has not.
func (p *talker) exitCode() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

func (p *talker) usage() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.cmd.ProcessState
	u := Usage{CPUSeconds: (st.UserTime() + st.SystemTime()).Seconds(), PeakRSS: p.peak}
	if u.PeakRSS == 0 {
		u.PeakRSS = maxRSS(st)
	}
	return u
}

// runPair runs a subscriber and a publisher and fills the cell in.
func (o *TransportOptions) runPair(ctx context.Context, c *TransportCell) error {
	sub, err := startTalker("subscriber", o.side(c, c.Subscriber, "sub"), o.Domain)
	if err != nil {
		return err
	}
	if err := sub.await(ctx, sub.ready, 20*time.Second); err != nil {
		return errors.Join(err, sub.stop())
	}
	pub, err := startTalker("publisher", o.side(c, c.Publisher, "pub"), o.Domain)
	if err != nil {
		return errors.Join(err, sub.stop())
	}
	err = pub.await(ctx, pub.done, 3*o.Duration+time.Minute)
	if err == nil && !sleepUntil(ctx, time.Now().Add(200*time.Millisecond)) { // what is still on its way
		err = ctx.Err()
	}
	if code := pub.exitCode(); err == nil && code == exitUnmatched {
		return errors.Join(fmt.Errorf("%s and %s do not find each other (on loopback without multicast: ip link set lo multicast on)", c.Publisher, c.Subscriber), sub.stop())
	}
	if err := errors.Join(err, pub.stop(), sub.stop()); err != nil {
		return err
	}
	c.PublisherUsage, c.SubscriberUsage = pub.usage(), sub.usage()
	var start, end int64
	for _, e := range pub.events {
		switch e.Event {
		case "start":
			start = e.MonoNS
		case "done":
			end = e.MonoNS
		case "topic":
			c.Sent += e.Sent
			c.Lag, c.WriteP99 = max(c.Lag, time.Duration(e.LagNS)), max(c.WriteP99, time.Duration(e.WriteP99))
		}
	}
	c.Seconds = float64(end-start) / 1e9
	for _, e := range sub.events {
		if e.Event == "topic" {
			c.Received += e.Got
		}
	}
	if c.Sent == 0 {
		return errors.New("nothing was sent: " + pub.log.String())
	}
	return nil
}

// side is the command of a publisher or subscriber. All take the same options.
func (o *TransportOptions) side(c *TransportCell, side, role string) *exec.Cmd {
	spec := fmt.Sprintf("type=blob,topic=%s,n=%d,hz=%g,size=%d", transportTopic, c.Load.Instances, c.Load.Frequency, c.Load.Size)
	if o.Depth > 0 {
		spec += fmt.Sprintf(",depth=%d", o.Depth)
	}
	options := []string{"-t", spec}
	if role == "pub" {
		options = append(options, "--seconds", fmt.Sprint(o.Duration.Seconds()), "--wait", "1", "--wait-timeout", "8", "--linger", "5")
	}
	switch side {
	case SideGobag:
		return o.Command(context.Background(), "perf", "transport-task", "--role", role, "--instances", strconv.Itoa(c.Load.Instances), "--frequency",
			strconv.FormatFloat(c.Load.Frequency, 'g', -1, 64), "--size", strconv.Itoa(c.Load.Size), "--duration", o.Duration.String(), "--depth",
			strconv.Itoa(o.Depth), "--domain-id", strconv.Itoa(o.Domain))
	case SideFast:
		options = append([]string{"--transport", "udp"}, options...)
		if role == "sub" {
			options = append(options, "--rcvbuf", strconv.Itoa(peerBuffer))
		}
	}
	return exec.Command(o.program(side, role), options...)
}
