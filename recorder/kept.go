package recorder

import (
	"slices"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// kept is the last messages of a latched topic that are not in the bag: they came while the recording paused, or left the
// ring of snapshot mode. It belongs to the writer goroutine.
type kept struct {
	last []plugin.Message // oldest first; they own their data
	size int64
}

// maxKept bounds the bytes kept of one topic.
const maxKept = 16 << 20

// add keeps a copy of an entry as one of the last depth.
func (k *kept) add(e *bag.Entry, depth int) {
	var buf []byte
	for len(k.last) > 0 && (len(k.last) >= depth || k.size+int64(len(e.Data)) > maxKept) {
		buf = k.last[0].Data
		k.size -= int64(len(buf))
		k.last = slices.Delete(k.last, 0, 1)
	}
	if depth == 0 || int64(len(e.Data)) > maxKept {
		return
	}
	k.last = append(k.last, plugin.Message{RecvTime: e.RecvTime, SendTime: e.SendTime, Source: e.Source, Seq: e.Seq, Data: append(buf[:0], e.Data...)})
	k.size += int64(len(e.Data))
}

func (k *kept) clear() { *k = kept{} }

// repeatDepth returns how many messages of the topic are repeated at the head of files and snapshots.
func (r *Recorder) repeatDepth(t *topic) int {
	if n, ok := r.o.RepeatTransientLocal[t.name]; ok {
		return n
	}
	if r.o.RepeatAllTransientLocal > 0 && t.latched() {
		return r.o.RepeatAllTransientLocal
	}
	return 0
}
