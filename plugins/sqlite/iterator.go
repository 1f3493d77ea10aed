package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/plugin"
)

// key is the place of a message in the order.
type key struct{ stamp, id int64 }

func (a key) compare(b key) int {
	return cmp.Or(cmp.Compare(a.stamp, b.stamp), cmp.Compare(a.id, b.id))
}

// sqlTopics is the largest number of topics that a query names; more are picked out in Go.
const sqlTopics = 500

// cursor reads the rows of a query from one connection.
type cursor struct {
	r     *reader
	vc    *viewConn
	rows  *stmt // id, topic, stamp, data; without an index for the one id that is bound
	keys  []key // without an index: what is to be read
	byKey bool
	want  map[plugin.TopicID]bool // nil = all, or picked by the statement
	packs *packCache
	last  key // of the row read last
	done  bool
}

// newCursor starts reading q, after the message at after if that is not nil.
func (r *reader) newCursor(vc *viewConn, q plugin.Query, after *key) (*cursor, error) {
	cu := &cursor{r: r, vc: vc, packs: &packCache{path: r.path, c: vc.conn}}
	var where []string
	var args []any
	cond := func(sql string, a ...any) {
		where = append(where, sql)
		args = append(args, a...)
	}
	if t := q.Range; t != nil {
		cond("timestamp >= ? AND timestamp <= ?", t.Start, t.End)
	}
	if after != nil && !q.Reverse {
		cond("timestamp >= ? AND (timestamp > ? OR +rowid > ?)", after.stamp, after.stamp, after.id)
	} else if after != nil {
		cond("timestamp <= ? AND (timestamp < ? OR +rowid < ?)", after.stamp, after.stamp, after.id)
	}
	if !r.settled {
		cond("+rowid <= ?", r.lastID)
	}
	if q.Topics != nil {
		var rows []any
		cu.want = map[plugin.TopicID]bool{}
		for _, id := range q.Topics {
			if id >= 1 && int(id) <= len(r.rowsOf) && !cu.want[id] {
				cu.want[id] = true
				for _, row := range r.rowsOf[id-1] {
					rows = append(rows, row)
				}
			}
		}
		if cu.done = len(rows) == 0; cu.done {
			return cu, nil
		}
		if len(rows) <= sqlTopics {
			cond("+topic_id IN (?"+strings.Repeat(",?", len(rows)-1)+")", rows...)
			cu.want = nil
		}
	}
	filter := ""
	if len(where) > 0 {
		filter = " WHERE " + strings.Join(where, " AND ")
	}
	if r.index == "" {
		return cu, cu.sortKeys(filter, args, q.Reverse)
	}
	dir := "ASC"
	if q.Reverse {
		dir = "DESC"
	}
	return cu, cu.prepare("SELECT rowid, topic_id, timestamp, data FROM messages INDEXED BY "+quote(r.index)+filter+
		" ORDER BY timestamp "+dir+", rowid "+dir, args...)
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (cu *cursor) prepare(sql string, args ...any) (err error) {
	if cu.rows, err = cu.vc.prepare(sql); err != nil {
		return err
	}
	if err = cu.rows.bind(args...); err != nil {
		cu.close()
	}
	return err
}

// sortKeys reads the stamps of a table without an index and sorts them here: SQLite would sort the payloads along.
func (cu *cursor) sortKeys(filter string, args []any, reverse bool) error {
	cu.byKey = true
	err := cu.vc.query("SELECT timestamp, rowid FROM messages NOT INDEXED"+filter, func(s *stmt) error {
		cu.keys = append(cu.keys, key{s.int64(0), s.int64(1)})
		return nil
	}, args...)
	if err != nil {
		return err
	}
	slices.SortFunc(cu.keys, key.compare)
	if reverse {
		slices.Reverse(cu.keys)
	}
	return cu.prepare("SELECT rowid, topic_id, timestamp, data FROM messages WHERE rowid = ?")
}

// next reads the next message. Its data is lent by SQLite until the next call.
func (cu *cursor) next(m *plugin.Message) error {
	for {
		if cu.done {
			return io.EOF
		}
		if cu.byKey {
			if len(cu.keys) == 0 {
				cu.done = true
				continue
			}
			err := errors.Join(cu.rows.reset(), cu.rows.bindInt64(1, cu.keys[0].id))
			if err != nil {
				return cu.fail(err)
			}
			cu.keys = cu.keys[1:]
		}
		ok, err := cu.rows.step()
		if err != nil {
			return cu.fail(err)
		}
		if !ok {
			cu.done = !cu.byKey
			if cu.byKey {
				return cu.fail(&plugin.CorruptError{Path: cu.r.path, Offset: -1, Err: errors.New("a message vanished while it was read")})
			}
			continue
		}
		if taken, err := cu.take(m); err != nil || taken {
			return err
		}
	}
}

// take fills m from the row; false if the row is none of the query's.
func (cu *cursor) take(m *plugin.Message) (bool, error) {
	s := cu.rows
	id, topic, stamp := s.int64(0), s.int64(1), s.int64(2)
	cu.last = key{stamp, id}
	t, ok := cu.r.topicOf[topic]
	if !ok || cu.want != nil && !cu.want[t] {
		return false, nil
	}
	if ty := s.columnType(2); ty != sqlite3.SQLITE_INTEGER {
		return false, cu.fail(&plugin.CorruptError{Path: cu.r.path, Offset: -1, Err: fmt.Errorf("message %d: the time stamp is no integer", id)})
	}
	if ty := s.columnType(3); ty != sqlite3.SQLITE_BLOB && ty != sqlite3.SQLITE_TEXT {
		return false, cu.fail(&plugin.CorruptError{Path: cu.r.path, Offset: -1, Err: fmt.Errorf("message %d: the payload is no blob", id)})
	}
	*m = plugin.Message{Topic: t, RecvTime: stamp, Order: uint64(max(id, 0)), Data: s.blob(3)}
	if cu.r.packed {
		e, err := cu.packs.find(id)
		if err != nil {
			return false, cu.fail(err)
		}
		if e != nil {
			m.Source, m.Seq = e.source, e.seq
			if e.hasSend {
				m.SendTime = stamp + e.sendDelta
			}
		}
	}
	return true, nil
}

func (cu *cursor) fail(err error) error {
	var corrupt *plugin.CorruptError
	err = cu.vc.explain(err)
	if errors.As(err, &corrupt) && cu.last != (key{}) {
		corrupt.Err = fmt.Errorf("behind message %d of time %d: %w", cu.last.id, cu.last.stamp, corrupt.Err)
	}
	return err
}

func (cu *cursor) close() {
	if cu.rows != nil {
		cu.rows.finalize()
		cu.rows = nil
	}
	cu.packs.close()
	cu.done = true
}

// iterator reads a settled storage.
type iterator struct {
	cu     *cursor
	err    error // of Next; stays
	closed bool
}

func (it *iterator) Next(m *plugin.Message) error {
	if it.closed {
		return plugin.ErrClosed
	}
	if it.err == nil {
		it.err = it.cu.next(m)
	}
	return it.err
}

func (it *iterator) Close() error {
	if it.closed {
		return nil
	}
	it.closed = true
	it.cu.close()
	return it.cu.r.giveBack(it.cu.vc)
}

// One page of a pagedIterator is at most about this large, but at least one message. It is made smaller each time the
// storage changes before the page is complete.
const (
	pageBytes    = 1 << 20
	pageMessages = 2048
)

// pagedIterator reads a storage that may be being written: it copies a page of messages, makes sure that the storage
// was the same all the while, and only then hands them out. If it was not, the page is read again from a new view.
type pagedIterator struct {
	r      *reader
	q      plugin.Query
	vc     *viewConn
	cu     *cursor
	page   []plugin.Message
	data   []byte // of the page's messages
	at     int
	limit  int   // messages in the next page
	after  *key  // of the last message handed over to a page
	err    error // comes after the page
	closed bool
}

func (it *pagedIterator) Next(m *plugin.Message) error {
	if it.closed {
		return plugin.ErrClosed
	}
	if it.at == len(it.page) {
		if it.err == nil {
			it.fill()
		}
		if it.at == len(it.page) {
			return it.err
		}
	}
	*m = it.page[it.at]
	it.at++
	return nil
}

// fill reads the next page, and err if it is the last one.
func (it *pagedIterator) fill() {
	for start := time.Now(); ; {
		err := it.tryFill()
		if it.vc != nil {
			still, markErr := it.vc.v.current()
			if markErr != nil {
				it.page, it.err = it.page[:0], markErr
				return
			}
			if still {
				it.limit = min(2*it.limit, pageMessages)
				it.err = err
				if len(it.page) > 0 {
					k := it.cu.last
					it.after = &k
				}
				return
			}
		}
		it.page = it.page[:0]
		if it.vc == nil || time.Since(start) > patience {
			if it.vc != nil {
				err = errTooFast
			}
			it.err = fmt.Errorf("read storage %s: %w", it.r.path, err)
			return
		}
		it.limit = max(1, it.limit/4)
		_ = it.drop() // read only: nothing to lose
	}
}

func (it *pagedIterator) tryFill() error {
	it.page, it.data, it.at = it.page[:0], it.data[:0], 0
	if it.vc == nil {
		var err error
		if it.vc, err = it.r.freshConn(); err != nil {
			return err
		}
	}
	if it.cu == nil {
		cu, err := it.r.newCursor(it.vc, it.q, it.after)
		it.cu = cu
		if err != nil {
			return fmt.Errorf("read storage %s: %w", it.r.path, it.vc.explain(err))
		}
	}
	var err error
	for len(it.page) < it.limit && len(it.data) < pageBytes/pageMessages*it.limit+1 {
		var m plugin.Message
		if err = it.cu.next(&m); err != nil {
			break
		}
		it.data = append(it.data, m.Data...)
		m.Data = it.data[len(it.data)-len(m.Data):]
		it.page = append(it.page, m)
	}
	// it.data may have moved while it grew.
	off := 0
	for i := range it.page {
		n := len(it.page[i].Data)
		it.page[i].Data = it.data[off : off+n : off+n]
		off += n
	}
	return err
}

// drop closes the view that is no longer true.
func (it *pagedIterator) drop() error {
	if it.cu != nil {
		it.cu.close()
		it.cu = nil
	}
	if it.vc == nil {
		return nil
	}
	err := it.vc.closeAll()
	it.vc = nil
	return err
}

func (it *pagedIterator) Close() error {
	if it.closed {
		return nil
	}
	it.closed = true
	return it.drop()
}
