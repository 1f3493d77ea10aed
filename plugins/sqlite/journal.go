package sqlite

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// The rollback journal (https://sqlite.org/fileformat2.html#the_rollback_journal): segments of a header that fills a
// sector, and records of page number, original content and checksum. Playing it back into the database would undo the
// unfinished transaction; here it only says where the original pages are. The rules are those of pager_playback in
// pager.c.
const (
	journalMagic  = "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
	journalHeader = 28
)

// journalSegment is one header.
type journalSegment struct {
	off        int64
	records    uint32
	nonce      uint32
	pages      uint32 // in the database before the transaction
	sectorSize int64
	pageSize   int64
}

// countByFileSize in the place of the number of records means that the file ends where they do.
const countByFileSize = 0xffffffff

// readSegment reads the header at off; ok is false where there is none.
func readSegment(f *os.File, off int64, first *journalSegment) (s journalSegment, ok bool, err error) {
	var b [journalHeader]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return s, false, err
	}
	if string(b[:8]) != journalMagic {
		return s, false, nil
	}
	u := func(i int) uint32 { return binary.BigEndian.Uint32(b[i:]) }
	s = journalSegment{off: off, records: u(8), nonce: u(12), pages: u(16), sectorSize: int64(u(20)), pageSize: int64(u(24))}
	if first != nil { // later headers leave these fields out
		s.sectorSize, s.pageSize, s.pages = first.sectorSize, first.pageSize, first.pages
	}
	return s, isSize(s.sectorSize, 32) && isSize(s.pageSize, 512), nil
}

// isSize says whether n is a power of two from least to 64 KiB.
func isSize(n, least int64) bool { return n >= least && n <= 64<<10 && n&(n-1) == 0 }

func (s *journalSegment) recordSize() int64 { return s.pageSize + 8 }

// next is where the following segment begins.
func (s *journalSegment) next(records int64) int64 {
	end := s.off + s.sectorSize + records*s.recordSize()
	return (end + s.sectorSize - 1) / s.sectorSize * s.sectorSize
}

// readJournal adds the original pages of an unfinished transaction to patches. hot is false where the journal holds
// none; pages is the size of the database before it.
func readJournal(f *os.File, pageSize int64, patches map[uint32]patch) (pages int64, hot bool, err error) {
	fi, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	first, ok, err := readSegment(f, 0, nil)
	if err != nil || !ok {
		return 0, false, err
	}
	if first.pageSize != pageSize {
		return 0, false, nil // not a journal of this database
	}
	lockPage := uint32(0x40000000/pageSize) + 1
	buf := make([]byte, first.recordSize())
	for s := first; ok; {
		n := int64(s.records)
		if s.records == countByFileSize {
			n = (fi.Size() - s.off - s.sectorSize) / s.recordSize()
		}
		for i := range n {
			at := s.off + s.sectorSize + i*s.recordSize()
			if _, err := f.ReadAt(buf, at); err != nil {
				if errors.Is(err, io.EOF) {
					return int64(first.pages), true, nil
				}
				return 0, false, err
			}
			page := binary.BigEndian.Uint32(buf)
			sum := binary.BigEndian.Uint32(buf[4+pageSize:])
			if page == 0 || page == lockPage || sum != journalSum(s.nonce, buf[4:4+pageSize]) {
				return int64(first.pages), true, nil
			}
			if _, twice := patches[page]; !twice && page <= first.pages {
				patches[page] = patch{f, at + 4}
			}
		}
		s, ok, err = readSegment(f, s.next(n), &first)
		if err != nil {
			return 0, false, err
		}
	}
	return int64(first.pages), true, nil
}

// journalSum is pager_cksum: a sample of the page, every 200th byte from its end.
func journalSum(nonce uint32, page []byte) uint32 {
	for i := len(page) - 200; i > 0; i -= 200 {
		nonce += uint32(page[i])
	}
	return nonce
}

// journalMark identifies the state of a journal. A transaction begins by writing the first header without its magic
// and appends records; the magic and the number of records are set before the first page of the database is written
// over, and the header is wiped out when the transaction is finished. Its records stay then, and those of the next
// transaction differ, since a random number goes into their checksums.
type journalMark struct {
	same, there, hot bool
	header           [journalHeader]byte
	segments         int
	records          int64
	firstSum         uint32 // where there is no magic
}

func readJournalMark(path string, f *os.File) (journalMark, error) {
	var m journalMark
	var err error
	if m.same, err = sameFile(path, f); err != nil || f == nil {
		return m, err
	}
	m.there = true
	if _, err := f.ReadAt(m.header[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return m, err
	}
	first, ok, err := readSegment(f, 0, nil)
	if err != nil {
		return m, err
	}
	if !ok {
		// The checksum of the first record depends on the random number of its transaction.
		b := make([]byte, 128<<10)
		n, err := f.ReadAt(b, 512)
		m.firstSum = fold(b[:n])
		return m, endOfLog(err)
	}
	m.hot = true
	for s := first; ok; {
		m.segments++
		if s.records == countByFileSize {
			m.records, err = countRecords(f, &s)
			return m, err
		}
		m.records += int64(s.records)
		if s, ok, err = readSegment(f, s.next(int64(s.records)), &first); err != nil {
			return m, err
		}
	}
	return m, nil
}

// countRecords counts the whole records of a segment whose header leaves that to the reader.
func countRecords(f *os.File, s *journalSegment) (n int64, err error) {
	buf := make([]byte, s.recordSize())
	for {
		if _, err := f.ReadAt(buf, s.off+s.sectorSize+n*s.recordSize()); err != nil {
			return n, endOfLog(err)
		}
		if binary.BigEndian.Uint32(buf[4+s.pageSize:]) != journalSum(s.nonce, buf[4:4+s.pageSize]) {
			return n, nil
		}
		n++
	}
}

// sameFile says whether path still is the open file f, or is absent where f is nil.
func sameFile(path string, f *os.File) (bool, error) {
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f == nil, nil
	}
	if err != nil || f == nil {
		return false, err
	}
	open, err := f.Stat()
	return err == nil && os.SameFile(fi, open), err
}
