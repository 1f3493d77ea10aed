package mcap

import "hash/crc32"

const (
	lendSize    = 4 << 10   // a payload of this size is not copied while its Write lasts
	lendAtLeast = 128 << 10 // chunks that end with a Write for that reason are not smaller
	sumStep     = 64 << 10  // summed up while it is in the processor's cache
)

// records are the records of the open chunk: a buffer, between whose parts stand payloads that belong to the caller of
// Write, and their checksum.
type records struct {
	buf    []byte
	lent   []lent
	bytes  int // of lent
	noSum  bool
	sum    uint32 // of all but buf[summed:]
	summed int    // never before the last of lent

	parts [][]byte // scratch, as is the rest
	spare []byte
}

// lent is a payload of the caller's that stands before buf[at].
type lent struct {
	at   int
	data []byte
}

func (r *records) len() int { return len(r.buf) + r.bytes }

// add appends a payload by copying it.
func (r *records) add(data []byte) {
	r.buf = append(r.buf, data...)
	if len(r.buf)-r.summed >= sumStep {
		r.sumUp()
	}
}

// lend appends a payload that stays where it is, until reset or settle.
func (r *records) lend(data []byte) {
	r.sumUp()
	if !r.noSum {
		r.sum = crc32.Update(r.sum, crc32.IEEETable, data)
	}
	r.lent = append(r.lent, lent{len(r.buf), data})
	r.bytes += len(data)
}

func (r *records) sumUp() {
	if !r.noSum {
		r.sum = crc32.Update(r.sum, crc32.IEEETable, r.buf[r.summed:])
	}
	r.summed = len(r.buf)
}

// checksum is that of all records; 0 if there is none.
func (r *records) checksum() uint32 {
	r.sumUp()
	return r.sum
}

// all are the records piece by piece, valid until the next call of any other method.
func (r *records) all() [][]byte {
	r.parts = r.parts[:0]
	from := 0
	for _, l := range r.lent {
		r.parts = append(r.parts, r.buf[from:l.at], l.data)
		from = l.at
	}
	r.parts = append(r.parts, r.buf[from:])
	return r.parts
}

// settle copies what is lent, so that nothing of the caller's is needed any more.
func (r *records) settle() {
	if len(r.lent) == 0 {
		return
	}
	first := r.lent[0].at
	rest := append(r.spare[:0], r.buf[first:]...)
	r.buf = r.buf[:first]
	for i, l := range r.lent {
		to := len(rest)
		if i+1 < len(r.lent) {
			to = r.lent[i+1].at - first
		}
		r.buf = append(append(r.buf, l.data...), rest[l.at-first:to]...)
	}
	r.summed += r.bytes // all that was lent stands before it
	r.spare = rest
	r.forget()
}

// forget lets go of the caller's memory.
func (r *records) forget() {
	clear(r.lent)
	clear(r.parts)
	r.lent, r.parts, r.bytes = r.lent[:0], r.parts[:0], 0
}

// reset empties the chunk and keeps its memory.
func (r *records) reset() {
	r.forget()
	r.buf, r.sum, r.summed = r.buf[:0], 0, 0
}
