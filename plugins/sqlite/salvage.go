package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// Salvage implements plugin.Salvager. It walks the pages of the file itself: first those that the tables' b-trees lead
// to, then every other leaf, whose rows are told apart by their shape. So what lies behind a damaged page is found too. A
// hot journal or a log counts, as in OpenReader. Messages come in the order of their ids. SQLite has no checksums: a
// payload that was changed in place comes as it is. Memory: 16 bytes a message, and 4 MiB or the
// largest message.
func (Driver) Salvage(ctx context.Context, path string, w plugin.Writer) (plugin.Report, error) {
	rep, err := salvage(ctx, path, w)
	if err != nil {
		return rep, fmt.Errorf("salvage storage %s: %w", path, err)
	}
	return rep, nil
}

const (
	salvageBatch = 4 << 20
	salvageMost  = 512 // messages of a batch
)

func salvage(ctx context.Context, path string, w plugin.Writer) (plugin.Report, error) {
	f, err := openFiles(path)
	if err != nil {
		return plugin.Report{}, err
	}
	s := &salvager{ctx: ctx, w: w, topics: map[int64]*plugin.Topic{}, rows: map[int64]topicRow{}, ids: map[int64]plugin.TopicID{}, seen: map[uint32]bool{}}
	err = s.run(f)
	return s.rep, errors.Join(err, f.close())
}

// salvager is one salvage.
type salvager struct {
	ctx  context.Context
	w    plugin.Writer
	rep  plugin.Report
	p    pages
	buf  []byte // a page
	buf2 []byte // an overflow page

	seen        map[uint32]bool // leaves that were read
	topics      map[int64]*plugin.Topic
	rows        map[int64]topicRow // of gobag_data, by topic id
	definitions []definitionRow
	packs       []ref
	messages    []ref
	state       state
	ours        bool // there is gobag_data
	badCells    uint64
	ids         map[int64]plugin.TopicID
}

// ref is where a row lies.
type ref struct {
	rowid int64
	page  uint32
	off   uint32
}

type definitionRow struct {
	typ, hash string
	plugin.Definition
}

func (s *salvager) note(format string, args ...any) {
	s.rep.Notes = append(s.rep.Notes, fmt.Sprintf(format, args...))
}

func (s *salvager) run(f *files) error {
	v, err := f.load()
	if err != nil {
		f.noLog = true // what it holds cannot be put on top of what is damaged
		if w, werr := f.load(); werr == nil {
			s.note("the log of syncs is left out: %v", err)
			v, err = w, nil
		}
	}
	headless := err != nil
	if headless {
		s.note("the head of the file is damaged: %v", err)
		if v, err = rawView(f); err != nil {
			return err
		}
	}
	if v.missing > 0 {
		s.note("the last %d bytes of the file are missing", v.missing*v.pageSize)
	}
	var reserved [1]byte
	if _, err := v.ReadAt(reserved[:], 20); err != nil {
		return err
	}
	s.p = pages{v: v, usable: int(v.pageSize)}
	if r := int(reserved[0]); !headless && s.p.usable-r >= 480 { // nobody reserves any, as far as bags go
		s.p.usable -= r
	}
	s.buf, s.buf2 = make([]byte, v.pageSize), make([]byte, v.pageSize)
	if err := s.walkTables(); err != nil {
		return err
	}
	if err := s.scan(); err != nil {
		return err
	}
	return s.deliver()
}

// guessSpan is how much of a file without a head is looked at for the size of its pages.
const guessSpan = 64 << 20

// rawView is the file as it lies there, for one whose head cannot be read. The size of its pages is that with which the
// most messages are found.
func rawView(f *files) (*view, error) {
	fi, err := f.db.Stat()
	if err != nil {
		return nil, err
	}
	var best *view
	most := 0
	buf := make([]byte, 64<<10)
	for size := int64(512); size <= 64<<10; size *= 2 {
		v := &view{f: f, pageSize: size, pages: fi.Size() / size, patches: map[uint32]patch{}}
		p := pages{v: v, usable: int(size)}
		if n := p.countMessages(buf); n > most {
			best, most = v, n
		}
	}
	if best == nil {
		return nil, fmt.Errorf("no message is found with any size of pages: %w", plugin.ErrFormat)
	}
	return best, nil
}

// countMessages counts the rows at the beginning of the file that can be messages.
func (p *pages) countMessages(buf []byte) (found int) {
	for n := uint32(2); n <= p.count() && int64(n)*p.v.pageSize <= guessSpan; n++ {
		var kind [1]byte
		if _, err := p.v.ReadAt(kind[:], (int64(n)-1)*p.v.pageSize); err != nil || kind[0] != pageLeaf {
			continue
		}
		b, err := p.read(n, buf)
		if err != nil {
			continue
		}
		for _, off := range cellOffsets(n, b) {
			c, err := p.parseCell(b, off)
			if err != nil {
				continue
			}
			var room [maxColumns]column
			if cols, err := columnsOf(c.local, c.size, room[:0]); err == nil && isMessage(cols) {
				found++
			}
		}
	}
	return found
}

// walkTables reads the tables that the schema on page 1 names, from their roots.
func (s *salvager) walkTables() error {
	roots := map[string]uint32{}
	err := s.walk(1, 0, func(n uint32, b []byte, off int) {
		rec, cols := s.small(b, off)
		if len(cols) == 5 && cols[0].isText() && cols[1].isText() && cols[3].isInt() && cols[0].text(rec) == "table" {
			if root := cols[3].int(rec); root > 1 && root <= int64(s.p.count()) {
				roots[cols[1].text(rec)] = uint32(root)
			}
		}
	})
	if err != nil {
		return err
	}
	for _, table := range []string{"topics", "message_definitions", "gobag_data", "messages"} {
		root, ok := roots[table]
		if !ok {
			if table == "topics" || table == "messages" {
				s.note("the schema does not lead to the table %s: its rows are told by their shape", table)
			}
			continue
		}
		if err := s.walk(root, 0, func(n uint32, b []byte, off int) { s.row(table, n, b, off) }); err != nil {
			return err
		}
	}
	return nil
}

// walk calls f for each cell of the leaves below page n.
func (s *salvager) walk(n uint32, depth int, f func(n uint32, b []byte, off int)) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if n == 0 || n > s.p.count() || s.seen[n] || depth > maxDepth {
		return nil
	}
	b, err := s.p.read(n, s.buf)
	if err != nil {
		return s.unreadable(n, err)
	}
	switch b[header(n)] {
	case pageLeaf:
		s.seen[n] = true
		for _, off := range cellOffsets(n, b) {
			f(n, b, off)
		}
	case pageInterior:
		s.seen[n] = true
		for _, child := range childPages(n, b) {
			if err := s.walk(child, depth+1, f); err != nil {
				return err
			}
		}
	default:
		s.note("page %d (byte %d) is damaged", n, (int64(n)-1)*s.p.v.pageSize)
	}
	return nil
}

// unreadable passes over a page that the medium does not give.
func (s *salvager) unreadable(n uint32, err error) error {
	if s.ctx.Err() != nil {
		return s.ctx.Err()
	}
	s.note("page %d (byte %d) cannot be read: %v", n, (int64(n)-1)*s.p.v.pageSize, err)
	return nil
}

// scan looks at every page that no table led to.
func (s *salvager) scan() error {
	found := 0
	for n := uint32(2); n <= s.p.count(); n++ {
		if n%4096 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		if s.seen[n] {
			continue
		}
		var kind [1]byte
		if _, err := s.p.v.ReadAt(kind[:], (int64(n)-1)*s.p.v.pageSize); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			continue
		}
		if kind[0] != pageLeaf {
			continue
		}
		b, err := s.p.read(n, s.buf)
		if err != nil {
			continue
		}
		found++
		for _, off := range cellOffsets(n, b) {
			s.row("", n, b, off)
		}
	}
	if found > 0 {
		s.note("%d pages that no table leads to any more were read", found)
	}
	return nil
}

// small returns the record and the columns of a row that is no message.
func (s *salvager) small(b []byte, off int) ([]byte, []column) {
	c, err := s.p.parseCell(b, off)
	if err != nil || c.size > maxText {
		return nil, nil
	}
	rec, err := s.p.record(c, nil, s.buf2)
	if err != nil {
		return nil, nil
	}
	cols, err := columnsOf(rec, c.size, nil)
	if err != nil {
		return nil, nil
	}
	return rec, cols
}

// row takes a row of a table; "" where it is not known of which.
func (s *salvager) row(table string, n uint32, b []byte, off int) {
	c, err := s.p.parseCell(b, off)
	if err != nil {
		s.bad(table)
		return
	}
	var room [maxColumns]column
	cols, err := columnsOf(c.local, c.size, room[:0])
	if err != nil || len(cols) < 2 || !cols[0].isNull() && !cols[0].isInt() {
		s.bad(table)
		return
	}
	at := ref{c.rowid, n, uint32(off)}
	texts := 0
	for _, col := range cols[1:] {
		if col.isText() {
			texts++
		}
	}
	switch {
	case isMessage(cols) && (table == "" || table == "messages"):
		s.messages = append(s.messages, at)
	case table == "messages":
		s.bad(table)
	case len(cols) == 2 && cols[1].isBlob() && (table == "" || table == "gobag_data"):
		s.ownRow(at, b, off)
	case texts == len(cols)-1 && texts >= 3 && texts <= 5:
		s.textRow(table, c.rowid, b, off)
	}
}

// bad counts rows of the table messages that are destroyed.
func (s *salvager) bad(table string) {
	if table == "messages" {
		s.badCells++
	}
}

func isMessage(cols []column) bool {
	return len(cols) == 4 && cols[1].isInt() && cols[2].isInt() && (cols[3].isBlob() || cols[3].isText())
}

// ownRow takes a row of gobag_data.
func (s *salvager) ownRow(at ref, b []byte, off int) {
	s.ours = true
	if at.rowid > 0 {
		s.packs = append(s.packs, at)
		return
	}
	rec, cols := s.small(b, off)
	if cols == nil {
		return
	}
	data := rec[cols[1].at:]
	if at.rowid == stateRow {
		if err := json.Unmarshal(data, &s.state); err != nil {
			s.note("the state row is damaged: %v", err)
		}
		return
	}
	row, err := parseTopicRow(at.rowid, data)
	if err != nil {
		s.note("%v", err)
		return
	}
	s.rows[-at.rowid] = row
}

// textRow takes a topic or a definition.
func (s *salvager) textRow(table string, rowid int64, b []byte, off int) {
	rec, cols := s.small(b, off)
	if cols == nil {
		return
	}
	var t []string
	for _, c := range cols[1:] {
		t = append(t, c.text(rec))
	}
	if table == "" && len(t) == 4 {
		switch t[1] {
		case "ros2msg", "ros2idl", "unknown", "":
			table = "message_definitions"
		}
	}
	if table == "message_definitions" {
		if len(t) == 4 {
			s.definitions = append(s.definitions, definitionRow{t[0], t[3], plugin.Definition{Encoding: t[1], Text: t[2]}})
		}
		return
	}
	if table == "" && !strings.Contains(t[1], "/") || s.topics[rowid] != nil {
		return
	}
	topic := &plugin.Topic{Name: t[0], Type: t[1], SerializationFormat: t[2]}
	if len(t) > 3 {
		topic.OfferedQoS = t[3]
	}
	if len(t) > 4 {
		topic.TypeHash = t[4]
	}
	s.topics[rowid] = topic
}

// deliver hands over what was found.
func (s *salvager) deliver() error {
	byID := func(a, b ref) int { return cmpInt(a.rowid, b.rowid) }
	same := func(a, b ref) bool { return a.rowid == b.rowid }
	slices.SortStableFunc(s.messages, byID) // what a table led to goes before what lay about
	s.messages = slices.CompactFunc(s.messages, same)
	slices.SortStableFunc(s.packs, byID)
	s.packs = slices.CompactFunc(s.packs, same)
	for _, row := range slices.Sorted(keys(s.topics)) {
		if _, err := s.topic(row); err != nil {
			return err
		}
	}
	d := delivery{s: s}
	for _, m := range s.messages {
		if err := d.take(m); err != nil {
			return err
		}
	}
	if err := d.flush(); err != nil {
		return err
	}
	s.countLost(&d)
	return nil
}

func keys(m map[int64]*plugin.Topic) func(func(int64) bool) {
	return func(yield func(int64) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// topic adds a topic by its id in the table and returns the writer's id.
func (s *salvager) topic(row int64) (plugin.TopicID, error) {
	if id, ok := s.ids[row]; ok {
		return id, nil
	}
	t := s.topics[row]
	if t == nil {
		t = &plugin.Topic{Name: fmt.Sprintf("/salvaged/topic_%d", row), Type: "unknown/msg/Unknown"}
		s.note("topic %d is lost; its messages are kept as %s", row, t.Name)
	}
	own := s.rows[row]
	t.Sources = own.sources
	if t.TypeHash == "" {
		t.TypeHash = own.typeHash
	}
	t.Definition = own.definition
	for _, d := range s.definitions {
		if d.typ == t.Type && (d.hash == t.TypeHash || t.Definition.Text == "") && d.Text != "" {
			t.Definition = d.Definition
			if d.hash == t.TypeHash {
				break
			}
		}
	}
	id, err := s.w.AddTopic(*t)
	if err == nil {
		s.ids[row] = id
	}
	return id, err
}

// countLost works out how many messages are gone: those that packs name, those that the state counts, or where there is
// neither the gaps in the ids, which rosbag2 gives without any.
func (s *salvager) countLost(d *delivery) {
	kept := s.rep.Messages
	lost := d.broken
	if s.ours {
		lost = max(lost, d.missing(), s.badCells)
		if s.state.Closed && s.state.Messages > kept {
			lost = max(lost, s.state.Messages-kept)
		}
	} else if n := len(s.messages); n > 0 {
		if span := uint64(s.messages[n-1].rowid); s.messages[0].rowid > 0 && span > kept && span-kept < 1<<40 {
			lost = max(lost, span-kept)
			s.note("%d ids are missing between 1 and %d", span-kept, span)
		}
	}
	s.rep.Lost = lost
}

// delivery is messages on their way to the writer.
type delivery struct {
	s       *salvager
	batch   []plugin.Message
	arena   []byte
	page    uint32 // in s.buf
	at      int    // the next pack
	extras  []extra
	found   int
	broken  uint64
	named   uint64 // messages that packs name
	known   uint64 // of those delivered
	pageBuf []byte
}

// take reads one message.
func (d *delivery) take(m ref) error {
	s := d.s
	if d.page != m.page || d.pageBuf == nil {
		b, err := s.p.read(m.page, s.buf)
		if err != nil {
			d.broken++
			return s.unreadable(m.page, err)
		}
		d.page, d.pageBuf = m.page, b
	}
	c, err := s.p.parseCell(d.pageBuf, int(m.off))
	if err != nil {
		d.broken++
		return nil //nolint:nilerr // it is counted
	}
	at := len(d.arena)
	arena, err := s.p.record(c, d.arena, s.buf2)
	if err != nil {
		d.broken++
		s.noteSome(d.broken, err)
		return s.ctx.Err()
	}
	d.arena = arena
	rec := arena[at:]
	var room [maxColumns]column
	cols, err := columnsOf(rec, c.size, room[:0])
	if err != nil || !isMessage(cols) {
		d.broken++
		return nil //nolint:nilerr // it is counted
	}
	id, err := s.topic(cols[1].int(rec))
	if err != nil {
		return err
	}
	msg := plugin.Message{Topic: id, RecvTime: cols[2].int(rec), Data: rec[cols[3].at:len(rec):len(rec)]}
	if c.rowid > 0 {
		msg.Order = uint64(c.rowid)
	}
	if e := d.extra(c.rowid); e != nil {
		msg.Source, msg.Seq = e.source, e.seq
		if e.hasSend {
			msg.SendTime = msg.RecvTime + e.sendDelta
		}
		d.known++
	}
	d.batch = append(d.batch, msg)
	if len(d.batch) >= salvageMost || len(d.arena) >= salvageBatch {
		return d.flush()
	}
	return nil
}

// noteSome notes the first few of many.
func (s *salvager) noteSome(n uint64, err error) {
	const some = 5
	if n <= some {
		s.note("%v", err)
	} else if n == some+1 {
		s.note("and more of them")
	}
}

// extra returns what the packs say of a message.
func (d *delivery) extra(id int64) *extra {
	for d.at < len(d.s.packs) && d.s.packs[d.at].rowid <= id {
		d.nextPack()
	}
	return find(d.extras, id, &d.found)
}

func (d *delivery) nextPack() {
	s := d.s
	p := s.packs[d.at]
	d.at++
	d.extras, d.found = nil, -1
	d.pageBuf = nil // the page is read into the same buffer
	b, err := s.p.read(p.page, s.buf)
	if err != nil {
		return
	}
	rec, cols := s.small(b, int(p.off))
	if cols == nil {
		return
	}
	_, extras, err := parsePack(p.rowid, rec[cols[1].at:], false)
	if err != nil {
		s.noteSome(uint64(d.at), err)
		return
	}
	d.extras = extras
	d.named += uint64(len(extras))
}

// missing returns how many messages packs name that were not delivered.
func (d *delivery) missing() uint64 {
	for d.at < len(d.s.packs) {
		d.nextPack()
	}
	return d.named - d.known
}

func (d *delivery) flush() error {
	if err := d.s.ctx.Err(); err != nil {
		return err
	}
	if len(d.batch) == 0 {
		return nil
	}
	if err := d.s.w.Write(d.batch); err != nil {
		return err
	}
	d.s.rep.Messages += uint64(len(d.batch))
	clear(d.batch)
	d.batch = d.batch[:0]
	if cap(d.arena) > 4*salvageBatch {
		d.arena = nil
	}
	d.arena = d.arena[:0]
	return nil
}
