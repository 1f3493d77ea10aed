package columnar

import (
	"slices"
	"strings"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugins/columnar/parquet"
)

// Long byte values compress poorly as they are: neighbours of a byte are not what it resembles. With blobs: small, two
// kinds of them are rearranged before zstd, and back when read:
//
//   - point clouds (uint8[] data beside uint32 point_step): the bytes of all points of a page group, first byte of each
//     point first, then all second bytes, and so on
//   - raw images (uint8[] data beside uint32 step and string encoding): every byte less the one of the pixel to the left
//
// Other programs see the rearranged bytes, so the column has another name: "_data_small" instead of "data".

// Kinds of rearrangement.
const (
	blobAsIs = iota
	blobPoints
	blobPixels
)

// blobColumn is a column of a program that may be rearranged.
type blobColumn struct {
	kind     byte
	col      int // the bytes
	size     int // column of point_step or step
	encoding int // column of the encoding, of pixels
}

// blobColumnOf finds the column of p; nil if there is none.
func blobColumnOf(p *shred.Program) *blobColumn {
	find := func(path []string, name string, kind shred.Kind) int {
		return slices.IndexFunc(p.Columns(), func(c shred.Column) bool {
			return c.Kind == kind && c.List < 0 && c.Fixed == 0 && len(c.Path) == len(path) && slices.Equal(c.Path[:len(path)-1], path[:len(path)-1]) && c.Path[len(path)-1] == name
		})
	}
	for i := range p.Columns() {
		c := &p.Columns()[i]
		if c.Kind != shred.Bytes || c.List >= 0 || c.Fixed > 0 || c.Path[len(c.Path)-1] != "data" {
			continue
		}
		if at := find(c.Path, "point_step", shred.UInt32); at >= 0 {
			return &blobColumn{blobPoints, i, at, -1}
		}
		if at, enc := find(c.Path, "step", shred.UInt32), find(c.Path, "encoding", shred.String); at >= 0 && enc >= 0 {
			return &blobColumn{blobPixels, i, at, enc}
		}
	}
	return nil
}

// rename gives the column the name that says that its bytes are rearranged.
func (k *blobColumn) rename(p *shred.Program, fields []parquet.Field) {
	at := fields
	path := p.Columns()[k.col].Path
	for d, name := range path {
		i := slices.IndexFunc(at, func(f parquet.Field) bool { return f.Name == name })
		if d == len(path)-1 {
			at[i].Name = "_" + name + "_small"
			return
		}
		at = at[i].Fields
	}
}

// blobShape says how the bytes of a page group were rearranged.
type blobShape struct {
	kind byte
	step uint32 // bytes of a point or of a row
	unit uint32 // bytes of a pixel
}

const maxStep = 1 << 20

// shape looks at the rows of a batch. Their steps must be the same, and their data whole points or rows.
func (k *blobColumn) shape(b *shred.Batch) blobShape {
	steps, ends := b.Cols[k.size].I32, b.Cols[k.col].Ends
	if len(steps) == 0 || len(b.Cols[k.col].Data) == 0 || steps[0] <= 1 || steps[0] > maxStep {
		return blobShape{}
	}
	s := blobShape{k.kind, uint32(steps[0]), 1}
	for i := range steps {
		if steps[i] != steps[0] || ends[i]%s.step != 0 {
			return blobShape{}
		}
	}
	if k.kind == blobPixels {
		texts := &b.Cols[k.encoding]
		s.unit = pixelBytes(string(texts.Bytes(0)))
		for i := range ends {
			if string(texts.Bytes(i)) != string(texts.Bytes(0)) {
				return blobShape{}
			}
		}
		if s.unit == 0 || s.unit >= s.step {
			return blobShape{}
		}
	}
	return s
}

// pixelBytes is the size of a pixel of an encoding of sensor_msgs/image_encodings; 0 if it is none that is known.
func pixelBytes(encoding string) uint32 {
	switch encoding {
	case "rgb8", "bgr8", "8UC3", "8SC3":
		return 3
	case "rgba8", "bgra8", "8UC4", "8SC4", "32SC1", "32FC1", "16UC2", "16SC2":
		return 4
	case "mono16", "16UC1", "16SC1", "yuv422", "yuv422_yuy2", "uyvy", "yuyv", "8UC2", "8SC2":
		return 2
	case "mono8", "8UC1", "8SC1":
		return 1
	case "rgb16", "bgr16", "16UC3", "16SC3":
		return 6
	case "rgba16", "bgra16", "16UC4", "16SC4", "64FC1", "32FC2", "32SC2":
		return 8
	}
	if strings.HasPrefix(encoding, "bayer_") { // the same colour is two to the left
		if strings.HasSuffix(encoding, "16") {
			return 4
		}
		return 2
	}
	return 0
}

// apply appends the rearranged bytes of src to dst.
func (s blobShape) apply(dst, src []byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, len(src))[:at+len(src)]
	out := dst[at:]
	if s.kind == blobPixels {
		step, unit := int(s.step), int(s.unit)
		for row := 0; row < len(src); row += step {
			from, to := src[row:row+step], out[row:row+step]
			copy(to, from[:unit])
			left := from[:len(from)-unit]
			from, to = from[unit:], to[unit:]
			for i, c := range left {
				to[i] = from[i] - c
			}
		}
		return dst
	}
	transpose(out, src, int(s.step), len(src)/int(s.step))
	return dst
}

// undo appends what apply was given.
func (s blobShape) undo(dst, src []byte) []byte {
	at := len(dst)
	dst = slices.Grow(dst, len(src))[:at+len(src)]
	out := dst[at:]
	if s.kind == blobPixels {
		step, unit := int(s.step), int(s.unit)
		for row := 0; row < len(src); row += step {
			from, to := src[row:row+step], out[row:row+step]
			copy(to, from[:unit])
			for i := unit; i < step; i++ {
				to[i] = from[i] + to[i-unit]
			}
		}
		return dst
	}
	transpose(out, src, len(src)/int(s.step), int(s.step))
	return dst
}

// transpose reads src as rows of width bytes and writes its columns one after the other. Pieces of 64 rows stay in the
// cache.
func transpose(dst, src []byte, width, rows int) {
	if width > rows { // the way back: the same with the sides exchanged
		for c := 0; c < width; c += 64 {
			end := min(c+64, width)
			for r := range rows {
				line := src[r*width+c : r*width+end]
				at := c*rows + r
				for _, x := range line {
					dst[at] = x
					at += rows
				}
			}
		}
		return
	}
	for r := 0; r < rows; r += 64 {
		n := min(64, rows-r)
		block := src[r*width : (r+n)*width]
		for c := range width {
			column := dst[c*rows+r : c*rows+r+n]
			at := c
			for i := range column {
				column[i] = block[at]
				at += width
			}
		}
	}
}

// appendShapes and parseShapes are what a part's metadata says of its page groups: 9 bytes each.
func appendShape(b []byte, s blobShape) []byte {
	return le.AppendUint32(le.AppendUint32(append(b, s.kind), s.step), s.unit)
}

func parseShape(b []byte) blobShape { return blobShape{b[0], le.Uint32(b[1:]), le.Uint32(b[5:])} }

// fits says whether data of n bytes can have been rearranged like this.
func (s blobShape) fits(n int) bool {
	switch s.kind {
	case blobAsIs:
		return true
	case blobPoints:
		return s.step > 1 && s.step <= maxStep && n%int(s.step) == 0
	case blobPixels:
		return s.step > 1 && s.step <= maxStep && n%int(s.step) == 0 && s.unit > 0 && s.unit < s.step
	}
	return false
}
