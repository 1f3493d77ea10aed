package leveldb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// keyOrder is how the keys of a database stand for places in time.
type keyOrder struct {
	comparator string
	parse      func(key []byte) (s stamp, ok bool, err error) // ok is false for a record that is no message

	// bound is the place of any key, also of one that only divides blocks: the last stamp whose key is not above it, or
	// before all stamps.
	bound func(key []byte) place
}

// bytewise is the order of our own databases.
var bytewise = keyOrder{
	comparator: bytewiseComparator,
	parse: func(key []byte) (stamp, bool, error) {
		if len(key) == 0 || key[0] != kindMessage {
			return stamp{}, false, nil
		}
		s, err := parseMessageKey(key)
		return s, true, err
	},
	bound: boundOfKey,
}

// place is a stamp, or a place before all of them.
type place struct {
	stamp
	before bool
}

// boundOfKey is keyOrder.bound of our own databases. LevelDBs that have compacted one of them shorten the keys that divide
// blocks.
func boundOfKey(key []byte) place {
	switch {
	case len(key) == 0 || key[0] < kindMessage:
		return place{before: true}
	case key[0] > kindMessage:
		return place{stamp: stamp{math.MaxInt64, math.MaxUint64}}
	}
	var whole [messageKeySize]byte
	n := copy(whole[:], key)
	s, _ := parseMessageKey(whole[:]) // it has the length and the kind
	switch {
	case n == messageKeySize:
	case s.order > 0:
		s.order--
	case s.time > math.MinInt64:
		s.time, s.order = s.time-1, math.MaxUint64
	default:
		return place{before: true}
	}
	return place{stamp: s}
}

// record is the newest state of a record that is no message.
type record struct {
	seq   uint64
	kind  byte
	value []byte
}

// message is a message as a block or a journal holds it.
type message struct {
	stamp
	seq   uint64
	kind  byte
	value []byte
}

// messageTable is a table that may hold messages between first and last.
type messageTable struct {
	tableRef
	path        string
	first, last stamp
	part        *part
	open        *tableFile // where it is open; of tableCache
}

// database is a LevelDB directory as it was at one moment, opened without a lock and without changing anything.
type database struct {
	dir      string
	order    keyOrder
	version  *version
	mem      []message         // what the journals hold, in order
	records  map[string]record // that are no messages; only of tables that readRecords has read
	tables   []messageTable    // by number
	warnings []string
	damage   error // of a journal whose whole part is in mem; a CorruptError
	torn     bool  // a journal or the MANIFEST ends within a record
}

// openDatabase reads the MANIFEST and the journals. The journals are opened first: those that a MANIFEST read later
// names were there then, and a writer removes them only after it has written that it needs them no more.
func openDatabase(ctx context.Context, dir string, order keyOrder) (*database, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	journals, err := openJournals(dir)
	defer func() {
		for _, f := range journals {
			_ = f.Close() // opened for reading only
		}
	}()
	if err != nil {
		return nil, err
	}
	v, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	if v.comparator != order.comparator {
		return nil, fmt.Errorf("%w: its keys are ordered by %q, not by %q", plugin.ErrFormat, v.comparator, order.comparator)
	}
	db := &database{dir: dir, order: order, version: v, records: map[string]record{}, torn: v.torn}
	if v.warning != "" {
		db.warnings = append(db.warnings, v.warning)
	}
	if _, ok := journals[v.prevLog]; v.prevLog != 0 && !ok {
		return nil, &plugin.CorruptError{Path: filepath.Join(dir, journalName(v.prevLog)), Offset: 0, Err: errors.New("the journal is missing")}
	}
	var nums []uint64
	for num := range journals {
		if num >= v.logNumber || num == v.prevLog {
			nums = append(nums, num)
		}
	}
	slices.Sort(nums)
	for _, num := range nums {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := db.replay(journals[num]); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(db.mem, func(a, b message) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.stamp.order, b.stamp.order), cmp.Compare(b.seq, a.seq))
	})
	db.mem = slices.CompactFunc(db.mem, func(a, b message) bool { return a.stamp == b.stamp }) // the newest comes first
	return db, db.listTables()
}

func openJournals(dir string) (map[uint64]*os.File, error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	journals := map[uint64]*os.File{}
	for _, e := range es {
		num, ok := parseJournalName(e.Name())
		if !ok {
			continue
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // not needed any more
		}
		if err != nil {
			return journals, err
		}
		journals[num] = f
	}
	return journals, nil
}

// replay takes in one journal as far as it is whole.
func (db *database) replay(f *os.File) error {
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() || fi.Size() > math.MaxInt32*2 {
		return &plugin.CorruptError{Path: f.Name(), Offset: 0, Err: fmt.Errorf("the journal is no file, or one of %d bytes", fi.Size())}
	}
	b := make([]byte, fi.Size())
	n, err := io.ReadFull(f, b)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return err
	}
	end, err := readJournal(f.Name(), b[:n], func(rec []byte, off int64) error {
		err := readBatch(rec, db.take)
		if err != nil {
			err = &plugin.CorruptError{Path: f.Name(), Offset: off, Err: err}
		}
		return err
	})
	var corrupt *plugin.CorruptError
	switch {
	case errors.Is(err, errTorn):
		db.torn = true
		db.warnings = append(db.warnings, fmt.Sprintf("%s ends within a record at byte %d of %d: what came behind is lost", filepath.Base(f.Name()), end, n))
	case errors.As(err, &corrupt):
		db.warnings = append(db.warnings, fmt.Sprintf("%s is damaged at byte %d of %d", filepath.Base(f.Name()), corrupt.Offset, n))
		if db.damage == nil {
			db.damage = err
		}
	case err != nil:
		return err
	}
	return nil
}

// take is called for each entry of a journal.
func (db *database) take(seq uint64, kind byte, key, value []byte) error {
	s, ok, err := db.order.parse(key)
	if err != nil {
		return err
	}
	if !ok {
		db.takeRecord(seq, kind, key, value)
		return nil
	}
	db.mem = append(db.mem, message{s, seq, kind, value})
	return nil
}

func (db *database) takeRecord(seq uint64, kind byte, key, value []byte) {
	if old, ok := db.records[string(key)]; !ok || old.seq <= seq {
		db.records[string(key)] = record{seq, kind, bytes.Clone(value)}
	}
}

// listTables finds out which tables may hold messages.
func (db *database) listTables() error {
	for _, ref := range db.version.tables {
		t := messageTable{tableRef: ref, path: filepath.Join(db.dir, tableName(ref.num))}
		if _, err := os.Stat(t.path); errors.Is(err, os.ErrNotExist) { // LevelDB up to 1.13 called them so
			if old := strings.TrimSuffix(t.path, ".ldb") + ".sst"; exists(old) {
				t.path = old
			}
		}
		largest := ref.largest[:len(ref.largest)-trailerSize]
		last, ok, err := db.order.parse(largest)
		if !ok && err == nil {
			if len(largest) > 0 && largest[0] > kindMessage {
				last, ok = stamp{math.MaxInt64, math.MaxUint64}, true
			}
		}
		var first stamp
		if err == nil && ok {
			var isMessage bool
			if first, isMessage, err = db.order.parse(ref.smallest[:len(ref.smallest)-trailerSize]); !isMessage {
				first = stamp{math.MinInt64, 0}
			}
		}
		if err != nil {
			return &plugin.CorruptError{Path: db.dir, Offset: -1, Err: fmt.Errorf("the MANIFEST names table %d with a key that is none", ref.num)}
		}
		if ok {
			t.first, t.last = first, last
			db.tables = append(db.tables, t)
		}
	}
	slices.SortFunc(db.tables, func(a, b messageTable) int { return cmp.Compare(a.num, b.num) })
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readRecords reads what is no message from the tables that may hold it.
func (db *database) readRecords(cache *tableCache) error {
	for _, ref := range db.version.tables {
		if ref.smallest[0] >= kindMessage && len(ref.smallest) > trailerSize && db.order.comparator == bytewiseComparator {
			continue
		}
		t, err := cache.acquire(filepath.Join(db.dir, tableName(ref.num)), ref.size, &db.order)
		if err != nil {
			return err
		}
		err = db.readRecordsOf(t)
		cache.release(t)
		if err != nil {
			return err
		}
	}
	return nil
}

func (db *database) readRecordsOf(t *tableFile) error {
	for _, e := range t.index {
		block, err := t.readBlock(e.off, e.size)
		if err != nil {
			return err
		}
		past := false
		err = parseBlock(block, func(key, value []byte) error {
			user, seq, kind, err := splitKey(key)
			if err != nil {
				return t.corrupt(e.off, "%v", err)
			}
			if len(user) > 0 && user[0] >= kindMessage {
				past = true
				return nil
			}
			db.takeRecord(seq, kind, user, value)
			return nil
		}, func(err error) error { return t.corrupt(e.off, "%v", err) })
		if err != nil || past {
			return err
		}
	}
	return nil
}

// splitKey takes a key of a table apart.
func splitKey(key []byte) (user []byte, seq uint64, kind byte, err error) {
	n := len(key) - trailerSize
	if n < 0 {
		return nil, 0, 0, errors.New("a key is shorter than its trailer")
	}
	trailer := binary.LittleEndian.Uint64(key[n:])
	return key[:n], trailer >> 8, byte(trailer), nil
}
