package leveldb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gobag/gobag/plugin"
)

const (
	bytewiseComparator  = "leveldb.BytewiseComparator"
	timestampComparator = "Timestamp Comparator" // of the C++ plugin: the key is a stamp as int64

	maxLevel        = 6
	maxManifestSize = 1 << 30
	currentFile     = "CURRENT"
)

// Tags of LevelDB's version edits (leveldb db/version_edit.cc).
const (
	tagComparator     = 1
	tagLogNumber      = 2
	tagNextFile       = 3
	tagLastSequence   = 4
	tagCompactPointer = 5
	tagDeletedFile    = 6
	tagNewFile        = 7
	tagPrevLogNumber  = 9
)

// tableRef is a table as the MANIFEST names it. smallest and largest are keys with their trailers.
type tableRef struct {
	level             int
	num               uint64
	size              int64
	smallest, largest []byte
}

// version is what a MANIFEST says in all.
type version struct {
	comparator string
	logNumber  uint64 // journals from here on count …
	prevLog    uint64 // … and this one
	nextFile   uint64
	lastSeq    uint64
	tables     map[uint64]tableRef // by number
	torn       bool                // the last edit is not whole
	warning    string
}

// edit is one record of a MANIFEST.
type edit struct{ b []byte }

func (e *edit) number(tag, n uint64) {
	e.b = binary.AppendUvarint(binary.AppendUvarint(e.b, tag), n)
}

func (e *edit) comparator(name string) {
	e.b = appendBytes(binary.AppendUvarint(e.b, tagComparator), name)
}

func (e *edit) newFile(t tableRef) {
	e.number(tagNewFile, uint64(t.level))
	e.b = binary.AppendUvarint(e.b, t.num)
	e.b = binary.AppendUvarint(e.b, uint64(t.size))
	e.b = appendBytes(e.b, t.smallest)
	e.b = appendBytes(e.b, t.largest)
}

var errEdit = errors.New("a record of the MANIFEST is not a version edit")

// apply takes one edit into v.
func (v *version) apply(b []byte) error {
	for len(b) > 0 {
		tag, rest, ok := cutUvarint(b)
		if !ok {
			return errEdit
		}
		b = rest
		var n uint64
		if tag != tagComparator {
			if n, b, ok = cutUvarint(b); !ok {
				return errEdit
			}
		}
		switch tag {
		case tagComparator:
			var name []byte
			if name, b, ok = cutBytes(b); ok {
				v.comparator = string(name)
			}
		case tagLogNumber:
			v.logNumber = n
		case tagPrevLogNumber:
			v.prevLog = n
		case tagNextFile:
			v.nextFile = n
		case tagLastSequence:
			v.lastSeq = n
		case tagCompactPointer:
			_, b, ok = cutBytes(b)
		case tagDeletedFile:
			var num uint64
			num, b, ok = cutUvarint(b)
			delete(v.tables, num)
		case tagNewFile:
			t := tableRef{level: int(n)}
			if t, b, ok = cutTableRef(t, b); ok && n <= maxLevel {
				v.tables[t.num] = t
			} else {
				ok = false
			}
		default:
			return fmt.Errorf("%w: it has tag %d", errEdit, tag)
		}
		if !ok {
			return errEdit
		}
	}
	return nil
}

func cutTableRef(t tableRef, b []byte) (tableRef, []byte, bool) {
	num, b, ok := cutUvarint(b)
	if !ok {
		return t, nil, false
	}
	size, b, ok := cutUvarint(b)
	if !ok || size > 1<<62 {
		return t, nil, false
	}
	t.num, t.size = num, int64(size)
	var s, l []byte
	if s, b, ok = cutBytes(b); !ok || len(s) < trailerSize {
		return t, nil, false
	}
	if l, b, ok = cutBytes(b); !ok || len(l) < trailerSize {
		return t, nil, false
	}
	t.smallest, t.largest = append([]byte(nil), s...), append([]byte(nil), l...)
	return t, b, true
}

// readCurrent returns the name of the MANIFEST in dir. ErrFormat where CURRENT names none.
func readCurrent(dir string) (string, error) {
	path := filepath.Join(dir, currentFile)
	b, err := readLimited(path, 256)
	if err != nil {
		return "", err
	}
	name, ok := strings.CutSuffix(string(b), "\n")
	if digits, isManifest := strings.CutPrefix(name, "MANIFEST-"); !ok || !isManifest || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return "", &plugin.CorruptError{Path: path, Offset: 0, Err: errors.New("it names no MANIFEST")}
	}
	return name, nil
}

// readManifest reads what CURRENT names.
func readManifest(dir string) (*version, error) {
	name, err := readCurrent(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	b, err := readLimited(path, maxManifestSize)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = &plugin.CorruptError{Path: filepath.Join(dir, currentFile), Offset: 0, Err: fmt.Errorf("%s, which it names, is missing", name)}
		}
		return nil, err
	}
	v := &version{tables: map[uint64]tableRef{}}
	end, err := readJournal(path, b, func(rec []byte, off int64) error {
		if err := v.apply(rec); err != nil {
			return &plugin.CorruptError{Path: path, Offset: off, Err: err}
		}
		return nil
	})
	if errors.Is(err, errTorn) && v.comparator != "" {
		v.torn = true
		v.warning = fmt.Sprintf("%s ends within a record at byte %d, which is left out", name, end)
		err = nil
	}
	if errors.Is(err, errTorn) || err == nil && v.comparator == "" {
		return nil, &plugin.CorruptError{Path: path, Offset: end, Err: errors.New("there is no whole record of a database")}
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// readLimited reads a file that must not be larger than limit.
func readLimited(path string, limit int64) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: it is no file", path, plugin.ErrFormat)
	}
	if fi.Size() > limit {
		return nil, &plugin.CorruptError{Path: path, Offset: limit, Err: fmt.Errorf("it has %d bytes, more than %d", fi.Size(), limit)}
	}
	return os.ReadFile(path)
}

func tableName(num uint64) string    { return fmt.Sprintf("%06d.ldb", num) }
func journalName(num uint64) string  { return fmt.Sprintf("%06d.log", num) }
func manifestName(num uint64) string { return fmt.Sprintf("MANIFEST-%06d", num) }
