package leveldb

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gobag/gobag/plugin"
)

// Salvage implements plugin.Salvager: it reads every table and journal that is there, whatever CURRENT and the MANIFEST
// say, block by block and record by record, and leaves out what is damaged.
func (Driver) Salvage(ctx context.Context, path string, w plugin.Writer) (plugin.Report, error) {
	s := &salvage{ctx: ctx, w: w, ids: map[plugin.TopicID]plugin.TopicID{}}
	err := s.run(path)
	if err != nil {
		err = fmt.Errorf("salvage storage %s: %w", path, err)
	}
	return s.report, err
}

// salvage is one salvage at work.
type salvage struct {
	ctx     context.Context
	w       plugin.Writer
	report  plugin.Report
	ids     map[plugin.TopicID]plugin.TopicID // in the storage to those of w
	seen    orderSet
	orphans uint64 // messages of topics that there is no record of
	batch   []plugin.Message
}

func (s *salvage) notef(format string, args ...any) {
	s.report.Notes = append(s.report.Notes, fmt.Sprintf(format, args...))
}

func (s *salvage) run(path string) error {
	if exists(filepath.Join(path, currentFile)) || hasTables(path) {
		return s.runOwn(path)
	}
	pairs, err := findPairs(path)
	if err != nil {
		return err
	}
	if len(pairs) == 0 {
		return fmt.Errorf("%w: there is neither %s nor a table in it", plugin.ErrFormat, currentFile)
	}
	for i, stem := range pairs {
		if err := s.runPair(filepath.Join(path, stem), plugin.TopicID(i+1)); err != nil {
			return err
		}
	}
	return nil
}

func hasTables(path string) bool {
	m, err := filepath.Glob(filepath.Join(path, "*.ldb"))
	return err == nil && len(m) > 0
}

// runOwn salvages a storage of ours: first what describes it, then the messages.
func (s *salvage) runOwn(path string) error {
	db := &database{dir: path, order: bytewise, records: map[string]record{}}
	files, err := s.files(path)
	if err != nil {
		return err
	}
	if err := s.each(files, true, func(key, value []byte, seq uint64, kind byte) {
		if len(key) > 0 && key[0] < kindMessage {
			db.takeRecord(seq, kind, key, value)
		}
	}); err != nil {
		return err
	}
	r := &reader{path: path}
	if err := r.readTopics(db); err != nil {
		s.notef("topics: %v", err)
	}
	for i := range r.info.Topics {
		t := &r.info.Topics[i].Topic
		if s.ids[t.ID], err = s.w.AddTopic(*t); err != nil {
			return err
		}
	}
	if err := s.copyMessages(files, bytewise, 0); err != nil {
		return err
	}
	if s.orphans > 0 {
		s.notef("%d messages belong to topics that there is no record of", s.orphans)
	}
	var known uint64
	for _, c := range knownCounts(db) {
		known += c.messages
	}
	s.report.Lost = max(s.orphans, known-min(known, s.report.Messages))
	return nil
}

// knownCounts returns what the storage says that it holds, at least.
func knownCounts(db *database) counts {
	sum := counts{}
	if rec, ok := db.records[string(kindTotals)]; ok {
		if cs, err := decodeCounts(rec.value); err == nil {
			return cs
		}
	}
	for key, rec := range db.records {
		if key[0] == kindCounts {
			if cs, err := decodeCounts(rec.value); err == nil {
				sum.merge(cs)
			}
		}
	}
	return sum
}

// runPair salvages a topic of the C++ plugin's layout.
func (s *salvage) runPair(stem string, id plugin.TopicID) error {
	r := &reader{path: stem, cache: &tableCache{limit: 1}}
	defer r.cache.close()
	t, bo, err := r.pairTopic(s.ctx, stem+pairMetadata)
	if err != nil {
		s.notef("the topic of %s is left out: %v", filepath.Base(stem), err)
		return nil
	}
	if s.ids[id], err = s.w.AddTopic(t); err != nil {
		return err
	}
	files, err := s.files(stem + pairMessages)
	if err != nil {
		return err
	}
	s.seen = orderSet{}
	return s.copyMessages(files, stampOrder(bo, id), id)
}

// dataFile is a table or a journal.
type dataFile struct {
	path    string
	num     uint64
	journal bool
}

func (s *salvage) files(dir string) ([]dataFile, error) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []dataFile
	for _, e := range es {
		path := filepath.Join(dir, e.Name())
		if num, ok := parseJournalName(e.Name()); ok {
			files = append(files, dataFile{path, num, true})
		} else if num, ok := parseNumbered(e.Name(), ".ldb"); ok {
			files = append(files, dataFile{path, num, false})
		}
	}
	slices.SortFunc(files, func(a, b dataFile) int { return cmp.Compare(a.num, b.num) })
	return files, nil
}

// copyMessages hands all messages on, each once: a journal and the table made of it may both be there.
func (s *salvage) copyMessages(files []dataFile, order keyOrder, topic plugin.TopicID) error {
	var failed error
	err := s.each(files, false, func(key, value []byte, _ uint64, kind byte) {
		st, ok, err := order.parse(key)
		if failed != nil || !ok || err != nil || kind != typeValue {
			return
		}
		m := plugin.Message{RecvTime: st.time, Order: st.order}
		n := st.order
		if topic != 0 {
			m.Topic, m.SendTime, m.Data, m.Order = topic, st.time, value, 0
			n = uint64(st.time)
		} else if parseValue(value, &m) != nil {
			return
		}
		if !s.seen.add(n) {
			return
		}
		if m.Topic, ok = s.ids[m.Topic]; !ok {
			s.orphans++
			return
		}
		s.batch = append(s.batch[:0], m)
		if failed = s.w.Write(s.batch); failed == nil {
			s.report.Messages++
		}
	})
	return errors.Join(failed, err)
}

// each calls f for every entry that is whole. quiet leaves notes out.
func (s *salvage) each(files []dataFile, quiet bool, f func(key, value []byte, seq uint64, kind byte)) error {
	notef := s.notef
	if quiet {
		notef = func(string, ...any) {}
	}
	for _, d := range files {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		b, err := os.ReadFile(d.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if d.journal {
			eachOfJournal(d.path, b, notef, f)
		} else {
			eachOfTable(d.path, b, notef, f)
		}
	}
	return nil
}

// eachOfJournal goes on behind damage at the next record.
func eachOfJournal(path string, b []byte, notef func(string, ...any), f func(key, value []byte, seq uint64, kind byte)) {
	name := filepath.Base(path)
	for at := 0; at < len(b); {
		end, err := readJournalFrom(path, b, at, func(rec []byte, off int64) error {
			if err := readBatch(rec, func(seq uint64, kind byte, key, value []byte) error {
				f(key, value, seq, kind)
				return nil
			}); err != nil {
				notef("%s: record at byte %d: %v", name, off, err)
			}
			return nil
		})
		switch {
		case err == nil:
			return
		case errors.Is(err, errTorn):
			notef("%s ends within a record at byte %d of %d", name, end, len(b))
			return
		}
		notef("%s: damaged at byte %d", name, end)
		at = nextChunk(b, int(end)+1)
	}
}

// eachOfTable walks over the blocks of a table by its index, or, where that is damaged, one by one from the beginning.
func eachOfTable(path string, b []byte, notef func(string, ...any), f func(key, value []byte, seq uint64, kind byte)) {
	name := filepath.Base(path)
	t, err := openTable(path, int64(len(b)), &bytewise)
	if err != nil {
		notef("%s: %v; its blocks are looked for", name, err)
		if end := eachRawBlock(path, b, f); end < len(b) {
			notef("%s: nothing to be read from byte %d of %d on", name, end, len(b))
		}
		return
	}
	defer t.f.Close()
	for _, e := range t.index {
		block, err := t.readBlock(e.off, e.size)
		if err == nil {
			err = eachOfBlock(block, f)
		}
		if err != nil {
			notef("%s: %v", name, err)
		}
	}
}

func eachOfBlock(block []byte, f func(key, value []byte, seq uint64, kind byte)) error {
	return parseBlock(block, func(key, value []byte) error {
		user, seq, kind, err := splitKey(key)
		if err == nil {
			f(user, value, seq, kind)
		}
		return err
	}, func(err error) error { return err })
}

// eachRawBlock finds blocks that are not compressed without an index, and returns where it stopped.
func eachRawBlock(path string, b []byte, f func(key, value []byte, seq uint64, kind byte)) int {
	t := &tableFile{path: path, size: int64(len(b))}
	at := 0
	for at < len(b) {
		n := rawBlockLen(t, b[at:], int64(at))
		if n == 0 {
			return at
		}
		if eachOfBlock(b[at:at+n], f) != nil {
			return at
		}
		at += n + blockTrailer
	}
	return at
}

// rawBlockLen returns the length of the block that begins b, without its trailer; 0 if there is none. A block's list of
// restarts begins with 0 and ends with its own length; the checksum says whether a candidate is one.
func rawBlockLen(t *tableFile, b []byte, off int64) int {
	for at := 0; at+4 <= len(b); {
		if binary.LittleEndian.Uint32(b[at:]) == 0 {
			for k, last := 1, uint32(0); at+4*k+4 <= len(b); k++ {
				v := binary.LittleEndian.Uint32(b[at+4*k:])
				if int64(v) == int64(k) {
					end := at + 4*k + 4
					if end+blockTrailer <= len(b) && b[end] == typeRaw {
						if _, _, err := t.openBlock(b[:end+blockTrailer], off, nil); err == nil {
							return end
						}
					}
				}
				if v <= last {
					break
				}
				last = v
			}
		}
		rest := b[at:]
		var h [3]uint64
		for i := range h {
			var ok bool
			if h[i], rest, ok = cutUvarint(rest); !ok {
				return 0
			}
		}
		if h[1] > uint64(len(rest)) || h[2] > uint64(len(rest))-h[1] {
			return 0
		}
		at = len(b) - len(rest) + int(h[1]+h[2])
	}
	return 0
}

// orderSet is a set of numbers that mostly come in runs.
type orderSet struct{ runs []orderRun }

type orderRun struct{ first, last uint64 }

// add puts n in and says whether it was not there.
func (s *orderSet) add(n uint64) bool {
	i, found := slices.BinarySearchFunc(s.runs, n, func(r orderRun, n uint64) int {
		switch {
		case n < r.first:
			return 1
		case n > r.last:
			return -1
		}
		return 0
	})
	if found {
		return false
	}
	joinsLeft := i > 0 && s.runs[i-1].last+1 == n
	joinsRight := i < len(s.runs) && n+1 == s.runs[i].first
	switch {
	case joinsLeft && joinsRight:
		s.runs[i-1].last = s.runs[i].last
		s.runs = slices.Delete(s.runs, i, i+1)
	case joinsLeft:
		s.runs[i-1].last = n
	case joinsRight:
		s.runs[i].first = n
	default:
		s.runs = slices.Insert(s.runs, i, orderRun{n, n})
	}
	return true
}
