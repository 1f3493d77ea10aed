package leveldb

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gobag/gobag/plugin"
)

var errTopic = errors.New("a message belongs to a topic that there is no record of")

// reader reads one storage, as it was when it was opened.
type reader struct {
	path   string
	info   plugin.Info
	parts  []part
	tables tableList
	cache  *tableCache

	mu     sync.Mutex
	closed bool
	spare  []*iterator // not in use, for their memory
}

// spareIterators is how many iterators a reader keeps for later.
const spareIterators = 4

func openReader(ctx context.Context, path string, o plugin.ReadOptions) (*reader, error) {
	set, err := parseConfig(presets[0], o.Config)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r := &reader{path: path, cache: &tableCache{limit: set.maxOpenFiles}}
	if err := r.load(ctx); err != nil {
		r.cache.close()
		return nil, err
	}
	r.tables = arrange(r.parts)
	r.info.Size, err = dirSize(path)
	return r, err
}

func (r *reader) load(ctx context.Context) error {
	fi, err := os.Stat(r.path)
	if err != nil {
		return err
	}
	if !fi.IsDir() {
		return fmt.Errorf("%w: it is a file; a LevelDB is a directory", plugin.ErrFormat)
	}
	if _, err := os.Stat(filepath.Join(r.path, currentFile)); errors.Is(err, fs.ErrNotExist) {
		pairs, err := findPairs(r.path)
		if err != nil {
			return err
		}
		if len(pairs) == 0 {
			return fmt.Errorf("%w: there is no %s in it", plugin.ErrFormat, currentFile)
		}
		return r.loadPairs(ctx, pairs)
	}
	db, err := openDatabase(ctx, r.path, bytewise)
	if err != nil {
		return err
	}
	if err := db.readRecords(r.cache); err != nil {
		return err
	}
	r.parts = []part{{db: db}}
	return r.describe(ctx, db)
}

// describe fills Info from the records of a database of ours.
func (r *reader) describe(ctx context.Context, db *database) error {
	damaged := func(what string, err error) error {
		return &plugin.CorruptError{Path: r.path, Offset: -1, Err: fmt.Errorf("%s: %w", what, err)}
	}
	format, ok := db.records[string(kindFormat)]
	if !ok {
		if db.damage != nil {
			return db.damage
		}
		return fmt.Errorf("%w: this LevelDB has no record of the format of a bag", plugin.ErrFormat)
	}
	v, distro, err := decodeFormat(format.value)
	if err != nil {
		return damaged("format", err)
	}
	if v != formatVersion {
		return fmt.Errorf("%w: format version %d is newer than %d, the newest known here", plugin.ErrUnsupported, v, formatVersion)
	}
	r.info.ROSDistro, r.info.Format = distro, fmt.Sprintf("format %d", v)
	if m, ok := db.records[string(kindMetadata)]; ok {
		if r.info.Metadata, err = decodeMetadata(m.value); err != nil {
			return damaged("metadata", err)
		}
	}
	if err := r.readTopics(db); err != nil {
		return damaged("topics", err)
	}
	totals, closed := db.records[string(kindTotals)]
	r.info.Unclean = !closed || db.torn || db.damage != nil
	r.info.Warnings = db.warnings
	var cs counts
	if closed {
		if cs, err = decodeCounts(totals.value); err != nil {
			return damaged("counts", err)
		}
	} else if cs, err = r.sumCounts(ctx, db); err != nil {
		return err
	}
	if len(db.mem) > 0 {
		r.dropOrphans(db)
		cs.merge(countMessages(db.mem))
	}
	return r.setCounts(cs)
}

func (r *reader) readTopics(db *database) error {
	for id := uint32(1); ; id++ {
		rec, ok := db.records[string(numberKey(kindTopic, id))]
		if !ok {
			return nil
		}
		t, def, err := decodeTopic(rec.value)
		if err != nil {
			return fmt.Errorf("topic %d: %w", id, err)
		}
		t.ID = plugin.TopicID(id)
		if def != 0 {
			d, ok := db.records[string(numberKey(kindDefinition, def))]
			if !ok {
				return fmt.Errorf("topic %d: its definition %d is missing", id, def)
			}
			if t.Definition, err = decodeDefinition(d.value); err != nil {
				return fmt.Errorf("definition %d: %w", def, err)
			}
		}
		r.info.Topics = append(r.info.Topics, plugin.TopicInfo{Topic: t})
	}
}

// sumCounts adds up the counts of the tables of a storage that is not closed. Tables without, after a power cut, are
// read.
func (r *reader) sumCounts(ctx context.Context, db *database) (counts, error) {
	cs := counts{}
	counted := map[uint64]bool{}
	for key, rec := range db.records {
		if key[0] != kindCounts || len(key) != 17 {
			continue
		}
		first, last := binary.BigEndian.Uint64([]byte(key[1:])), binary.BigEndian.Uint64([]byte(key[9:]))
		if _, ok := db.version.tables[last]; !ok {
			continue
		}
		one, err := decodeCounts(rec.value)
		if err != nil {
			return nil, &plugin.CorruptError{Path: r.path, Offset: -1, Err: fmt.Errorf("counts: %w", err)}
		}
		cs.merge(one)
		for _, t := range db.tables {
			if t.num >= first && t.num <= last {
				counted[t.num] = true
			}
		}
	}
	for i := range db.tables {
		t := &db.tables[i]
		if counted[t.num] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, err := r.countTable(t)
		var corrupt *plugin.CorruptError
		if errors.As(err, &corrupt) { // reading will say so where it comes to it
			r.info.Warnings = append(r.info.Warnings, fmt.Sprintf("the counts leave out a part of %s: %v", filepath.Base(t.path), err))
		} else if err != nil {
			return nil, err
		}
		cs.merge(one)
	}
	return cs, nil
}

// dropOrphans takes out of what journals hold the messages of topics that there is no record of: of two journals that were
// not synced a power cut may leave the one and not the other.
func (r *reader) dropOrphans(db *database) {
	n := len(db.mem)
	db.mem = slices.DeleteFunc(db.mem, func(m message) bool {
		id := valueTopic(m.value)
		return m.kind == typeValue && id != 0 && int64(id) > int64(len(r.info.Topics))
	})
	if n -= len(db.mem); n > 0 {
		r.info.Warnings = append(r.info.Warnings, fmt.Sprintf("left out: %d messages of topics whose description was lost", n))
	}
}

// countTable reads a table to count what is in it.
func (r *reader) countTable(t *messageTable) (counts, error) {
	f, err := r.cache.acquire(t.path, t.size, &bytewise)
	if err != nil {
		return nil, err
	}
	defer r.cache.release(f)
	cs := counts{}
	c := &cursor{}
	defer c.leave()
	c.reset(f, &bytewise, 0, false)
	ok, err := c.start(t.first)
	for ; ok && err == nil; ok, err = c.next() {
		cs.merge(countMessages(c.ms[c.pos : c.pos+1]))
	}
	return cs, err
}

func countMessages(ms []message) counts {
	cs := counts{}
	for i := range ms {
		var m plugin.Message
		if parseValue(ms[i].value, &m) == nil {
			c := cs[m.Topic]
			c.add(ms[i].time, len(m.Data))
			cs[m.Topic] = c
		}
	}
	return cs
}

// setCounts puts counts into Info. Counts of a topic that there is no record of are damage.
func (r *reader) setCounts(cs counts) error {
	r.info.Start = plugin.NoStart
	var all count
	for id, c := range cs {
		if int64(id) > int64(len(r.info.Topics)) {
			return &plugin.CorruptError{Path: r.path, Offset: -1, Err: fmt.Errorf("%w: topic %d", errTopic, id)}
		}
		t := &r.info.Topics[id-1]
		t.Count, t.Bytes = c.messages, c.bytes
		all.merge(c)
	}
	if r.info.Messages = all.messages; all.messages > 0 {
		r.info.Start, r.info.End = all.first, all.last
	}
	return nil
}

// dirSize returns the bytes of all files below dir. Files that vanish meanwhile count as nothing.
func dirSize(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				n += fi.Size()
			}
		}
		return err
	})
	return n, err
}

// Info implements plugin.Reader.
func (r *reader) Info() plugin.Info { return r.info }

// Messages implements plugin.Reader.
func (r *reader) Messages(q plugin.Query) (plugin.Iterator, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, plugin.ErrClosed
	}
	it := &iterator{r: r}
	if n := len(r.spare); n > 0 {
		it, r.spare = r.spare[n-1], r.spare[:n-1]
	}
	it.begin(q)
	return &query{it}, nil
}

// giveBack takes an iterator that is not used any more.
func (r *reader) giveBack(it *iterator) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed && len(r.spare) < spareIterators {
		r.spare = append(r.spare, it)
	}
}

// Close implements plugin.Reader. Iterators that are open keep the files they read.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed, r.spare = true, nil
		r.cache.close()
	}
	return nil
}
