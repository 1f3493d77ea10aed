package perf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Usage is what a process cost.
type Usage struct {
	CPUSeconds float64 `json:"cpu_s"`          // user and system time
	PeakRSS    int64   `json:"peak_rss_bytes"` // largest resident set, bytes; 0 where the system does not tell
}

// child is a process of a measurement. It is told to stop by closing its standard input, which also happens when we
// die, so that no process is left behind.
type child struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   bytes.Buffer // its standard output; read after wait
	log   tail         // the end of its standard error

	foreign bool // a program that is told to stop by an interrupt

	done chan struct{} // closed when the process has ended
	err  error         // of Wait; read after done

	mu   sync.Mutex
	peak int64
}

// command is a process that is not started yet.
type command = *exec.Cmd

// startChild starts cmd, which must stop in order when its standard input ends.
func startChild(name string, cmd *exec.Cmd) (*child, error) {
	c := &child{name: name, cmd: cmd, done: make(chan struct{})}
	detach(cmd) // Ctrl-C is for us: we stop the others in order
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd.Stdout, cmd.Stderr = &c.out, &c.log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	go c.watch()
	return c, nil
}

// watch samples the peak of the resident set: what the kernel says after the end also counts the moment between fork
// and exec, when the process still had our own memory.
func (c *child) watch() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if rss := peakRSS(c.cmd.Process.Pid); rss > 0 {
			c.mu.Lock()
			c.peak = max(c.peak, rss)
			c.mu.Unlock()
		}
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
	}
}

// stop asks the process to stop and waits; after limit it is killed, which is an error.
func (c *child) stop(limit time.Duration) error {
	_ = c.stdin.Close() // a process that has ended has closed it
	if c.foreign {
		_ = c.cmd.Process.Signal(os.Interrupt)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.failure()
	case <-timer.C:
		_ = c.cmd.Process.Kill()
		<-c.done
		return fmt.Errorf("%s: did not stop within %v and was killed: %s", c.name, limit, c.log.String())
	}
}

// failure is nil when the process ended with code 0.
func (c *child) failure() error {
	if c.err == nil {
		return nil
	}
	if text := c.log.String(); text != "" {
		return fmt.Errorf("%s: %w: %s", c.name, c.err, text)
	}
	return fmt.Errorf("%s: %w", c.name, c.err)
}

// usage is what the process cost, once it has ended.
func (c *child) usage() Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := Usage{PeakRSS: c.peak}
	if st := c.cmd.ProcessState; st != nil {
		u.CPUSeconds = (st.UserTime() + st.SystemTime()).Seconds()
		if u.PeakRSS == 0 {
			u.PeakRSS = maxRSS(st)
		}
	}
	return u
}

// exitCode is the process's, or -1.
func (c *child) exitCode() int {
	var ee *exec.ExitError
	if errors.As(c.err, &ee) {
		return ee.ExitCode()
	}
	if c.err != nil {
		return -1
	}
	return 0
}

// tail keeps the end of what is written to it. Safe for concurrent use.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if extra := len(t.b) - tailSize; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
