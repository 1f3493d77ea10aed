package main

import (
	"fmt"
	"io"
	"sync"
)

// console is standard error: log lines and, on a terminal, one status line below them that is redrawn in place. Without
// a terminal there is no status line and no escape code. Safe for concurrent use.
type console struct {
	mu     sync.Mutex
	w      io.Writer
	tty    bool
	status string
	shown  bool // the status line is on the screen, the cursor behind it
	width  func() int
}

func newConsole(w io.Writer, tty bool) *console {
	return &console{w: w, tty: tty, width: func() int { return terminalWidth(w) }}
}

// Terminal reports whether there is a status line at all.
func (c *console) Terminal() bool { return c.tty }

// Write prints whole lines above the status line.
func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hide()
	n, err := c.w.Write(p)
	if len(p) > 0 && p[len(p)-1] == '\n' {
		c.show()
	}
	return n, err
}

// SetStatus replaces the status line; "" takes it away. Without a terminal nothing happens.
func (c *console) SetStatus(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tty || s == c.status {
		return
	}
	c.hide()
	c.status = s
	c.show()
}

// Close takes the status line away.
func (c *console) Close() { c.SetStatus("") }

func (c *console) hide() {
	if c.shown {
		fmt.Fprint(c.w, "\r\x1b[K")
		c.shown = false
	}
}

func (c *console) show() {
	if c.status == "" || !c.tty {
		return
	}
	fmt.Fprint(c.w, clip(c.status, c.width()-1))
	c.shown = true
}

// clip cuts s to n characters, so that a status line never wraps (a wrapped one could not be redrawn in place).
func clip(s string, n int) string {
	if n < 1 {
		return ""
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
