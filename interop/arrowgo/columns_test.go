package arrowgo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	arrow "github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugins/columnar"
	"github.com/gobag/gobag/plugins/columnar/parquet"
)

// sampleFile is the first Parquet file of messages of a sample.
func sampleFile(tb testing.TB, s *perf.ColumnarSample, n int) []byte {
	tb.Helper()
	topic, ms, err := s.Messages(1, n)
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(tb.TempDir(), "s.columnar")
	w, err := columnar.Driver{}.Create(context.Background(), dir, plugin.WriteOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	_, err = w.AddTopic(topic)
	if err = errors.Join(err, w.Write(ms), w.Close(plugin.Metadata{})); err != nil {
		tb.Fatal(err)
	}
	var found []byte
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || found != nil || filepath.Ext(path) != ".parquet" {
			return err
		}
		found, err = os.ReadFile(path)
		return err
	})
	if err != nil || found == nil {
		tb.Fatal("no part", err)
	}
	return found
}

// ours are the page groups of a file, read by gobag.
func ours(tb testing.TB, b []byte) (*parquet.File, []*parquet.Batch) {
	tb.Helper()
	f, err := parquet.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	r, err := parquet.NewPageReader()
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	var batches []*parquet.Batch
	for g := range f.Groups() {
		batch := &parquet.Batch{Rows: f.GroupRows(g), Bytes: f.GroupBytes(g), Counts: make([][]uint32, len(f.Lists()))}
		for i := range f.Leaves() {
			v := &parquet.Values{}
			if err := r.Read(f, g, i, v); err != nil {
				tb.Fatal(err)
			}
			batch.Cols = append(batch.Cols, v)
			for l := f.Leaves()[i].List; l >= 0; l = f.Lists()[l].Parent {
				if batch.Counts[l] == nil {
					if batch.Counts[l], err = r.Counts(nil, f.Lists()[l].Depth); err != nil {
						tb.Fatal(err)
					}
				}
			}
		}
		batches = append(batches, batch)
	}
	return f, batches
}

// column is a column as arrow-go has it.
type column struct {
	values   any // []int32 and so on
	def, rep []int16
}

type chunkReader[T any] interface {
	ReadBatch(batchSize int64, values []T, defLvls, repLvls []int16) (total int64, valuesRead int, err error)
}

func readAll[T any](r chunkReader[T], n int64) (column, error) {
	c := column{def: make([]int16, n), rep: make([]int16, n)}
	values := make([]T, n)
	levels, read := int64(0), 0
	for levels < n {
		total, k, err := r.ReadBatch(n-levels, values[read:], c.def[levels:], c.rep[levels:])
		if err != nil {
			return c, err
		}
		if total == 0 {
			return c, fmt.Errorf("%d of %d values", levels, n)
		}
		levels, read = levels+total, read+k
	}
	c.values = values[:read]
	return c, nil
}

// theirs are the columns of a file, read by arrow-go.
func theirs(tb testing.TB, b []byte) (*file.Reader, []column) {
	tb.Helper()
	r, err := file.NewParquetReader(bytes.NewReader(b))
	if err != nil {
		tb.Fatal(err)
	}
	var cols []column
	for i := range r.MetaData().Schema.NumColumns() {
		chunk, err := r.RowGroup(0).Column(i)
		if err != nil {
			tb.Fatal(err)
		}
		meta, err := r.MetaData().RowGroup(0).ColumnChunk(i)
		if err != nil {
			tb.Fatal(err)
		}
		n := meta.NumValues()
		var c column
		switch chunk := chunk.(type) {
		case *file.BooleanColumnChunkReader:
			c, err = readAll[bool](chunk, n)
		case *file.Int32ColumnChunkReader:
			c, err = readAll[int32](chunk, n)
		case *file.Int64ColumnChunkReader:
			c, err = readAll[int64](chunk, n)
		case *file.Float32ColumnChunkReader:
			c, err = readAll[float32](chunk, n)
		case *file.Float64ColumnChunkReader:
			c, err = readAll[float64](chunk, n)
		case *file.ByteArrayColumnChunkReader:
			c, err = readAll[arrow.ByteArray](chunk, n)
			values, _ := c.values.([]arrow.ByteArray)
			for i := range values { // the reader's memory is used again
				values[i] = slices.Clone(values[i])
			}
		default:
			tb.Fatalf("column of %T", chunk)
		}
		if err != nil {
			tb.Fatal(err)
		}
		cols = append(cols, c)
	}
	return r, cols
}

// arrow-go reads every value that gobag reads.
func TestReadByArrowGo(t *testing.T) {
	for i := range perf.ColumnarSamples {
		s := &perf.ColumnarSamples[i]
		b := sampleFile(t, s, 300)
		f, batches := ours(t, b)
		_, cols := theirs(t, b)
		for i := range f.Leaves() {
			l := &f.Leaves()[i]
			var all parquet.Values
			var texts []arrow.ByteArray
			for _, batch := range batches {
				v := batch.Cols[i]
				all.U8, all.I32, all.I64 = append(all.U8, v.U8...), append(all.I32, v.I32...), append(all.I64, v.I64...)
				all.F32, all.F64 = append(all.F32, v.F32...), append(all.F64, v.F64...)
				for k := range v.Ends {
					texts = append(texts, v.At(k))
				}
			}
			same := false
			switch got := cols[i].values.(type) {
			case []bool:
				same = slices.EqualFunc(got, all.U8, func(a bool, b uint8) bool { return a == (b == 1) })
			case []int32:
				same = slices.Equal(got, all.I32)
			case []int64:
				same = slices.Equal(got, all.I64)
			case []float32:
				same = slices.Equal(got, all.F32)
			case []float64:
				same = slices.Equal(got, all.F64)
			case []arrow.ByteArray:
				same = slices.EqualFunc(got, texts, func(a, b arrow.ByteArray) bool { return bytes.Equal(a, b) })
			}
			if !same {
				t.Errorf("%s: column %s differs", s.Name, l.Name)
			}
		}
	}
}

// writeTheirs writes the columns with arrow-go, with the encodings that gobag has chosen.
func writeTheirs(r *file.Reader, cols []column, props *arrow.WriterProperties) (int, error) {
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, r.MetaData().Schema.Root(), file.WithWriterProps(props))
	rg := w.AppendRowGroup()
	for _, c := range cols {
		cw, err := rg.NextColumn()
		if err != nil {
			return 0, err
		}
		switch cw := cw.(type) {
		case *file.BooleanColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]bool), c.def, c.rep)
		case *file.Int32ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]int32), c.def, c.rep)
		case *file.Int64ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]int64), c.def, c.rep)
		case *file.Float32ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]float32), c.def, c.rep)
		case *file.Float64ColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]float64), c.def, c.rep)
		case *file.ByteArrayColumnChunkWriter:
			_, err = cw.WriteBatch(c.values.([]arrow.ByteArray), c.def, c.rep)
		}
		if err = errors.Join(err, cw.Close()); err != nil {
			return 0, err
		}
	}
	if err := errors.Join(rg.Close(), w.Close()); err != nil {
		return 0, err
	}
	return out.Len(), nil
}

// properties give arrow-go the encodings of a file.
func properties(tb testing.TB, r *file.Reader) *arrow.WriterProperties {
	tb.Helper()
	o := []arrow.WriterProperty{arrow.WithCompression(compress.Codecs.Zstd), arrow.WithCompressionLevel(1), arrow.WithDictionaryDefault(false), arrow.WithStats(true), arrow.WithPageIndexEnabled(true)}
	for i := range r.MetaData().Schema.NumColumns() {
		meta, err := r.MetaData().RowGroup(0).ColumnChunk(i)
		if err != nil {
			tb.Fatal(err)
		}
		path := r.MetaData().Schema.Column(i).ColumnPath()
		for _, e := range meta.Encodings() {
			switch e {
			case arrow.Encodings.RLEDict:
				o = append(o, arrow.WithDictionaryPath(path, true))
			case arrow.Encodings.DeltaBinaryPacked, arrow.Encodings.DeltaLengthByteArray, arrow.Encodings.ByteStreamSplit:
				o = append(o, arrow.WithEncodingPath(path, e))
			}
		}
	}
	return arrow.NewWriterProperties(o...)
}

// BenchmarkWriters compares the two writers on the same columns in memory: go test -bench Writers -run XXX.
func BenchmarkWriters(b *testing.B) {
	for i := range perf.ColumnarSamples {
		s := &perf.ColumnarSamples[i]
		if s.Blob {
			continue
		}
		data := sampleFile(b, s, s.Count/4)
		f, batches := ours(b, data)
		b.Run(s.Name+"/gobag", func(b *testing.B) {
			comp, err := parquet.NewCompressor(0)
			if err != nil {
				b.Fatal(err)
			}
			w, err := parquet.NewWriter(f.Schema(), comp, parquet.Options{})
			if err != nil {
				b.Fatal(err)
			}
			var out bytes.Buffer
			b.ReportAllocs()
			for b.Loop() {
				out.Reset()
				for _, batch := range batches {
					if err := w.Append(batch); err != nil {
						b.Fatal(err)
					}
				}
				if _, err := w.Finish(&out, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(out.Len()), "file-bytes")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(f.Rows()), "ns/row")
		})
		r, cols := theirs(b, data)
		props := properties(b, r)
		b.Run(s.Name+"/arrow-go", func(b *testing.B) {
			size := 0
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if size, err = writeTheirs(r, cols, props); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "file-bytes")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(f.Rows()), "ns/row")
		})
	}
}
