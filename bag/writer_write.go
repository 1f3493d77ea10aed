package bag

import (
	"fmt"
	"time"

	"github.com/gobag/gobag/plugin"
)

const (
	maxChunk    = 4096 // messages handed to a storage at a time; bounds the scratch
	messageCost = 96   // bytes that a message is taken to need in a file beside its payload, while splitting by size
	splitRetry  = time.Second
)

// Write appends a batch, in order, and keeps nothing of it after it returns; the batch is not changed. Messages without
// an Order get the next one; orders that are given must ascend for ties to keep their place. New files are begun as the
// options say, also within a batch. A message that is larger than the storage takes is passed over and counted as lost
// on its topic (Topics). plugin.ErrUnknownTopic if a message names no topic: nothing of the batch is written and the
// writer stays usable. After any other error the messages that Stats counts are in the file, in order.
func (w *Writer) Write(batch []plugin.Message) error {
	if len(batch) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.usable(); err != nil {
		return err
	}
	for i := range batch {
		if t := batch[i].Topic; t == 0 || int(t) > len(w.topics) {
			return fmt.Errorf("write bag %s: message %d of %d: topic %d: %w", w.dir, i+1, len(batch), t, plugin.ErrUnknownTopic)
		}
	}
	begun := time.Now()
	for rest := batch; len(rest) > 0; {
		if err := w.splitIfDue(rest[0].RecvTime); err != nil {
			return w.loseAll(rest, err)
		}
		if err := w.repeatRetained(rest[0].RecvTime); err != nil {
			return w.loseAll(rest, err)
		}
		chunk := rest[:w.chunk(rest)]
		if err := w.writeChunk(chunk, false); err != nil {
			return w.loseAll(rest, err)
		}
		w.retain(chunk)
		rest = rest[len(chunk):]
	}
	took := time.Since(begun)
	w.stateMu.Lock()
	w.longWrite = max(w.longWrite, took)
	w.stateMu.Unlock()
	return nil
}

// chunk returns how many messages of rest to write before the file's size is looked at again: as many as should fill
// half of the room that is left, and at least one. So the file passes its limit with one message at a time, whatever a
// message costs in it. Where stamps split, it ends before the first message that belongs into the next file.
func (w *Writer) chunk(rest []plugin.Message) int {
	most := min(len(rest), maxChunk)
	if w.o.SplitByStamp && w.o.MaxBagDuration > 0 {
		s := w.file.span
		for i := range most {
			if s.add(rest[i].RecvTime); i > 0 && rest[i].RecvTime-s.start > int64(w.o.MaxBagDuration) {
				most = i
				break
			}
		}
	}
	if w.packer != nil {
		room := packBatch
		for i := range most {
			if room -= len(rest[i].Data); room < 0 && i > 0 {
				most = i
				break
			}
		}
	}
	if w.o.MaxBagSize == 0 {
		return most
	}
	room := (w.o.MaxBagSize - w.file.w.Size()) / 2
	for i := range most {
		if room -= int64(len(rest[i].Data)) + messageCost; room < 0 {
			return max(i, 1)
		}
	}
	return most
}

// writeChunk hands messages to the storage with the topic ids of the current file.
// repeats says that they were written before.
func (w *Writer) writeChunk(chunk []plugin.Message, repeats bool) error {
	w.scratch = w.scratch[:0]
	order := w.order
	for i := range chunk {
		m := chunk[i]
		if w.maxLen > 0 && int64(len(m.Data)) > w.maxLen {
			continue
		}
		m.Topic = w.topics[m.Topic-1].id
		if m.Order == 0 {
			m.Order = order + 1
		}
		order = max(order, m.Order)
		w.scratch = append(w.scratch, m)
	}
	if len(w.scratch) > 0 {
		if w.packer != nil {
			w.packer.pack(w.scratch)
		}
		if err := w.file.w.Write(w.scratch); err != nil {
			clear(w.scratch)
			return w.fail(err)
		}
	}
	w.order = order
	w.count(chunk, repeats)
	clear(w.scratch) // the payloads belong to the caller
	return nil
}

// count books a chunk that was written.
func (w *Writer) count(chunk []plugin.Message, repeats bool) {
	now := time.Now()
	size := w.file.w.Size()
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	w.size = size
	f := w.file
	for i := range chunk {
		m := &chunk[i]
		t := &w.topics[m.Topic-1]
		n := int64(len(m.Data))
		if w.maxLen > 0 && n > w.maxLen {
			if t.lost == 0 {
				w.log.Warn("message is larger than the storage takes; it is lost and counted",
					"topic", t.topic.Name, "bytes", n, "largest", w.maxLen)
			}
			t.lost++
			t.lostBytes += n
			continue
		}
		if f.count == 0 {
			f.begun = now
		}
		f.count++
		f.span.add(m.RecvTime)
		w.span.add(m.RecvTime)
		t.messages++
		t.inFile++
		w.messages++
		if repeats {
			t.repeated++
			w.repeated++
			continue
		}
		t.bytes += n
		w.bytes += n
	}
	w.written++
}

// loseAll counts messages that a failure took and returns the failure.
func (w *Writer) loseAll(rest []plugin.Message, err error) error {
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	for i := range rest {
		t := &w.topics[rest[i].Topic-1]
		t.lost++
		t.lostBytes += int64(len(rest[i].Data))
	}
	return err
}
