package sqlite

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// description is what a reader knows of its storage.
type description struct {
	info    plugin.Info
	topicOf map[int64]plugin.TopicID // by id in the table topics
	rowsOf  [][]int64                // ids in the table topics, by TopicID − 1
	index   string                   // an index that begins with the time stamp; "" = there is none
	lastID  int64                    // of the messages that were there at opening
	packed  bool                     // there is a table gobag_data
	settled bool
	state   state
}

// tally is the count of messages, taken in steps so that a storage being written can be counted too: rows behind last
// are counted in the next step, and what was counted stays right since rows are only ever added.
type tally struct {
	last   int64
	topics map[int64]*count // by id in the table topics
	done   bool
	limit  int   // rows in a step; smaller each time that the storage changed before the step was complete
	damage error // what ended the count early
}

type count struct {
	messages uint64
	bytes    int64
	min, max int64
}

func newTally() *tally { return &tally{last: math.MinInt64, topics: map[int64]*count{}} }

func (t *tally) at(topic int64) *count {
	c := t.topics[topic]
	if c == nil {
		c = &count{min: math.MaxInt64, max: math.MinInt64}
		t.topics[topic] = c
	}
	return c
}

func (t *tally) add(o *tally) {
	t.last, t.done = max(t.last, o.last), t.done || o.done
	if o.damage != nil {
		t.damage = o.damage
	}
	for id, c := range o.topics {
		d := t.at(id)
		d.messages += c.messages
		d.bytes += c.bytes
		d.min, d.max = min(d.min, c.min), max(d.max, c.max)
	}
}

// countStep is the number of rows in the first step of a count.
const countStep = 4096

// A storage is described in stages, each of which is read at one moment: of one that is being written a stage may be
// later than the one before, which does not matter, since topics and messages are only added. What the count is to be
// true of is read together with its last step; topics are read after it, so that none is missing.
type stage int

const (
	stageSchema stage = iota
	stageCount
	stageTopics
	stageDone
)

// describe returns d with what the stage adds, the step of the count if it is that stage, and the next stage.
func describe(vc *viewConn, d description, t *tally, st stage) (description, *tally, stage, error) {
	step := newTally()
	d.info.Warnings = slices.Clip(d.info.Warnings)
	switch st {
	case stageSchema:
		d = description{topicOf: map[int64]plugin.TopicID{}}
		d.info.Start = plugin.NoStart
		if err := d.readSchema(vc.conn); err != nil {
			return d, step, st, err
		}
		return d, step, stageCount, d.readState(vc)
	case stageCount:
		if err := d.count(vc.conn, t, step); err != nil || !step.done {
			return d, step, st, err
		}
		return d, step, stageTopics, d.readBounds(vc.conn, vc.v.missing > 0)
	default:
		d.topicOf = map[int64]plugin.TopicID{}
		return d, step, stageDone, d.readTopics(vc.conn)
	}
}

// readSchema finds out which of rosbag2's schemas the tables have.
func (d *description) readSchema(c *conn) error {
	topics, err := columns(c, "topics")
	if err != nil {
		return err
	}
	messages, err := columns(c, "messages")
	if err != nil {
		return err
	}
	for _, want := range []struct {
		table string
		have  map[string]bool
		names []string
	}{{"topics", topics, []string{"id", "name", "type"}}, {"messages", messages, []string{"topic_id", "timestamp", "data"}}} {
		for _, n := range want.names {
			if !want.have[n] {
				return fmt.Errorf("a SQLite database, but no bag: table %s has no column %s: %w", want.table, n, plugin.ErrFormat)
			}
		}
	}
	version := int64(1)
	if topics["offered_qos_profiles"] {
		version = 2
	}
	if has, err := columns(c, "schema"); err != nil {
		return err
	} else if has["schema_version"] {
		v, ok, err := c.queryInt("SELECT max(schema_version) FROM schema")
		if err != nil {
			return err
		}
		if ok {
			version = v
		}
		if has["ros_distro"] {
			if d.info.ROSDistro, err = c.queryText("SELECT ros_distro FROM schema ORDER BY schema_version DESC LIMIT 1"); err != nil {
				return err
			}
		}
	}
	d.info.Format = fmt.Sprintf("schema %d", version)
	if version > 4 {
		d.warn("schema %d is newer than the ones known here (1 to 4)", version)
	}
	if has, err := columns(c, "metadata"); err != nil {
		return err
	} else if has["metadata"] && has["metadata_version"] {
		err := c.query("SELECT metadata_version, metadata FROM metadata ORDER BY rowid DESC LIMIT 1", func(s *stmt) error {
			d.info.Metadata = plugin.Metadata{Version: int(s.int64(0)), Text: s.text(1)}
			return nil
		})
		if err != nil {
			return err
		}
	}
	d.index, err = stampIndex(c)
	if err == nil && d.index == "" {
		d.warn("no index on the time stamps: reading sorts in memory, 16 bytes a message")
	}
	return err
}

func (d *description) warn(format string, args ...any) {
	d.info.Warnings = append(d.info.Warnings, fmt.Sprintf(format, args...))
}

// columns returns the names of a table's columns; none where there is no such table.
func columns(c *conn, table string) (map[string]bool, error) {
	names := map[string]bool{}
	err := c.query("SELECT name FROM pragma_table_info(?)", func(s *stmt) error {
		names[s.text(0)] = true
		return nil
	}, table)
	return names, err
}

// stampIndex returns the name of a complete index on messages whose first column is the time stamp.
func stampIndex(c *conn) (string, error) {
	name, err := c.queryText(`SELECT l.name FROM pragma_index_list('messages') AS l, pragma_index_info(l.name) AS i
		WHERE i.seqno = 0 AND i.name = 'timestamp' AND l.partial = 0
		AND (SELECT count(*) FROM pragma_index_info(l.name)) = 1 LIMIT 1`)
	return name, err
}

// readState reads what gobag keeps beside rosbag2's tables, and whether it can be believed.
func (d *description) readState(vc *viewConn) error {
	has, err := columns(vc.conn, "gobag_data")
	if err != nil || !has["id"] || !has["data"] {
		return err
	}
	const leftOut = "send times, sources and sequence numbers are left out"
	var row []byte
	err = vc.query("SELECT data FROM gobag_data WHERE id = ?", func(s *stmt) error {
		row = append(row, s.blob(0)...)
		return nil
	}, stateRow)
	if damaged(err) {
		d.warn("table gobag_data is damaged: %s (%v)", leftOut, err)
		return nil
	}
	if err != nil || row == nil {
		return err
	}
	if err := json.Unmarshal(row, &d.state); err != nil {
		d.warn("table gobag_data is of a format unknown here: %s (%v)", leftOut, err)
		return nil //nolint:nilerr // the messages can be read without it
	}
	if d.state.Format != 1 {
		d.warn("table gobag_data is of a format unknown here: %s", leftOut)
		return nil
	}
	d.packed = true
	if !d.state.Closed {
		return nil
	}
	var b [4]byte
	if _, err := vc.v.ReadAt(b[:], 24); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	last, _, err := vc.queryInt("SELECT max(rowid) FROM messages")
	if err != nil && !damaged(err) {
		return err
	}
	d.settled = err == nil && !vc.v.hot && vc.v.missing == 0 && last == d.state.LastID &&
		vc.v.pages == d.state.Pages && binary.BigEndian.Uint32(b[:]) == d.state.ChangeCounter
	return nil
}

// count takes the next step of the count: from the state of a settled storage all of it, else from the packs, which
// are written together with their messages, or where there are none from the messages themselves.
func (d *description) count(c *conn, t, step *tally) error {
	switch {
	case d.settled:
		for _, tc := range d.state.Topics {
			ct := step.at(int64(tc.ID))
			ct.messages, ct.bytes = tc.Count, tc.Bytes
		}
		step.done = true
		return nil
	case d.packed && !d.state.Closed:
		return d.countPacks(c, t, step)
	}
	return d.countMessages(c, t, step)
}

func (d *description) countPacks(c *conn, t, step *tally) error {
	n := 0
	err := c.query("SELECT id, data FROM gobag_data WHERE id > max(0, ?) ORDER BY id LIMIT ?", func(s *stmt) error {
		n++
		step.last = s.int64(0)
		totals, _, err := parsePack(step.last, s.blob(1), true)
		for _, p := range totals {
			ct := step.at(int64(p.topic))
			ct.messages += p.count
			ct.bytes += int64(p.bytes)
		}
		return err
	}, t.last, t.limit)
	step.done = n < t.limit
	if damaged(err) || errors.Is(err, errPack) {
		step.done, step.damage = true, err
		return nil
	}
	return err
}

func (d *description) countMessages(c *conn, t, step *tally) error {
	n := 0
	err := c.query("SELECT rowid, topic_id, timestamp, length(data) FROM messages WHERE rowid > ? ORDER BY rowid LIMIT ?", func(s *stmt) error {
		n++
		step.last = s.int64(0)
		ct := step.at(s.int64(1))
		ct.messages++
		ct.bytes += s.int64(3)
		ct.min, ct.max = min(ct.min, s.int64(2)), max(ct.max, s.int64(2))
		return nil
	}, t.last, t.limit)
	step.done = n < t.limit
	if damaged(err) {
		// What can still be reached is worth showing; reading the messages will say where it ends.
		step.done, step.damage = true, err
		return nil
	}
	return err
}

// readBounds finds the last row, and by the index the first and last stamp. The end of a file that is cut off is missing
// in the index too, but what is there of it leads to the messages that are there.
func (d *description) readBounds(c *conn, cut bool) error {
	var err error
	if d.lastID, _, err = c.queryInt("SELECT max(rowid) FROM messages"); damaged(err) {
		d.lastID = math.MaxInt64 // reading the messages will say where it ends
	} else if err != nil {
		return err
	}
	if d.settled {
		d.info.Start, d.info.End = d.state.Start, d.state.End
	}
	if d.index == "" {
		return nil // known from the state or the count
	}
	lo, ok, err := c.queryInt("SELECT min(timestamp) FROM messages")
	if err == nil && ok {
		var hi int64
		if hi, _, err = c.queryInt("SELECT max(timestamp) FROM messages"); err == nil {
			d.info.Start, d.info.End = lo, hi
		} else if cut && damaged(err) {
			return nil
		}
	}
	if damaged(err) {
		d.warn("the index on the time stamps is damaged: reading sorts in memory, 16 bytes a message (%v)", err)
		d.index = ""
		return nil
	}
	return err
}

// finishInfo puts the count into the description.
func (d *description) finishInfo(t *tally, v *view) {
	orphans, known := uint64(0), false
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for row, c := range t.topics {
		id, ok := d.topicOf[row]
		if !ok {
			orphans += c.messages
			continue
		}
		ti := &d.info.Topics[id-1]
		ti.Count += c.messages
		ti.Bytes += c.bytes
		d.info.Messages += c.messages
		if c.min <= c.max {
			lo, hi, known = min(lo, c.min), max(hi, c.max), true
		}
	}
	switch {
	case d.info.Messages == 0:
		d.info.Start, d.info.End = plugin.NoStart, 0
	case known:
		d.info.Start, d.info.End = lo, hi
	}
	if orphans > 0 {
		d.warn("%d messages belong to no topic and are left out", orphans)
	}
	if t.damage != nil {
		d.warn("damaged: counted is what can be read before the damage (%v)", t.damage)
	}
	if v.missing > 0 {
		d.warn("cut off: the last %d bytes of the file are missing", v.missing*v.pageSize)
	}
	d.info.Size = v.f.bytesOnDisk()
	d.info.Unclean = v.hot || v.missing > 0 || t.damage != nil || d.packed && !d.state.Closed || d.onlyOpened()
}

// onlyOpened says whether the description inside is the one that rosbag2 stores on opening: it counts no messages
// although there are some.
func (d *description) onlyOpened() bool {
	return d.info.Messages > 0 && strings.Contains("\n"+d.info.Metadata.Text, "\nmessage_count: 0\n")
}
