package parquet

import "hash/crc32"

// spillValue is the size from which on a value goes to the file without a copy.
const spillValue = 16 << 10

// spill writes a page of long values to the file at once. Only one column of a file can do that, since its pages lie
// together; false for every other.
func (w *Writer) spill(c *column, v *Values) (bool, error) {
	i := 0
	for &w.cols[i] != c {
		i++
	}
	if w.out == nil {
		if len(w.groups) > 0 {
			return false, nil
		}
		out, err := w.opts.Open()
		if err != nil {
			return true, err
		}
		w.out, w.spilled = &sink{w: out}, i
		w.out.write([]byte(magic))
	}
	if w.spilled != i {
		return false, nil
	}
	n := len(v.Ends)
	size := 4*n + len(v.Data)
	off := w.out.off - int64(len(magic))
	head := w.pageHead(size, size, n, plain, false)
	c.raw += int64(len(head) + size)
	crc := uint32(0)
	put := func(b []byte) {
		crc = crc32.Update(crc, castagnoli, b)
		w.out.write(b)
	}
	buf := append(w.body[:0], head...)
	start := uint32(0)
	for _, end := range v.Ends {
		s := v.Data[start:end]
		start = end
		buf = le.AppendUint32(buf, uint32(len(s)))
		if len(s) < spillValue {
			buf = append(buf, s...)
			if len(buf) < 4*spillValue {
				continue
			}
		}
		put(buf)
		buf = buf[:0]
		if len(s) >= spillValue {
			put(s)
		}
	}
	put(buf)
	w.body = buf
	w.add(c, page{off: int(off), size: len(head) + size, crc: crc}, n, plain)
	return true, w.out.err
}
