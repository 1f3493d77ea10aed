package sqlite

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"github.com/gobag/gobag/internal/fsx"
)

const (
	tailBytes = 256 << 10 // of new pages, before they are handed to the system; little enough to stay in the CPU's cache
	pushEvery = 4 << 20   // bytes handed to the system before their way to the disk is started
	// lockByte lies on the page that SQLite keeps for locks: it has no content.
	lockByte = 0x40000000
)

// store is the file of a recording as pages, numbered from 1. New pages are written behind those of the last commit,
// where nothing refers to them yet; pages of the last commit that change are kept in memory until the next, which
// writes them under the protection of a rollback journal (see flight). So whatever the moment of a crash, the file is
// as the last commit left it, or becomes so by the journal.
//
// Calls are made one at a time; only a flight goes on beside them.
type store struct {
	f        *os.File
	from     io.ReaderAt // f, or for a store in memory what it lies on
	path     string
	pageSize int
	lockPage uint32

	first     []byte            // page 1 as it is now
	next      uint32            // page that will be new
	committed uint32            // pages in the last commit
	frozen    uint32            // pages that must not change in the file: of the last commit, and of one under way
	dirty     map[uint32][]byte // pages up to frozen that have changed since, page 1 excepted
	flight    *flight           // the commit under way, or nil
	changed   bool              // since the last commit
	counter0  uint32            // the change counter in the last commit

	sync func(*os.File) error // makes a file durable

	tail     []byte // pages from tailPage to next, not yet handed to the system
	tailPage uint32
	end      int64 // of what was handed to the system
	pushed   int64 // up to where its way to the disk has been started
}

// openStore takes over a finished database that nobody else changes.
func openStore(f *os.File, path string, pageSize int) (*store, error) {
	s := &store{f: f, from: f, path: path, pageSize: pageSize, lockPage: uint32(lockByte/pageSize) + 1, dirty: map[uint32][]byte{}, sync: datasync,
		first: make([]byte, pageSize), tail: make([]byte, 0, max(tailBytes, pageSize))}
	if _, err := f.ReadAt(s.first, 0); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(s.first[28:])
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if int64(n)*int64(pageSize) != fi.Size() {
		return nil, fmt.Errorf("%d pages in %d bytes", n, fi.Size())
	}
	s.next, s.committed, s.frozen, s.tailPage, s.end, s.pushed = n+1, n, n, n+1, fi.Size(), fi.Size()
	s.counter0 = s.counter()
	return s, nil
}

func (s *store) offset(page uint32) int64 { return int64(page-1) * int64(s.pageSize) }

// bytes is the size of the file with all pages that there are.
func (s *store) bytes() int64 { return s.offset(s.next) }

// extend makes a new page behind the last and returns its number and where to build it: what is written there counts
// until the next call. It must be filled to its end.
func (s *store) extend() (uint32, []byte, error) {
	if len(s.tail)+s.pageSize > cap(s.tail) {
		if err := s.flush(); err != nil {
			return 0, nil, err
		}
	}
	if s.next == s.lockPage {
		if err := s.flush(); err != nil {
			return 0, nil, err
		}
		s.next++
		s.tailPage = s.next
	}
	if s.next == 0 { // 2^32 pages
		return 0, nil, fmt.Errorf("%d pages, more than a database can have", s.committed)
	}
	s.changed = true
	page := s.next
	s.next++
	n := len(s.tail)
	s.tail = s.tail[:n+s.pageSize]
	return page, s.tail[n:], nil
}

// flush hands the new pages to the system.
func (s *store) flush() error {
	if len(s.tail) == 0 {
		s.tailPage = s.next
		return nil
	}
	off := s.offset(s.tailPage)
	if _, err := s.f.WriteAt(s.tail, off); err != nil {
		return err
	}
	s.end = max(s.end, off+int64(len(s.tail)))
	s.tail, s.tailPage = s.tail[:0], s.next
	if n := s.end - s.pushed; n >= pushEvery {
		_ = fsx.StartWriteback(s.f, s.pushed, n) // only a hint
		s.pushed = s.end
	}
	return nil
}

// write sets the content of a page, which is copied.
func (s *store) write(page uint32, b []byte) error {
	s.changed = true
	switch {
	case page == 1:
		copy(s.first, b)
	case page <= s.frozen:
		d := s.dirty[page]
		if d == nil {
			d = make([]byte, s.pageSize)
			s.dirty[page] = d
		}
		copy(d, b)
		s.end = max(s.end, s.offset(page)+int64(s.pageSize))
	case page >= s.tailPage && page < s.next:
		copy(s.tail[s.offset(page)-s.offset(s.tailPage):], b)
	default:
		if _, err := s.f.WriteAt(b, s.offset(page)); err != nil {
			return err
		}
		s.end = max(s.end, s.offset(page)+int64(s.pageSize))
	}
	return nil
}

// read reads a page.
func (s *store) read(page uint32, b []byte) error {
	from := s.dirty[page]
	if from == nil && s.flight != nil {
		from = s.flight.pages[page]
	}
	switch {
	case page == 1:
		copy(b, s.first)
		binary.BigEndian.PutUint32(b[28:], s.next-1)
	case from != nil:
		copy(b, from)
	case page >= s.tailPage && page < s.next:
		copy(b, s.tail[s.offset(page)-s.offset(s.tailPage):])
	default:
		if _, err := s.from.ReadAt(b[:s.pageSize], s.offset(page)); err != nil {
			return err
		}
	}
	return nil
}

// setPages takes over the number of pages that page 1 names, after SQLite has changed it.
func (s *store) setPages() {
	s.next = binary.BigEndian.Uint32(s.first[28:]) + 1
	s.tailPage = s.next
}

// counter is the change counter of the file as it is now.
func (s *store) counter() uint32 { return binary.BigEndian.Uint32(s.first[24:]) }
