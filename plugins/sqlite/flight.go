package sqlite

import (
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
)

// journalSector is the size of a sector in our journals: the header fills one.
const journalSector = 512

// flight is a commit on its way to the disk. Its steps are those of SQLite with a rollback journal that persists and
// synchronous FULL (https://sqlite.org/atomiccommit.html), each made durable before the next begins:
//
//  1. the new pages, and in the journal the original content of the pages that are about to change;
//  2. the header of the journal, by which it counts;
//  3. the changed pages;
//  4. the header of the journal is wiped out.
//
// It is not changed after its start but by run.
type flight struct {
	s       *store
	journal *os.File
	pages   map[uint32][]byte // that change, page 1 among them
	before  uint32            // pages in the database before and after
	after   uint32
	last    bool // the journal is removed afterwards
	done    chan struct{}
	err     error // once done is closed
}

// begin starts a commit of everything that was written up to now. The flight before must have landed.
func (s *store) begin(journal *os.File, last bool) (*flight, error) {
	if err := s.flush(); err != nil {
		return nil, err
	}
	if s.end < s.bytes() { // a page that SQLite took and did not write
		if err := s.f.Truncate(s.bytes()); err != nil {
			return nil, err
		}
		s.end = s.bytes()
	}
	fl := &flight{s: s, journal: journal, pages: s.dirty, before: s.committed, after: s.next - 1, last: last, done: make(chan struct{})}
	u := binary.BigEndian
	u.PutUint32(s.first[28:], fl.after)
	if s.counter() == s.counter0 {
		u.PutUint32(s.first[24:], s.counter()+1)
	}
	s.counter0 = s.counter()
	u.PutUint32(s.first[92:], s.counter0)
	fl.pages[1] = slices.Clone(s.first)
	s.dirty, s.flight, s.frozen, s.changed = map[uint32][]byte{}, fl, fl.after, false
	go fl.run()
	return fl, nil
}

// land waits for the commit under way, if there is one.
func (s *store) land() error {
	fl := s.flight
	if fl == nil {
		return nil
	}
	<-fl.done
	if fl.err != nil {
		return fl.err
	}
	s.committed, s.flight = fl.after, nil
	return nil
}

func (fl *flight) run() {
	defer close(fl.done)
	fl.err = fl.commit()
}

func (fl *flight) commit() error {
	content := make(chan error, 1)
	go func() { content <- fl.s.sync(fl.s.f) }()
	numbers := slices.Sorted(maps.Keys(fl.pages))
	nonce := rand.Uint32()
	err := fl.writeRecords(numbers, nonce)
	if err == nil {
		err = fl.s.sync(fl.journal)
	}
	if err := errors.Join(<-content, err); err != nil {
		return err
	}
	head := make([]byte, journalHeader)
	copy(head, journalMagic)
	for i, v := range []uint32{uint32(len(numbers)), nonce, fl.before, journalSector, uint32(fl.s.pageSize)} {
		binary.BigEndian.PutUint32(head[8+4*i:], v)
	}
	if err := fl.writeHeader(head); err != nil {
		return err
	}
	for _, n := range numbers {
		if _, err := fl.s.f.WriteAt(fl.pages[n], fl.s.offset(n)); err != nil {
			return err
		}
	}
	if err := fl.s.sync(fl.s.f); err != nil {
		return err
	}
	if fl.last {
		return nil // removing the journal does the same
	}
	return fl.writeHeader(make([]byte, journalHeader))
}

// writeRecords writes the original content of the pages into the journal.
func (fl *flight) writeRecords(numbers []uint32, nonce uint32) error {
	size := fl.s.pageSize
	at := int64(journalSector)
	var buf []byte
	for i, n := range numbers {
		k := len(buf)
		buf = slices.Grow(buf, size+8)[:k+size+8]
		rec := buf[k:]
		binary.BigEndian.PutUint32(rec, n)
		if _, err := fl.s.f.ReadAt(rec[4:4+size], fl.s.offset(n)); err != nil {
			return err
		}
		binary.BigEndian.PutUint32(rec[4+size:], journalSum(nonce, rec[4:4+size]))
		if i == len(numbers)-1 { // and where SQLite would look for another header, there is none
			buf = append(buf, make([]byte, 2*journalSector)...)
		}
		if len(buf) >= tailBytes || i == len(numbers)-1 {
			if _, err := fl.journal.WriteAt(buf, at); err != nil {
				return err
			}
			at += int64(len(buf))
			buf = buf[:0]
		}
	}
	return nil
}

func (fl *flight) writeHeader(b []byte) error {
	if _, err := fl.journal.WriteAt(b, 0); err != nil {
		return err
	}
	return fl.s.sync(fl.journal)
}
