//go:build linux

package lab

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/all" // the formats that bags are in
)

// Line is a message as every reader of bags can tell it.
type Line struct {
	Topic, Type string
	Stamp       int64 // ns
	Length      int
	Hash        uint64
}

// sortLines puts lines into one order for all readers; those of one topic with equal stamps by content.
func sortLines(all []Line) {
	slices.SortFunc(all, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Stamp, b.Stamp), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Length, b.Length),
			cmp.Compare(a.Hash, b.Hash))
	})
}

// EachMessage hands every message of a bag to f in the bag's order, read with gobag's own package. Data is valid during
// the call.
func EachMessage(dir string, f func(topic plugin.Topic, m *plugin.Message) error) (err error) {
	r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	topics := map[plugin.TopicID]plugin.Topic{}
	for _, t := range r.Info().Topics {
		topics[t.ID] = t.Topic
	}
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for {
		var m plugin.Message
		if err := it.Next(&m); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		t, ok := topics[m.Topic]
		if !ok {
			return fmt.Errorf("read %s: message of topic %d, which Info does not name", dir, m.Topic)
		}
		if err := f(t, &m); err != nil {
			return err
		}
	}
}

// ReadOwn reads a bag with gobag's own package.
func ReadOwn(dir string) ([]Line, error) {
	var all []Line
	err := EachMessage(dir, func(t plugin.Topic, m *plugin.Message) error {
		all = append(all, Line{Topic: t.Name, Type: t.Type, Stamp: m.RecvTime, Length: len(m.Data), Hash: FNV1a(m.Data)})
		return nil
	})
	sortLines(all)
	return all, err
}

// ReadSQLite reads the .db3 files of a bag with the sqlite3 program and rosbag2's tables.
func ReadSQLite(dir string) ([]Line, error) {
	program, err := Tool("sqlite3")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.db3"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("read %s: no .db3 file", dir)
	}
	var all []Line
	for _, file := range files {
		var stderr bytes.Buffer
		cmd := exec.Command(program, "-readonly", "-batch", "-separator", " ", file,
			"select t.name, t.type, m.timestamp, hex(m.data) from messages m join topics t on t.id = m.topic_id")
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		lines, err := scanLines(out, func(f []string) (Line, error) {
			l := Line{Topic: f[0], Type: f[1]}
			var errs [2]error
			l.Stamp, errs[0] = strconv.ParseInt(f[2], 10, 64)
			var data []byte
			data, errs[1] = hex.DecodeString(f[3])
			l.Length, l.Hash = len(data), FNV1a(data)
			return l, firstError(errs[:])
		}, 4)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			return nil, fmt.Errorf("sqlite3 %s: %w: %s", file, err, strings.TrimSpace(stderr.String()))
		}
		all = append(all, lines...)
	}
	sortLines(all)
	return all, nil
}

// ReadNode reads a bag with @foxglove/rosbag2. The whole bag is held in memory.
func ReadNode(dir string) ([]Line, error) {
	command, err := NodeReader()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.Command(command[0], append(command[1:], dir)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read %s with node: %w: %s", dir, err, strings.TrimSpace(stderr.String()))
	}
	all, err := scanLines(bytes.NewReader(out), func(f []string) (Line, error) {
		l := Line{Topic: f[0], Type: f[1]}
		var errs [3]error
		l.Stamp, errs[0] = strconv.ParseInt(f[2], 10, 64)
		l.Length, errs[1] = strconv.Atoi(f[3])
		l.Hash, errs[2] = strconv.ParseUint(f[4], 16, 64)
		return l, firstError(errs[:])
	}, 5)
	sortLines(all)
	return all, err
}

// StoredDefinition is a row of the table message_definitions of a bag in sqlite3.
type StoredDefinition struct {
	Type     string `json:"topic_type"`
	Encoding string `json:"encoding"`
	Text     string `json:"encoded_message_definition"`
	Hash     string `json:"type_description_hash"`
}

// DecodedMessage is a message that was decoded with the definition in its bag.
type DecodedMessage[T any] struct {
	Stamp int64 `json:"stamp,string"` // ns
	Value T     `json:"value"`
}

// DecodeNode reads the messages of a topic with @foxglove/rosmsg2-serialization, which knows nothing of the type but the
// definition that the bag holds. It fails where the bag holds none.
func DecodeNode[T any](dir, topic string) (StoredDefinition, []DecodedMessage[T], error) {
	var d StoredDefinition
	command, err := NodeScript("decode.js")
	if err != nil {
		return d, nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.Command(command[0], append(command[1:], dir, topic)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return d, nil, fmt.Errorf("decode %s of %s with node: %w: %s", topic, dir, err, strings.TrimSpace(stderr.String()))
	}
	lines := json.NewDecoder(bytes.NewReader(out))
	if err := lines.Decode(&d); err != nil {
		return d, nil, fmt.Errorf("decode %s of %s with node: definition: %w", topic, dir, err)
	}
	var all []DecodedMessage[T]
	for lines.DisallowUnknownFields(); ; {
		var m DecodedMessage[T]
		if err := lines.Decode(&m); errors.Is(err, io.EOF) {
			return d, all, nil
		} else if err != nil {
			return d, all, fmt.Errorf("decode %s of %s with node: message %d: %w", topic, dir, len(all), err)
		}
		all = append(all, m)
	}
}

func scanLines(r io.Reader, parse func([]string) (Line, error), fields int) ([]Line, error) {
	var all []Line
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		text, err := in.ReadString('\n')
		if text = strings.TrimSpace(text); text != "" {
			f := strings.Fields(text)
			if len(f) != fields {
				return nil, fmt.Errorf("line with %d fields, want %d: %.80s", len(f), fields, text)
			}
			l, err := parse(f)
			if err != nil {
				return nil, err
			}
			all = append(all, l)
		}
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// SameLines says where two readings of a bag differ; nil where they are equal.
func SameLines(nameA string, a []Line, nameB string, b []Line) error {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Errorf("message %d of %d: %s reads %+v, %s reads %+v", i, len(a), nameA, a[i], nameB, b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Errorf("%s reads %d messages, %s %d", nameA, len(a), nameB, len(b))
	}
	return nil
}
