package rtps

import "github.com/gobag/gobag/rtps/wire"

// wsample is a written sample. Its memory has one reference for the history; whoever sends it holds another.
type wsample struct {
	seq    int64
	time   int64 // source time, ns since the Unix epoch
	buf    *buffer
	data   []byte
	at     mono            // of the write
	keep   bool            // builtin: the latest of its key, kept for late readers
	isKey  bool            // builtin: data is a key
	key    GUID            // builtin
	inline *wire.InlineQoS // sent along; nil nothing. Builtin samples always have it
}

// history keeps samples of consecutive sequence numbers, some of which may have been removed.
type history struct {
	items []wsample
	head  int
	first int64 // sequence number of items[head]
	bytes int
}

func (h *history) len() int { return len(h.items) - h.head }

// last is the highest sequence number, first-1 if there is none.
func (h *history) last() int64 { return h.first + int64(h.len()) - 1 }

// at returns the sample of a sequence number, nil if it is not there. The pointer is good until the next push or pop.
func (h *history) at(seq int64) *wsample {
	if seq < h.first || seq > h.last() {
		return nil
	}
	s := &h.items[h.head+int(seq-h.first)]
	if s.buf == nil {
		return nil
	}
	return s
}

// push appends the sample behind the last one.
func (h *history) push(s wsample) {
	if h.head > 64 && h.head > len(h.items)/2 {
		n := copy(h.items, h.items[h.head:])
		clear(h.items[n:])
		h.items, h.head = h.items[:n], 0
	}
	h.items = append(h.items, s)
	h.bytes += len(s.data)
}

// remove drops a sample and leaves a hole.
func (h *history) remove(seq int64) {
	if s := h.at(seq); s != nil {
		h.bytes -= len(s.data)
		s.buf.release()
		*s = wsample{}
	}
}

// pop drops the first sample or hole.
func (h *history) pop() {
	h.remove(h.first)
	h.items[h.head] = wsample{}
	h.head++
	h.first++
	if h.head == len(h.items) {
		h.items, h.head = h.items[:0], 0
	}
}
