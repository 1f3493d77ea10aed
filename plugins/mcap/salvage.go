package mcap

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/gobag/gobag/plugin"
)

// Salvage hands every whole chunk and message record of a file to w, in file order. Where a record's length or kind
// makes no sense it looks for the next chunk or record of gobag that does.
func (Driver) Salvage(ctx context.Context, path string, w plugin.Writer) (plugin.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return plugin.Report{}, fmt.Errorf("salvage storage: %w", err)
	}
	defer f.Close()
	r, err := newReader(f, path)
	if err != nil {
		return plugin.Report{}, fmt.Errorf("salvage storage %s: %w", path, err)
	}
	s := &salvager{r: r, w: window{f: f, size: r.size}, to: w}
	defer s.buf.close()
	if err := s.run(ctx); err != nil {
		return s.report, fmt.Errorf("salvage storage %s: %w", path, err)
	}
	return s.report, nil
}

type salvager struct {
	r      *reader
	w      window
	buf    buffers
	to     plugin.Writer
	ids    []plugin.TopicID // of the target, by topic of r less one
	bound  int              // how many of r.seen have a topic
	gap    int64
	pack   *pack // for the next chunk
	packs  bool  // the file has packs
	report plugin.Report
}

func (s *salvager) note(format string, args ...any) {
	if len(s.report.Notes) < 1000 {
		s.report.Notes = append(s.report.Notes, fmt.Sprintf(format, args...))
	}
}

func (s *salvager) run(ctx context.Context) error {
	footer := false
	for at := int64(len(magic)); at < s.r.size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b, err := s.w.peek(at, min(s.r.size-at, int64(len(magic)))); err == nil && footer && string(b) == magic {
			return nil
		}
		op, n, err := s.w.head(at)
		if err != nil && !errors.Is(err, errBeyond) {
			return err
		}
		if err != nil || op == 0 || op > opDataEnd && op < opPack {
			next, err := s.resync(at + 1)
			if err != nil {
				return err
			}
			s.note("bytes %d to %d of %d are damaged or cut off", at, next, s.r.size)
			at, s.pack = next, nil
			continue
		}
		footer = footer || op == opFooter
		if at, err = s.step(at, op, n); err != nil {
			return err
		}
	}
	s.note("the file was not closed in order")
	return nil
}

// step handles one record and returns where the next begins.
func (s *salvager) step(at int64, op byte, n int64) (int64, error) {
	next := at + recordHead + n
	switch op {
	case opSchema, opChannel, opMetadata, opTopics, opFinal, opPack:
		content, err := s.w.peek(at+recordHead, n)
		if err != nil {
			return 0, err
		}
		if op == opPack {
			return s.takePack(at, next, content)
		}
		sc := scanner{r: s.r}
		if err := sc.take(op, content); err != nil {
			s.note("record at byte %d: %v", at, err)
		}
		s.packs = s.packs || s.r.own
		return next, s.bind()
	case opMessage:
		return next, s.block(block{off: at, length: recordHead + n, raw: true}, false)
	case opChunk:
		k := block{off: at, length: recordHead + n, gap: s.gap}
		own := s.pack != nil
		if s.packs && !own {
			s.note("chunk at byte %d: gobag's record for it is missing: order, sources and unknown send times of its messages are lost", at)
		}
		err := s.block(k, own)
		s.gap, s.pack = next, nil
		return next, err
	}
	return next, nil
}

func (s *salvager) takePack(at, next int64, content []byte) (int64, error) {
	s.packs = true
	p, ok := parsePack(bytes.Clone(content))
	if !ok {
		s.note("gobag's record at byte %d is damaged", at)
		return next, nil
	}
	s.gap, s.pack = at, &p
	if !p.raw {
		return next, nil
	}
	s.pack = nil
	if p.size < 0 || p.size > s.r.size-next {
		s.note("of the messages from byte %d on the end is cut off", next)
		return next, nil // message by message
	}
	return next + p.size, s.block(block{off: next, length: p.size, gap: at, raw: true}, true)
}

// bind makes topics of new channels, and updates those of the target.
func (s *salvager) bind() error {
	if !s.r.own && s.bound < len(s.r.seen) {
		s.bound = len(s.r.seen)
		s.r.topics = nil
		s.r.foreignTopics()
	}
	for i := range s.r.topics {
		id, err := s.to.AddTopic(s.r.topics[i].Topic)
		if err != nil {
			return err
		}
		if i == len(s.ids) {
			s.ids = append(s.ids, id)
		}
	}
	return nil
}

// block hands over the messages of a chunk or run, with what the pack before it says if own is set.
func (s *salvager) block(k block, own bool) error {
	r := s.r
	records, base, crc, err := r.records(&k, &s.buf)
	if err == nil && !r.own {
		err = eachRecord(records, func(op byte, _ int, content []byte) error {
			if op == opSchema || op == opChannel {
				return r.record(op, content)
			}
			return nil
		})
		if berr := s.bind(); berr != nil {
			return berr
		}
	}
	var x *blockIndex
	if err == nil {
		was := r.own
		r.own, r.blocks = own, []block{k}
		x, err = r.index(0, records, base, crc)
		r.own = was
	}
	if err != nil {
		lost := "its messages are lost"
		if s.pack != nil {
			s.report.Lost += s.pack.messages
			lost = fmt.Sprintf("its %d messages are lost", s.pack.messages)
		}
		s.note("%v: %s", err, lost)
		return nil
	}
	slices.SortFunc(x.entries, func(a, b entry) int { return cmp.Compare(a.off, b.off) })
	batch := make([]plugin.Message, 0, 256)
	for i := range x.entries {
		m := x.entries[i].message(records[x.entries[i].off:][:x.entries[i].n])
		if m.Topic = s.ids[m.Topic-1]; !own {
			m.Order = 0
		}
		if batch = append(batch, m); len(batch) == cap(batch) || i == len(x.entries)-1 {
			if err := s.to.Write(batch); err != nil {
				return err
			}
			s.report.Messages += uint64(len(batch))
			batch = batch[:0]
		}
	}
	return nil
}

// resync returns where, from at on, the next record lies that can be told from chance: a chunk whose lengths agree, or a
// whole record of gobag. The size of the file if there is none.
func (s *salvager) resync(at int64) (int64, error) {
	const step = 1 << 20
	probe := window{f: s.r.f, size: s.r.size}
	buf := make([]byte, step)
	for ; at < s.r.size; at += step {
		b := buf[:min(step, s.r.size-at)]
		if n, err := s.r.f.ReadAt(b, at); n < len(b) {
			return 0, err
		}
		for i, c := range b {
			if c != opChunk && c != opPack && c != opTopics {
				continue
			}
			op, n, err := probe.head(at + int64(i))
			if err != nil {
				continue
			}
			if ok, err := s.plausible(&probe, op, at+int64(i)+recordHead, n); err != nil {
				return 0, err
			} else if ok {
				return at + int64(i), nil
			}
		}
	}
	return s.r.size, nil
}

func (s *salvager) plausible(w *window, op byte, at, n int64) (bool, error) {
	if op != opChunk {
		head, err := w.peek(at, min(n, int64(len(ownMagic))))
		if err != nil || string(head) != ownMagic {
			return false, ignoreDamage(err)
		}
		b, err := w.peek(at, n)
		if err != nil {
			return false, ignoreDamage(err)
		}
		_, ok := openOwn(b)
		return ok, nil
	}
	b, err := w.peek(at, min(n, 64))
	if err != nil {
		return false, ignoreDamage(err)
	}
	f := fields{b: b}
	f.bytes(16)
	size := f.u64()
	f.u32()
	name := f.str()
	stored := f.u64()
	if f.bad || stored > uint64(n) {
		return false, nil
	}
	switch name {
	case "":
		return stored == size && uint64(n) >= 40+stored, nil
	case "zstd", "lz4":
		return uint64(n) >= 40+uint64(len(name))+stored, nil
	}
	return false, nil
}
