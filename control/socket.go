package control

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Commands are what a Socket does, by name.
type Commands map[string]Command

// Command is one of them. Run gets at most Args words; what it returns is encoded as JSON.
type Command struct {
	Help string
	Args int
	Run  func(args []string) (any, error)
}

// request and reply are lines of JSON.
type request struct {
	Command string   `json:"command"`
	Args    []string `json:"args,omitempty"`
}

// Reply is what a command gave. Result is JSON; nil where there is nothing to say.
type Reply struct {
	OK     bool            `json:"ok"`
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

const (
	maxLine     = 64 << 10
	maxClients  = 16
	idleClient  = 5 * time.Minute
	slotWait    = 200 * time.Millisecond
	dialTimeout = 2 * time.Second
	suffix      = ".sock"
)

// Socket takes commands at a Unix socket: each line is a JSON object {"command": "pause", "args": []}, each answer too.
type Socket struct {
	path     string
	listener net.Listener
	commands Commands
	log      *slog.Logger
	slots    chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]bool
	wg    sync.WaitGroup
	once  sync.Once
	err   error
}

// Listen makes the socket, with mode 0600. A file there that nobody listens on any more is replaced.
func Listen(path string, commands Commands, log *slog.Logger) (*Socket, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if fi, err := os.Stat(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	} else if runtime.GOOS != "windows" && fi.Mode().Perm()&0o022 != 0 && fi.Mode()&os.ModeSticky == 0 {
		return nil, fmt.Errorf("control socket: others may exchange files in %s", filepath.Dir(path))
	}
	if c, err := net.DialTimeout("unix", path, dialTimeout); err == nil {
		_ = c.Close()
		return nil, fmt.Errorf("control socket %s: somebody listens there already", path)
	}
	if fi, err := os.Lstat(path); err == nil && fi.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("control socket: %w", err)
		}
	}
	l, err := listenPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s := &Socket{path: path, listener: l, commands: commands, log: log, slots: make(chan struct{}, maxClients), conns: map[net.Conn]bool{}}
	s.wg.Go(s.accept)
	return s, nil
}

// listenPrivate makes a socket that only its owner can connect to, from its first moment.
func listenPrivate(path string) (net.Listener, error) {
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	_ = os.Remove(part)
	l, err := net.Listen("unix", part)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(part, 0o600), os.Rename(part, path)); err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(part))
	}
	return l, nil
}

// Path returns where the socket is.
func (s *Socket) Path() string { return s.path }

func (s *Socket) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		select {
		case s.slots <- struct{}{}:
		case <-time.After(slotWait): // clients that have just gone may hold theirs for a moment
			_ = c.Close() // too many at once
			continue
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			defer func() { <-s.slots }()
			s.talk(c)
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			_ = c.Close()
		})
	}
}

// talk answers one client until it goes.
func (s *Socket) talk(c net.Conn) {
	lines := bufio.NewScanner(c)
	lines.Buffer(nil, maxLine)
	for {
		if c.SetDeadline(time.Now().Add(idleClient)) != nil || !lines.Scan() {
			return
		}
		var q request
		var r Reply
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			r.Error = fmt.Sprintf("not a command: %v", err)
		} else {
			r = s.run(q)
		}
		out, err := json.Marshal(r)
		if err != nil {
			return
		}
		if _, err := c.Write(append(out, '\n')); err != nil {
			return
		}
	}
}

func (s *Socket) run(q request) Reply {
	cmd, ok := s.commands[q.Command]
	if q.Command == "help" {
		help := map[string]string{}
		for name, c := range s.commands {
			help[name] = c.Help
		}
		cmd, ok = Command{Run: func([]string) (any, error) { return help, nil }}, true
	}
	if !ok {
		names := slices.Sorted(maps.Keys(s.commands))
		return Reply{Error: fmt.Sprintf("unknown command %q (there is: help, %s)", q.Command, strings.Join(names, ", "))}
	}
	if len(q.Args) > cmd.Args {
		return Reply{Error: fmt.Sprintf("%s takes at most %d words, %d are given", q.Command, cmd.Args, len(q.Args))}
	}
	v, err := cmd.Run(q.Args)
	if err != nil {
		return Reply{Error: err.Error()}
	}
	r := Reply{OK: true}
	if v != nil {
		if r.Result, err = json.Marshal(v); err != nil {
			return Reply{Error: err.Error()}
		}
	}
	return r
}

// Close ends the socket and waits for its clients' commands. Idempotent.
func (s *Socket) Close() error {
	s.once.Do(func() {
		s.err = errors.Join(s.listener.Close(), os.Remove(s.path))
		s.mu.Lock()
		for c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s.err
}

// Call sends one command to the socket at path. The error is that of the connection; what the command said is in the Reply.
func Call(path, command string, args ...string) (Reply, error) {
	var r Reply
	c, err := net.DialTimeout("unix", path, dialTimeout)
	if err != nil {
		return r, fmt.Errorf("control: %w", err)
	}
	defer func() { _ = c.Close() }()
	line, err := json.Marshal(request{command, args})
	if err != nil {
		return r, fmt.Errorf("control: %w", err)
	}
	if err := c.SetDeadline(time.Now().Add(idleClient)); err != nil {
		return r, fmt.Errorf("control: %w", err)
	}
	if _, err := c.Write(append(line, '\n')); err != nil {
		return r, fmt.Errorf("control: %w", err)
	}
	d := json.NewDecoder(io.LimitReader(c, 16*maxLine))
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("control: %s: no answer: %w", path, err)
	}
	return r, nil
}

// SocketDir is where sockets are unless told otherwise: below $XDG_RUNTIME_DIR, else below the directory for temporary
// files, by user.
func SocketDir(env func(string) string) string {
	if dir := env("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "gobag")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("gobag-%d", os.Getuid()))
}

// SocketPath is the socket of a process with a node of that name.
func SocketPath(env func(string) string, node string) string {
	name := strings.ReplaceAll(strings.Trim(node, "/"), "/", ".")
	if name == "" {
		name = "gobag"
	}
	return filepath.Join(SocketDir(env), fmt.Sprintf("%s.%d%s", name, os.Getpid(), suffix))
}

// Sockets lists the sockets of this user on which somebody listens.
func Sockets(env func(string) string) []string {
	found, err := filepath.Glob(filepath.Join(SocketDir(env), "*"+suffix))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(found, func(path string) bool {
		c, err := net.DialTimeout("unix", path, dialTimeout)
		if err != nil {
			return true
		}
		_ = c.Close()
		return false
	})
}
