package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"

	"github.com/gobag/gobag/plugin"
)

// logMessages returns the messages that a sync log holds on top of the commit with the counter base, in memory of its
// own. The end of the log is none.
func logMessages(f *os.File, base uint32) ([]loggedMessage, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, logBytes+logPending))
	if err != nil {
		return nil, err
	}
	u := binary.LittleEndian
	var ms []loggedMessage
	for next := uint32(0); len(b) >= logHeader; next++ {
		n := int64(u.Uint32(b))
		if n == 0 || n > int64(len(b)-logHeader) {
			break
		}
		rec := b[:logHeader+n]
		if u.Uint32(rec[8:]) != base || u.Uint32(rec[12:]) != next || u.Uint32(rec[4:]) != crc32.Checksum(rec[8:], castagnoli) {
			break
		}
		var whole bool
		if ms, whole = appendLogged(ms, rec[logHeader:]); !whole {
			break // no writer of ours: what stands before it counts
		}
		b = b[len(rec):]
	}
	return ms, nil
}

type loggedMessage struct {
	id int64
	plugin.Message
}

// appendLogged appends the messages of a record, or, where it is not whole, none.
func appendLogged(ms []loggedMessage, body []byte) (_ []loggedMessage, whole bool) {
	r := packReader{b: body}
	start := len(ms)
	for len(r.b) > 0 {
		var m loggedMessage
		m.id, m.Topic = int64(r.uvarint()), plugin.TopicID(r.uvarint())
		m.RecvTime, m.SendTime = r.varint(), r.varint()
		m.Source, m.Seq = uint32(r.uvarint()), r.uvarint()
		n := r.uvarint()
		if r.bad || n > uint64(len(r.b)) {
			return ms[:start], false
		}
		m.Data, r.b = r.b[:n], r.b[n:]
		ms = append(ms, m)
	}
	return ms, true
}

// replay puts the messages of the sync log, if there is one for the commit that the view holds, into pages of the
// view's: SQLite inserts them into a store in memory on top of it. The files are left alone.
func (v *view) replay() (err error) {
	if v.f.log == nil || v.f.noLog || v.missing > 0 {
		return nil
	}
	var head [headerSize]byte
	if _, err := v.ReadAt(head[:], 0); err != nil {
		return err
	}
	ms, err := logMessages(v.f.log, binary.BigEndian.Uint32(head[24:]))
	if err != nil || len(ms) == 0 {
		return err
	}
	s := &store{from: v, path: v.f.path, pageSize: int(v.pageSize), lockPage: uint32(lockByte/v.pageSize) + 1, dirty: map[uint32][]byte{},
		first: make([]byte, v.pageSize), frozen: math.MaxUint32}
	if _, err := v.ReadAt(s.first, 0); err != nil {
		return err
	}
	s.next = uint32(v.pages) + 1
	s.committed, s.tailPage, s.end = s.next-1, s.next, v.pages*v.pageSize
	c, es, err := openEdit(s)
	if err != nil {
		return err
	}
	defer func() {
		es.finalize()
		err = errors.Join(err, c.close())
	}()
	if err := es.edit(func() error { return insertLogged(c, ms) }); err != nil {
		if damaged(err) {
			return &plugin.CorruptError{Path: v.f.path, Offset: -1, Err: err}
		}
		return fmt.Errorf("what is in %s%s: %w", v.f.path, logSuffix, err)
	}
	v.patches[1] = patch{bytes.NewReader(s.first), 0}
	binary.BigEndian.PutUint32(s.first[28:], s.next-1)
	for n, b := range s.dirty {
		v.patches[n] = patch{bytes.NewReader(b), 0}
	}
	v.pages, v.hot = int64(s.next-1), true
	return nil
}

// insertLogged inserts messages, with the packs that go with them.
func insertLogged(c *conn, ms []loggedMessage) error {
	rows, err := c.prepare("INSERT INTO messages(id, topic_id, timestamp, data) VALUES (?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer rows.finalize()
	packs, err := c.prepare("INSERT INTO gobag_data(id, data) VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer packs.finalize()
	var p packer
	for i := range ms {
		m := &ms[i]
		rows.keep = rows.keep[:0]
		if err := errors.Join(rows.bindInt64(1, m.id), rows.bindInt64(2, int64(m.Topic)), rows.bindInt64(3, m.RecvTime), rows.bindBlob(4, m.Data)); err != nil {
			return err
		}
		if err := rows.runBound(); err != nil {
			return err
		}
		p.add(m.id, &m.Message)
		if p.n < packMessages && i < len(ms)-1 {
			continue
		}
		if err := packs.run(p.take()); err != nil {
			return err
		}
	}
	return nil
}
