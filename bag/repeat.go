package bag

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// A file that was begun by a split lacks what latched topics published before it: a map, static transforms. So the last
// messages of topics named by Retain are written once more at the head of each new file, all with the stamp just before the
// file's first message, and marked as repeats in custom_data. A Reader of the whole bag leaves them out; a file that is
// read alone has them, and so has every other reader.

// maxRetained bounds the bytes that Retain keeps; a topic whose messages do not fit is not repeated.
const maxRetained = 64 << 20

// FileRepeats says which messages of a file repeat earlier ones: of each topic named so many, the first ones with the
// stamp.
type FileRepeats struct {
	File   string         `json:"file"`
	Stamp  int64          `json:"stamp_ns"`
	Topics map[string]int `json:"topics"`
}

// ParseRepeats reads the text that custom_data carries under KeyRepeats.
func ParseRepeats(text string) ([]FileRepeats, error) {
	var rs []FileRepeats
	if err := json.Unmarshal([]byte(text), &rs); err != nil {
		return nil, fmt.Errorf("parse %s: %w", KeyRepeats, err)
	}
	return rs, nil
}

// retained is the last messages of a topic.
type retained struct {
	depth    int
	tooLarge bool
	last     []plugin.Message // oldest first, at most depth; they own their data
}

// Retain makes the writer keep copies of the last depth messages of a topic and begin every further file with them. 0 ends
// that. Messages beyond 64 MiB in total are not kept.
func (w *Writer) Retain(id plugin.TopicID, depth int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == 0 || int(id) > len(w.topics) {
		return fmt.Errorf("retain topic %d: %w", id, plugin.ErrUnknownTopic)
	}
	k := &w.topics[id-1].keep
	k.depth = max(depth, 0)
	for len(k.last) > k.depth {
		w.dropRetained(k)
	}
	return nil
}

// dropRetained forgets the oldest message of a topic.
func (w *Writer) dropRetained(k *retained) {
	w.kept -= int64(len(k.last[0].Data))
	k.last = slices.Delete(k.last, 0, 1)
}

// retain keeps copies of what was written of the topics that Retain names.
func (w *Writer) retain(chunk []plugin.Message) {
	for i := range chunk {
		m := &chunk[i]
		k := &w.topics[m.Topic-1].keep
		if k.depth == 0 || w.maxLen > 0 && int64(len(m.Data)) > w.maxLen {
			continue
		}
		var buf []byte // of the one that leaves, used again
		if len(k.last) == k.depth {
			buf = k.last[0].Data
			w.dropRetained(k)
		}
		if w.kept+int64(len(m.Data)) > maxRetained {
			for len(k.last) > 0 { // an older one would be wrong
				w.dropRetained(k)
			}
			if !k.tooLarge {
				k.tooLarge = true
				w.log.Warn("latched messages are too large to be repeated in each file", "topic", w.topics[m.Topic-1].topic.Name, "bytes", len(m.Data))
			}
			continue
		}
		own := *m
		own.Data = append(buf[:0], m.Data...)
		w.kept += int64(len(own.Data))
		k.last = append(k.last, own)
	}
}

// repeatRetained begins a file that a split has opened with the retained messages. stamp is that of the first message that
// will follow.
func (w *Writer) repeatRetained(stamp int64) error {
	if !w.atHead {
		return nil
	}
	w.atHead = false
	var batch []plugin.Message
	for i := range w.topics {
		for _, m := range w.topics[i].keep.last {
			m.Order = 0
			batch = append(batch, m)
		}
	}
	if len(batch) == 0 {
		return nil
	}
	if err := w.writeRepeats(batch, stamp); err != nil {
		return err
	}
	w.background.Go(w.republish) // readers must know of them
	return nil
}

// WriteRepeats writes messages that were recorded before, into another file or bag: they get the stamp just before the given
// one, are marked as repeats and count as none of the messages written. It is for the head of a bag, before anything else
// is written.
func (w *Writer) WriteRepeats(batch []plugin.Message, stamp int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	for i := range batch {
		if t := batch[i].Topic; t == 0 || int(t) > len(w.topics) {
			return fmt.Errorf("write bag %s: repeat %d of %d: topic %d: %w", w.dir, i+1, len(batch), t, plugin.ErrUnknownTopic)
		}
	}
	own := slices.Clone(batch)
	if err := w.writeRepeats(own, stamp); err != nil {
		return err
	}
	w.retain(own)
	return nil
}

// writeRepeats changes the stamps of batch.
func (w *Writer) writeRepeats(batch []plugin.Message, stamp int64) error {
	if len(batch) == 0 {
		return nil
	}
	if stamp > math.MinInt64 {
		stamp--
	}
	mark := FileRepeats{File: w.file.name, Stamp: stamp, Topics: map[string]int{}}
	for i := range batch {
		batch[i].RecvTime = stamp
		mark.Topics[w.topics[batch[i].Topic-1].topic.Name]++
	}
	w.stateMu.Lock()
	w.repeats = append(w.repeats, mark)
	w.stateMu.Unlock()
	return w.writeChunk(batch, true)
}

// setRepeats tells the files of a bag which of their messages repeat what the files before hold.
func (r *Reader) setRepeats(text string) {
	rs, err := ParseRepeats(text)
	if err != nil {
		r.warnf("%v; messages that repeat earlier ones are not told apart", err)
		return
	}
	r.info.Repeats = rs
	for _, x := range rs {
		name := strings.TrimSuffix(x.File, zstdExt)
		for i, f := range r.files {
			if i > 0 && strings.TrimSuffix(f.name, zstdExt) == name { // nothing comes before the first file
				f.repeats = &x
				r.discount(f)
			}
		}
	}
}

// discount takes the repeats of a file out of the counts, as far as the file can hold them.
func (r *Reader) discount(f *readerFile) {
	for i := range r.topics {
		t := &r.topics[i]
		n := uint64(max(f.repeats.Topics[t.Name], 0))
		n = min(n, t.Count, r.info.Messages)
		t.Count -= n
		r.info.Messages -= n
	}
}

// repeatsLeft returns what an iterator has to leave out of the file; nil if nothing.
func (f *readerFile) repeatsLeft() map[plugin.TopicID]int {
	if f.repeats == nil {
		return nil
	}
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	left := map[plugin.TopicID]int{}
	for _, t := range f.r.topics {
		if n := f.repeats.Topics[t.Name]; n > 0 {
			left[t.ID] = n
		}
	}
	return left
}
