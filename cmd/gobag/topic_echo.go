package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/gobag/gobag/internal/msgtext"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/msg/shred"
	"github.com/spf13/cobra"
)

// echoFlags are the flags of `topic echo`.
type echoFlags struct {
	topicFlags
	fields    []string
	csv, raw  bool
	flow      bool
	full      bool
	truncate  int
	noArr     bool
	noStr     bool
	withInfo  bool
	clear     bool
	lostNames [2]bool // flags of ros2: what was lost is always said
}

func newTopicEcho(a *app) *cobra.Command {
	var f echoFlags
	cmd := &cobra.Command{
		Use:   "echo [BAG] TOPIC",
		Short: "Print messages as text",
		Long: `Print the messages of a topic as YAML or CSV, as "ros2 topic echo" does. They are decoded with the definition that the
bag has, or that the publisher serves, else with one from --msg-path, $AMENT_PREFIX_PATH, /opt/ros, ./install or a
built-in table of the common packages.`,
		Example: `  gobag topic echo run1 /imu --field linear_acceleration --csv
  gobag topic echo /chatter --once
  gobag topic echo run1 /tf --field transforms[0].transform.translation.x`,
		Args: args(cobra.RangeArgs(1, 3), "one topic is needed, and a bag before it to read it from there"),
		RunE: func(_ *cobra.Command, words []string) error {
			return runTopicEcho(a, &f, words)
		},
	}
	fs := cmd.Flags()
	f.define(cmd, true)
	fs.StringArrayVar(&f.fields, "field", nil, "print this field only, `PATH` as in transforms[0].header; may be repeated")
	switchFlag(fs, &f.csv, "csv", "", "comma-separated values, one message a line")
	switchFlag(fs, &f.flow, "flow-style", "", "YAML in one line a message")
	switchFlag(fs, &f.full, "full-length", "f", "all elements of arrays and all characters of strings")
	fs.IntVarP(&f.truncate, "truncate-length", "l", 128, "elements and characters `N` that are printed at most")
	switchFlag(fs, &f.noArr, "no-arr", "", "type and length of arrays only")
	switchFlag(fs, &f.noStr, "no-str", "", "length of strings only")
	switchFlag(fs, &f.raw, "raw", "", "the serialized bytes, in hexadecimal")
	switchFlag(fs, &f.withInfo, "include-message-info", "i", "stamps and sequence number before each message")
	switchFlag(fs, &f.clear, "clear", "", "on a terminal: clear it before each message")
	listFlag(fs, &f.msgPath, "msg-path", "", "look for message definitions here first, `DIR...`", true)
	fs.BoolVar(&f.lostNames[0], "lost-messages", false, "")
	fs.BoolVar(&f.lostNames[1], "no-lost-messages", false, "")
	hide(fs, "lost-messages", "no-lost-messages")
	return cmd
}

func runTopicEcho(a *app, f *echoFlags, words []string) error {
	if f.truncate < 0 {
		return usageError("topic echo: --truncate-length %d: want a number of elements", f.truncate)
	}
	// A type behind a topic on the wire, as ros2 takes it: ours is known from the publisher.
	if !isBag(words) && len(words) == 2 && strings.Contains(words[1], "/") && !strings.HasPrefix(words[1], "/") {
		words = words[:1]
	} else if len(words) > 2 || len(words) == 2 && !isBag(words) {
		return usageError("topic echo: one topic is needed, and a bag before it; there is no bag %q", words[0])
	}
	n, err := f.limit()
	if err != nil {
		return err
	}
	f.asIs = f.raw
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	src, err := openTopics(a, &f.topicFlags, words)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // nothing is written
	e := echo{a: a, f: f, ctx: stop.ctx, programs: map[*topicEntry]*echoType{}}
	e.o = msgtext.Options{Truncate: f.truncate, NoArr: f.noArr, NoStr: f.noStr, Flow: f.flow}
	if f.full {
		e.o.Truncate = 0
	}
	err = src.run(stop.ctx, untilLimit(n, e.message))
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) { // `| head` has seen enough
		return nil
	}
	if err == nil && e.odd > 0 {
		a.logger.Warn(fmt.Sprintf("%s not in the form that their values give (%v at first); they are shown as nearly as they can be", plural(uint64(e.odd), "message"), e.oddness))
	}
	return err
}

// echo prints messages.
type echo struct {
	a        *app
	f        *echoFlags
	ctx      context.Context
	o        msgtext.Options
	programs map[*topicEntry]*echoType
	buf      []byte
	odd      int
	oddness  shred.Reason
}

// echoType decodes the messages of a topic.
type echoType struct {
	p *shred.Program
	b *shred.Batch
	c *shred.Cursor
}

func (e *echo) message(m *topicMessage) error {
	e.buf = e.buf[:0]
	if e.f.clear && isTerminal(e.a.out) {
		e.buf = append(e.buf, "\x1b[2J\x1b[H"...)
	}
	if e.f.raw {
		e.buf = fmt.Appendf(e.buf, "%x\n---\n", m.data)
		return e.flush()
	}
	t, err := e.typeOf(m.topic)
	if err != nil {
		return err
	}
	t.b.Reset()
	t.c.Rewind()
	reason, err := t.p.AppendLoose(t.b, m.data)
	if err != nil {
		return fmt.Errorf("%s: message of %d bytes is no %s: %w; --raw shows it", m.topic.name, len(m.data), m.topic.typ, err)
	}
	if reason != shred.Canonical {
		if e.odd++; e.odd == 1 {
			e.oddness = reason
		}
	}
	s, err := t.p.Value(t.b, t.c)
	if err != nil {
		return err
	}
	if err := e.print(m, s); err != nil {
		return err
	}
	return e.flush()
}

func (e *echo) typeOf(topic *topicEntry) (*echoType, error) {
	if t := e.programs[topic]; t != nil {
		return t, nil
	}
	d, err := topic.describe(e.ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; --raw shows the bytes", topic.name, err)
	}
	p, err := shred.CompileWith(&d, shred.Options{SplitTimes: true})
	if err != nil {
		return nil, fmt.Errorf("%s: %w; --raw shows the bytes", topic.name, err)
	}
	t := &echoType{p: p, b: p.NewBatch(), c: p.NewCursor()}
	e.programs[topic] = t
	return t, nil
}

// print appends the text of a message.
func (e *echo) print(m *topicMessage, s shred.Struct) error {
	fields := e.f.fields
	if len(fields) == 0 {
		fields = []string{""}
	}
	if e.f.withInfo && e.f.csv {
		e.buf = fmt.Appendf(e.buf, "%d,%d,%d,", m.sent, m.recv, m.seq)
	} else if e.f.withInfo {
		e.buf = fmt.Appendf(e.buf, "source_timestamp: %d\nreceived_timestamp: %d\npublication_sequence_number: %d\n---\n", m.sent, m.recv, m.seq)
	}
	for i, path := range fields {
		var v any = s
		t := msg.Type{Base: msg.Nested}
		if path != "" {
			var err error
			if v, t, err = msgtext.Field(s, path); err != nil {
				return usageError("topic echo: %s has no such %w", m.topic.typ, err)
			}
		}
		switch {
		case e.f.csv:
			if i > 0 {
				e.buf = append(e.buf, ',')
			}
			e.buf = e.o.AppendCSV(e.buf, v, t)
		case path != "" && isText(v) && !e.f.noStr: // as it is, as ros2 does
			e.buf = append(append(e.buf, fmt.Sprint(v)...), '\n')
		default:
			e.buf = e.o.AppendYAML(e.buf, v, t)
		}
	}
	if e.f.csv {
		e.buf = append(e.buf, '\n')
	} else {
		e.buf = append(e.buf, "---\n"...)
	}
	return nil
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

func (e *echo) flush() error {
	_, err := e.a.out.Write(e.buf)
	return err
}
