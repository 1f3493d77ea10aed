package parquet

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// fuzzFiles are small files of several schemas.
func fuzzFiles(f *testing.F) [][]byte {
	f.Helper()
	var files [][]byte
	for seed, schema := range [][]Field{everything, everything[:2], everything[9:13], everything[16:20]} {
		l, err := newLayout(schema)
		if err != nil {
			f.Fatal(err)
		}
		w := newTestWriter(f, schema, Options{Store: seed%2 == 0})
		for range 2 {
			if err := w.Append(randomBatch(rand.New(rand.NewPCG(uint64(seed), 5)), l, 12)); err != nil {
				f.Fatal(err)
			}
		}
		files = append(files, finish(f, w, KeyValue{"k", "v"}))
	}
	return files
}

// readFuzzed reads all of a file as if its checksums were right: no panic, and no memory beyond what the limit allows.
func readFuzzed(t *testing.T, r *PageReader, b []byte) {
	file, err := open(bytes.NewReader(b), int64(len(b)), false)
	if err != nil {
		return
	}
	for g := range min(file.Groups(), 3) {
		file.groups[g].bytes = min(file.groups[g].bytes, 1<<16)
		for i := range file.Leaves() {
			var v Values
			if err := r.Read(file, g, i, &v); err != nil {
				continue
			}
			l := &file.Leaves()[i]
			if n := v.Len(l); n > 1<<18 {
				t.Fatalf("%d values", n)
			}
			if len(v.Ends) > 0 {
				_ = v.At(len(v.Ends) - 1)
			}
			if l.List >= 0 {
				_, _ = r.Counts(nil, file.Lists()[l.List].Depth) // any answer will do
			}
		}
	}
}

func newFuzzReader(f *testing.F) *PageReader {
	f.Helper()
	r, err := NewPageReader()
	if err != nil {
		f.Fatal(err)
	}
	r.Limit = 1 << 16
	f.Cleanup(r.Close)
	return r
}

// Any bytes as a file.
func FuzzFile(f *testing.F) {
	for _, b := range fuzzFiles(f) {
		f.Add(b)
	}
	r := newFuzzReader(f)
	f.Fuzz(func(t *testing.T, b []byte) { readFuzzed(t, r, b) })
}

// A file of ours with other bytes somewhere.
func FuzzChangedFile(f *testing.F) {
	files := fuzzFiles(f)
	for i, b := range files {
		f.Add(uint8(i), uint32(4), []byte{0})
		f.Add(uint8(i), uint32(len(b)/3), []byte{255, 255, 255, 255, 15})
		f.Add(uint8(i), uint32(len(b)-300), []byte{128})
	}
	r := newFuzzReader(f)
	f.Fuzz(func(t *testing.T, which uint8, at uint32, change []byte) {
		b := slices.Clone(files[int(which)%len(files)])
		copy(b[int(at)%len(b):], change)
		readFuzzed(t, r, b)
	})
}

// Every encoding gives back what went in, and its decoder takes any bytes.
func FuzzEncodings(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 1, 2, 250, 3}, uint8(3))
	f.Add(bytes.Repeat([]byte{7}, 300), uint8(8))
	f.Fuzz(func(t *testing.T, b []byte, width uint8) {
		width = width%8 + 1
		small := slices.Clone(b)
		for i := range small {
			small[i] &= 1<<width - 1
		}
		out := make([]byte, len(small))
		rest, err := cutHybrid(appendHybrid(nil, small, int(width)), out, int(width))
		if err != nil || len(rest) > 0 || !bytes.Equal(out, small) {
			t.Fatalf("hybrid of width %d: %x becomes %x, %v", width, small, out, err)
		}
		var i32 []int32
		var i64 []int64
		for i := 0; i+8 <= len(b); i += 8 {
			i64 = append(i64, int64(le.Uint64(b[i:])))
			i32 = append(i32, int32(le.Uint32(b[i:])))
		}
		_, got64, err := cutDelta(appendDelta(nil, i64), []int64(nil), len(i64))
		if err != nil || !slices.Equal(got64, i64) {
			t.Fatalf("delta of %v: %v, %v", i64, got64, err)
		}
		_, got32, err := cutDelta(appendDelta(nil, i32), []int32(nil), len(i32))
		if err != nil || !slices.Equal(got32, i32) {
			t.Fatalf("delta of %v: %v, %v", i32, got32, err)
		}
		if stored := appendStored(nil, b); len(b) > 0 {
			d, err := NewDecompressor()
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if got, err := d.zstd(stored, len(b)); err != nil || !bytes.Equal(got, b) {
				t.Fatalf("stored: %v", err)
			}
		}
		_, _, _ = cutDelta(b, []int32(nil), int(width)*5) // any answer will do
		_, _ = cutHybrid(b, make([]uint32, 50), int(width))
		var lv levels
		_, _ = lv.cut(b, int(width), 3)
	})
}
