package parquet

// ropeChunk is the size of the memory that long column chunks are made of.
const ropeChunk = 64 << 10

// maxSpare bounds the pieces of memory that a Compressor keeps for the next column.
const maxSpare = 64

// rope is bytes in pieces, so that what has been written is never copied to make room.
type rope struct {
	pieces [][]byte
	n      int // bytes in all
}

// append copies b to the end. c has memory that is done with.
func (r *rope) append(b []byte, c *Compressor) {
	r.n += len(b)
	for len(b) > 0 {
		k := len(r.pieces) - 1
		if k < 0 || len(r.pieces[k]) == cap(r.pieces[k]) {
			r.pieces = append(r.pieces, c.room(min(max(r.n, 256), ropeChunk)))
			k++
		}
		p := r.pieces[k]
		m := min(len(b), cap(p)-len(p))
		r.pieces[k] = append(p, b[:m]...)
		b = b[m:]
	}
}

// reset drops all bytes, and keeps the memory of a short rope.
func (r *rope) reset(c *Compressor) {
	r.n = 0
	if len(r.pieces) == 1 && cap(r.pieces[0]) < ropeChunk {
		r.pieces[0] = r.pieces[0][:0]
		return
	}
	for _, p := range r.pieces {
		if cap(p) == ropeChunk && len(c.spare) < maxSpare {
			c.spare = append(c.spare, p[:0])
		}
	}
	clear(r.pieces)
	r.pieces = r.pieces[:0]
}

// room returns empty memory for n bytes, ropeChunk at most.
func (c *Compressor) room(n int) []byte {
	if k := len(c.spare) - 1; n == ropeChunk && k >= 0 {
		p := c.spare[k]
		c.spare = c.spare[:k]
		return p
	}
	return make([]byte, 0, n)
}
