package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"
)

const levelFatal = slog.Level(12)

// logHandler writes log lines in the form of ROS: `[INFO] [1764513600.123456789] [gobag]: text key=value`.
type logHandler struct {
	w     io.Writer
	level slog.Leveler
	attrs string // rendered, with a leading blank
	group string // prefix of keys, with a trailing dot

	also *atomic.Pointer[rosout] // gets what is at least of level info; nil = nobody
}

// Enabled implements slog.Handler.
func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle implements slog.Handler.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s] [%d.%09d] [gobag]: ", levelName(r.Level), r.Time.Unix(), r.Time.Nanosecond())
	head := b.Len()
	b.WriteString(printable(r.Message) + h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		appendAttr(&b, h.group, a)
		return true
	})
	if h.also != nil && r.Level >= slog.LevelInfo {
		if p := h.also.Load(); p != nil {
			p.publish(r, b.String()[head:])
		}
	}
	b.WriteByte('\n')
	_, err := io.WriteString(h.w, b.String())
	return err
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(as []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range as {
		appendAttr(&b, h.group, a)
	}
	n := *h
	n.attrs += b.String()
	return &n
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	n := *h
	if name != "" {
		n.group += name + "."
	}
	return &n
}

func appendAttr(b *strings.Builder, group string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, g := range v.Group() {
			appendAttr(b, group, g)
		}
		return
	}
	if a.Equal(slog.Attr{}) {
		return
	}
	s := v.String()
	if s == "" || strings.ContainsAny(s, " \t\"=") || printable(s) != s {
		s = strconv.Quote(s)
	}
	b.WriteString(" " + group + a.Key + "=" + s)
}

func levelName(l slog.Level) string {
	switch {
	case l >= levelFatal:
		return "FATAL"
	case l >= slog.LevelError:
		return "ERROR"
	case l >= slog.LevelWarn:
		return "WARN"
	case l >= slog.LevelInfo:
		return "INFO"
	}
	return "DEBUG"
}

// printable replaces what is not printable text by an escape: control characters, terminal sequences, bytes that are
// not UTF-8. It keeps foreign text (topic names, peers' names) from breaking out of its line or driving the terminal.
func printable(s string) string {
	clean := true
	for _, r := range s {
		if !strconv.IsPrint(r) || r == '\uFFFD' {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case n == 1 && r == '\uFFFD':
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}
