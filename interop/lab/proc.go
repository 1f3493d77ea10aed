//go:build linux

package lab

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Event is a JSON line that a peer printed.
type Event map[string]any

// Int returns a whole number of the event; 0 where it has none of that name.
func (e Event) Int(key string) int64 {
	n, _ := e[key].(json.Number)
	v, _ := n.Int64()
	return v
}

// Text returns a string of the event.
func (e Event) Text(key string) string {
	s, _ := e[key].(string)
	return s
}

// Proc is a running process. It dies with the program that started it.
type Proc struct {
	Name string
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and its output is read
	err  error         // of Wait, valid after done

	mu     sync.Mutex
	events []Event
	news   chan struct{} // closed at the next event
	out    bytes.Buffer
	errOut bytes.Buffer
}

// Start runs a program in the network. extra are environment variables on top of the network's.
func (n *Net) Start(extra []string, args ...string) (*Proc, error) {
	return n.StartInput(nil, extra, args...)
}

// StartInput is Start with standard input.
func (n *Net) StartInput(stdin io.Reader, extra []string, args ...string) (*Proc, error) {
	v := n.command(args)
	p := &Proc{Name: filepath.Base(args[0]), cmd: exec.Command(v[0], v[1:]...), done: make(chan struct{}), news: make(chan struct{})}
	p.cmd.Env = append(n.env(), extra...)
	p.cmd.Stdin = stdin
	p.cmd.Stderr = &lockedWriter{p: p, buf: &p.errOut}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Name, err)
	}
	go p.read(stdout)
	return p, nil
}

// lockedWriter keeps output that is read while the process runs.
type lockedWriter struct {
	p   *Proc
	buf *bytes.Buffer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return w.buf.Write(b)
}

func (p *Proc) read(stdout io.Reader) {
	defer close(p.done)
	r := bufio.NewReader(stdout)
	for {
		line, err := r.ReadBytes('\n')
		p.mu.Lock()
		p.out.Write(line)
		if len(line) > 0 && line[0] == '{' {
			d := json.NewDecoder(bytes.NewReader(line))
			d.UseNumber()
			var e Event
			if d.Decode(&e) == nil && e.Text("event") != "" {
				p.events = append(p.events, e)
				close(p.news)
				p.news = make(chan struct{})
			}
		}
		p.mu.Unlock()
		if err != nil {
			break
		}
	}
	p.err = p.cmd.Wait()
}

// Await waits for the count-th event of that name (1 is the first).
func (p *Proc) Await(event string, count int, timeout time.Duration) (Event, error) {
	deadline := time.After(timeout)
	for {
		p.mu.Lock()
		found := filterEvents(p.events, event)
		news := p.news
		p.mu.Unlock()
		if len(found) >= count {
			return found[count-1], nil
		}
		select {
		case <-news:
		case <-p.done:
			if found := p.Events(event); len(found) >= count {
				return found[count-1], nil
			}
			return nil, fmt.Errorf("%s ended before event %q %d: %w%s", p.Name, event, count, p.exit(), p.tail())
		case <-deadline:
			return nil, fmt.Errorf("%s: no event %q %d after %v%s", p.Name, event, count, timeout, p.tail())
		}
	}
}

// Events returns the events of that name so far.
func (p *Proc) Events(event string) []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return filterEvents(p.events, event)
}

func filterEvents(all []Event, name string) []Event {
	var found []Event
	for _, e := range all {
		if e.Text("event") == name {
			found = append(found, e)
		}
	}
	return found
}

// Pid is the process id.
func (p *Proc) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Proc) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Running says whether the process has not ended.
func (p *Proc) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Wait waits for the end and returns an error unless the process exited with 0. A process that is still there after
// the timeout is killed.
func (p *Proc) Wait(timeout time.Duration) error {
	select {
	case <-p.done:
	case <-time.After(timeout):
		p.Kill()
		return fmt.Errorf("%s: still running after %v, killed%s", p.Name, timeout, p.tail())
	}
	if err := p.exit(); err != nil {
		return fmt.Errorf("%s: %w%s", p.Name, err, p.tail())
	}
	return nil
}

// ExitCode is the exit code of a process that has ended, -1 where a signal ended it.
func (p *Proc) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

func (p *Proc) exit() error {
	<-p.done
	if e := new(exec.ExitError); errors.As(p.err, &e) {
		return errors.New(e.ProcessState.String())
	}
	return p.err
}

// Stop sends SIGINT and waits for exit 0.
func (p *Proc) Stop(timeout time.Duration) error {
	if err := p.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.Name, err)
	}
	return p.Wait(timeout)
}

// Kill ends the process with SIGKILL, stopped or not, and waits for it. Safe after its end.
func (p *Proc) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stdout returns what the process has printed.
func (p *Proc) Stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// Stderr returns what the process has printed to standard error.
func (p *Proc) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.errOut.String()
}

// tail is the end of the output, for error texts.
func (p *Proc) tail() string {
	text := p.Stderr()
	if text == "" {
		text = p.Stdout()
	}
	if text == "" {
		return ""
	}
	if len(text) > 2000 {
		text = "…" + text[len(text)-2000:]
	}
	return "\n" + text
}
