package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/plugin"
)

// magic begins every database with content (https://sqlite.org/fileformat2.html#magic_header_string).
const magic = "SQLite format 3\x00"

const headerSize = 100

// files are the open files of one storage: the database, and its rollback journal or write-ahead log where a writer
// left one or has one right now. They are only ever read.
type files struct {
	path    string
	db      *os.File
	journal *os.File // nil where there is none
	wal     *os.File
	log     *os.File // of syncs, see syncLog
	noLog   bool     // it is left out
}

func openFiles(path string) (*files, error) {
	db, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &files{path: path, db: db}
	if fi, err := db.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("not a file: %w", plugin.ErrFormat), err, db.Close())
	}
	return f, nil
}

// openSides opens the journal and the log, which may appear and vanish while the storage is being written.
func (f *files) openSides() error {
	var errs []error
	for _, s := range []struct {
		file   **os.File
		suffix string
	}{{&f.journal, "-journal"}, {&f.wal, "-wal"}, {&f.log, logSuffix}} {
		if *s.file != nil {
			errs = append(errs, (*s.file).Close())
			*s.file = nil
		}
		side, err := os.Open(f.path + s.suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		*s.file = side
	}
	return errors.Join(errs...)
}

func (f *files) close() error {
	errs := []error{f.db.Close()}
	for _, s := range []*os.File{f.journal, f.wal, f.log} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// patch is where the content of a page is to be read instead of the database file.
type patch struct {
	from io.ReaderAt
	off  int64
}

// view is the database as the last finished transaction left it, whatever has been written over it since: pages that
// an unfinished transaction changed are taken from the rollback journal, pages that a finished one appended to the
// write-ahead log from there, and what is in the log of syncs alone is added in memory. A view is read like a file and never written.
//
// Of a storage that is being written a view holds only until its writer finishes the next transaction; mark tells.
type view struct {
	f        *files
	pageSize int64
	pages    int64 // in the database
	patches  map[uint32]patch
	log      logEnd
	mark     mark
	hot      bool  // the database alone is not what the last transaction left
	missing  int64 // pages that the header counts and the file does not have
}

// mark is what identifies a state of the files. Two equal marks with reads between them mean that nothing those reads
// saw has changed: a writer with a journal or a log leaves traces there, and one without holds a lock while it changes
// the file, and has changed the counter in the header afterwards.
type mark struct {
	counter uint32
	writing bool // somebody is changing the file, and keeps no record beside it of what was there
	journal journalMark
	wal     walMark
	log     bool // the same file, or none
}

// loadTries bounds how often a view is read anew while a writer keeps changing the files.
const loadTries = 200

// load reads the state of the files.
func (f *files) load() (*view, error) {
	tooFast := errTooFast
	for i := range loadTries {
		if err := f.openSides(); err != nil {
			return nil, err
		}
		m, err := f.readMark()
		if err != nil {
			return nil, err
		}
		if m.writing {
			tooFast = errNoJournal
			time.Sleep(time.Millisecond)
			continue
		}
		v, err := f.build(m)
		if err == nil {
			if still, err := v.current(); still || err != nil {
				return v, err
			}
		} else if after, merr := f.readMark(); after == m || merr != nil {
			return nil, errors.Join(err, merr)
		}
		time.Sleep(time.Duration(min(i, 20)) * time.Millisecond)
	}
	return nil, tooFast
}

var (
	errTooFast   = errors.New("is being written too fast to be read; try again")
	errNoJournal = errors.New("is being written without a journal file, and can be read when it is closed")
)

// build reads the state of the files after m was taken.
func (f *files) build(m mark) (*view, error) {
	var err error
	v := &view{f: f, mark: m, patches: map[uint32]patch{}}
	// Everything from here on is read behind the mark, the size of the file included, which grows.
	fi, err := f.db.Stat()
	if err != nil {
		return nil, err
	}
	head := make([]byte, headerSize)
	if _, err := f.db.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if string(head[:len(magic)]) != magic {
		return nil, fmt.Errorf("%s: %w", whatIsIt(head, fi.Size()), plugin.ErrFormat)
	}
	v.pageSize = int64(binary.BigEndian.Uint16(head[16:]))
	if v.pageSize == 1 {
		v.pageSize = 64 << 10
	}
	if !isSize(v.pageSize, 512) {
		return nil, &plugin.CorruptError{Path: f.path, Offset: 16, Err: fmt.Errorf("page size %d", v.pageSize)}
	}
	if f.journal != nil {
		if v.pages, v.hot, err = readJournal(f.journal, v.pageSize, v.patches); err != nil {
			return nil, err
		}
	}
	if f.wal != nil && !v.hot {
		if v.pages, v.log, err = readWAL(f.wal, v.pageSize, v.patches); err != nil {
			return nil, err
		}
		v.hot = v.pages > 0
	}
	if err := v.countPages(fi.Size() / v.pageSize); err != nil {
		return v, err
	}
	return v, v.replay()
}

// countPages settles how many pages the view has: those that the journal, the log or the header count, as far as the
// file, which has whole pages, reaches.
func (v *view) countPages(whole int64) error {
	if !v.hot {
		v.pages = whole
		var b [headerSize]byte
		if _, err := v.f.db.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		u := func(i int) uint32 { return binary.BigEndian.Uint32(b[i:]) }
		if counted := int64(u(28)); counted > 0 && u(24) == u(92) { // else a SQLite wrote that does not keep this field
			v.pages = counted
		}
	}
	if v.hot && v.log.there {
		return nil // pages may be in the log alone
	}
	if v.pages > whole {
		v.missing = v.pages - whole
		v.pages = whole
	}
	if v.pages == 0 {
		return fmt.Errorf("nothing in it has been finished yet: %w", plugin.ErrFormat)
	}
	return nil
}

func (f *files) readMark() (mark, error) {
	var m mark
	var b [4]byte
	if _, err := f.db.ReadAt(b[:], 24); err != nil && !errors.Is(err, io.EOF) {
		return m, err
	}
	m.counter = binary.BigEndian.Uint32(b[:])
	var err error
	if f.journal == nil && f.wal == nil {
		if m.writing, err = changing(f.db); err != nil {
			return m, err
		}
	}
	if m.journal, err = readJournalMark(f.path+"-journal", f.journal); err != nil {
		return m, err
	}
	if m.log, err = sameFile(f.path+logSuffix, f.log); err != nil {
		return m, err
	}
	m.wal, err = readWALMark(f.path+"-wal", f.wal)
	return m, err
}

// current says whether the view still is what the files hold.
func (v *view) current() (bool, error) {
	m, err := v.f.readMark()
	if err != nil || m != v.mark || !v.log.there {
		return m == v.mark, err
	}
	return v.log.still(v.f.wal)
}

// ReadAt reads the database as the view has it.
func (v *view) ReadAt(p []byte, off int64) (int, error) {
	size := v.pages * v.pageSize
	n := 0
	for n < len(p) {
		if off >= size {
			return n, io.EOF
		}
		in := off % v.pageSize
		part := p[n : n+int(min(int64(len(p)-n), v.pageSize-in))]
		from, at := io.ReaderAt(v.f.db), off
		if pt, ok := v.patches[uint32(off/v.pageSize)+1]; ok {
			from, at = pt.from, pt.off+in
		}
		k, err := from.ReadAt(part, at)
		n += k
		off += int64(k)
		if k < len(part) {
			if errors.Is(err, io.EOF) { // no end of file for SQLite, which would go on with zeros
				err = &plugin.CorruptError{Path: v.f.path, Offset: off, Err: errCutOff}
			}
			return n, err
		}
	}
	v.fixHeader(p[:n], off-int64(n))
	return n, nil
}

// fixHeader corrects the header of the first page on its way to SQLite: the view is no write-ahead log any more
// (bytes 18 and 19), and has as many pages as it has (28).
func (v *view) fixHeader(p []byte, off int64) {
	if off >= headerSize {
		return
	}
	set := func(at int64, b byte) {
		if i := at - off; i >= 0 && i < int64(len(p)) {
			p[i] = b
		}
	}
	set(18, 1)
	set(19, 1)
	if v.missing > 0 {
		for i := range int64(4) {
			set(28+i, byte(v.pages>>(24-8*i)))
		}
	}
}

// whatIsIt names what lies under a storage's name instead of a database, for the error text.
func whatIsIt(head []byte, size int64) string {
	text := string(head)
	for _, k := range []struct{ prefix, name string }{
		{"version https://git-lfs", "a Git LFS pointer (fetch the file with: git lfs pull)"},
		{"#ROSBAG V", "a ROS 1 bag"},
		{"\x89MCAP0\r\n", "an MCAP file"},
		{"\x28\xb5\x2f\xfd", "a zstd file (decompress it first)"},
	} {
		if len(text) >= len(k.prefix) && text[:len(k.prefix)] == k.prefix {
			return k.name
		}
	}
	if size == 0 {
		return "an empty file"
	}
	return "not a SQLite database"
}

// viewFile is a view as the file system of SQLite sees it: an fs.File that can seek. It belongs to one connection.
type viewFile struct {
	v   *view
	off int64
	err atomic.Pointer[error] // the last error of a read other than the end of the file
}

func (f *viewFile) Stat() (fs.FileInfo, error) { return viewInfo{f.v.pages * f.v.pageSize}, nil }
func (f *viewFile) Close() error               { return nil }

func (f *viewFile) Seek(off int64, whence int) (int64, error) {
	if whence != io.SeekStart {
		return 0, fs.ErrInvalid
	}
	f.off = off
	return off, nil
}

func (f *viewFile) Read(p []byte) (int, error) {
	n, err := f.v.ReadAt(p, f.off)
	f.off += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		f.err.Store(&err)
	}
	return n, err
}

type viewInfo struct{ size int64 }

func (i viewInfo) Name() string       { return "view" }
func (i viewInfo) Size() int64        { return i.size }
func (i viewInfo) Mode() fs.FileMode  { return 0o444 }
func (i viewInfo) ModTime() time.Time { return time.Time{} }
func (i viewInfo) IsDir() bool        { return false }
func (i viewInfo) Sys() any           { return nil }

// bytesOnDisk is the size of the files together.
func (f *files) bytesOnDisk() int64 {
	var n int64
	for _, s := range []*os.File{f.db, f.journal, f.wal, f.log} {
		if s == nil {
			continue
		}
		if fi, err := s.Stat(); err == nil {
			n += fi.Size()
		}
	}
	return n
}
