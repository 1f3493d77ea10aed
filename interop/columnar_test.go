//go:build linux

package interop_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugins/columnar"
	"github.com/gobag/gobag/plugins/columnar/parquet"
)

// fileSaid is what a reader says of a Parquet file: python/columnar.py.
type fileSaid struct {
	File    string                `json:"file"`
	Rows    int64                 `json:"rows"`
	Columns map[string]columnSaid `json:"columns"`
}

type columnSaid struct {
	Lists  []string `json:"lists"`
	Type   string   `json:"type"`
	Values int      `json:"values"`
	Hash   string   `json:"hash"`
}

const oddDefinition = `float64 d
float32 f
uint32 u
uint64 ul
int64 l
int8 i8
uint8 u8
int16 i16
uint16 u16
bool b
string s
uint8[] bytes
uint8[4] four
float64[] list
string[] words
Inner[] inners

================================================================================
MSG: odd_msgs/Inner
int32 n
float32[3] xyz
bool[] flags
`

// oddMessages have what statistics and encodings stumble over: NaNs, both zeros, infinities, the ends of all ranges.
func oddMessages() []plugin.Message {
	floats := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.SmallestNonzeroFloat64, 1.5,
		math.Float64frombits(0x7ff8060504030201)}
	var ms []plugin.Message
	for i := range 600 {
		e := cdr.NewEncoder(nil, cdr.CDRLE)
		v := floats[i%len(floats)]
		if i < 300 { // a page of some columns without NaN comes first
			v = float64(i%7) - 3
		}
		e.Float64(v)
		e.Float32(float32(v))
		e.Uint32(uint32(i) * 0x01010101)
		e.Uint64(uint64(i) << 55)
		e.Int64(int64(i-300) << 53)
		e.Int8(int8(i))
		e.Uint8(uint8(i))
		e.Int16(int16(i * 300))
		e.Uint16(uint16(i * 300))
		e.Bool(i%3 == 0)
		e.Str([]string{"", "a", "ö", "nul\x00inside", strings.Repeat("long", 40)}[i%5])
		e.ByteSeq(bytes.Repeat([]byte{byte(i)}, i%9))
		e.Raw([]byte{1, 2, byte(i), 4})
		e.SeqLen(i % 4)
		for j := range i % 4 {
			e.Float64(floats[(i+j)%len(floats)])
		}
		e.SeqLen(i % 3)
		for j := range i % 3 {
			e.Str(strings.Repeat("w", j))
		}
		e.SeqLen(i % 5 / 2)
		for j := range i % 5 / 2 {
			e.Int32(int32(j))
			for range 3 {
				e.Float32(float32(i))
			}
			e.SeqLen(j)
			for range j {
				e.Bool(true)
			}
		}
		m := plugin.Message{Topic: 1, RecvTime: 1_700_000_000_000_000_000 + int64(i), Source: uint32(i), Seq: math.MaxUint64 - uint64(i), Data: e.Bytes()}
		switch i % 50 {
		case 7: // not UTF-8
			if at := bytes.Index(m.Data, []byte("nul\x00inside")); at >= 0 {
				m.Data[at] = 0xff
			}
		case 8: // a padding byte of something else
			m.Data = append(m.Data, 0, 7)
		case 9:
			m.Data = m.Data[:20]
		}
		ms = append(ms, m)
	}
	return ms
}

// columnarStorage writes messages as columns and returns the Parquet files.
func columnarStorage(t *testing.T, preset string, topic plugin.Topic, ms []plugin.Message) []string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "s.columnar")
	w, err := columnar.Driver{}.Create(context.Background(), dir, plugin.WriteOptions{Preset: preset})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.AddTopic(topic)
	err = errors.Join(err, w.Write(ms), w.Close(plugin.Metadata{}))
	if err != nil {
		t.Fatal(err)
	}
	return parquetFiles(t, dir)
}

func parquetFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".parquet" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// ownView is what gobag's reader says of a file.
func ownView(t *testing.T, path string) fileSaid {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := parquet.NewPageReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	said := fileSaid{File: path, Rows: f.Rows(), Columns: map[string]columnSaid{}}
	for i := range f.Leaves() {
		l := &f.Leaves()[i]
		h := sha256.New()
		var lists []int // outermost first
		for at := l.List; at >= 0; at = f.Lists()[at].Parent {
			lists = append([]int{at}, lists...)
		}
		counts := make([][]uint32, len(lists))
		c := columnSaid{}
		for g := range f.Groups() {
			var v parquet.Values
			if err := r.Read(f, g, i, &v); err != nil {
				t.Fatal(err)
			}
			c.Values += v.Len(l)
			for k, li := range lists {
				if counts[k], err = r.Counts(counts[k], f.Lists()[li].Depth); err != nil {
					t.Fatal(err)
				}
			}
			hashValues(h, l, &v)
		}
		c.Hash = hex.EncodeToString(h.Sum(nil))
		for _, n := range counts {
			sum := sha256.Sum256(numbers(n))
			c.Lists = append(c.Lists, hex.EncodeToString(sum[:]))
		}
		said.Columns[l.Name] = c
	}
	return said
}

func numbers(v any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func hashValues(h interface{ Write([]byte) (int, error) }, l *parquet.Leaf, v *parquet.Values) {
	write := func(b []byte) { _, _ = h.Write(b) } // a hash never fails
	each := func(b []byte) {
		write(binary.LittleEndian.AppendUint32(nil, uint32(len(b))))
		write(b)
	}
	switch l.Kind {
	case parquet.Bool:
		write(v.U8)
	case parquet.Int8, parquet.UInt8:
		for _, x := range v.I32 {
			write([]byte{byte(x)})
		}
	case parquet.Int16, parquet.UInt16:
		for _, x := range v.I32 {
			write(binary.LittleEndian.AppendUint16(nil, uint16(x)))
		}
	case parquet.String, parquet.Bytes:
		if l.Fixed > 0 {
			for b := range slices.Chunk(v.Data, l.Fixed) {
				each(b)
			}
			return
		}
		for i := range v.Ends {
			each(v.At(i))
		}
	default:
		for _, b := range [][]byte{numbers(v.I32), numbers(v.I64), numbers(v.F32), numbers(v.F64)} {
			write(b)
		}
	}
}

// python runs python/columnar.py.
func python(t *testing.T, what string, files []string) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command(filepath.Join("python", "venv", "bin", "python"), append([]string{filepath.Join("python", "columnar.py"), what}, files...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, stderr.String())
	}
	return out
}

// checkEngines compares what three engines say of every file with what gobag's reader says.
func checkEngines(t *testing.T, files []string) {
	t.Helper()
	want := map[string]fileSaid{}
	for _, f := range files {
		want[f] = ownView(t, f)
	}
	for _, engine := range []string{"pyarrow", "duckdb", "polars"} {
		lines := bufio.NewScanner(bytes.NewReader(python(t, engine, files)))
		lines.Buffer(nil, 64<<20)
		seen := 0
		for ; lines.Scan(); seen++ {
			var got fileSaid
			if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			w := want[got.File]
			if got.Rows != w.Rows {
				t.Errorf("%s: %s: %d rows, want %d", engine, got.File, got.Rows, w.Rows)
			}
			for name, c := range w.Columns {
				g := got.Columns[name]
				if g.Values != c.Values || g.Hash != c.Hash {
					t.Errorf("%s: %s: column %s has %d values of %s, want %d", engine, filepath.Base(got.File), name, g.Values, g.Type, c.Values)
				}
				var lists []string // of the column and of the structs it is in
				for i := range name {
					if name[i] == '.' {
						lists = append(lists, got.Columns[name[:i]].Lists...)
					}
				}
				if lists = append(lists, g.Lists...); !reflect.DeepEqual(lists, c.Lists) {
					t.Errorf("%s: %s: column %s: lists differ", engine, filepath.Base(got.File), name)
				}
			}
		}
		if seen != len(files) {
			t.Errorf("%s read %d of %d files", engine, seen, len(files))
		}
	}
}

// Every file of columns is read by Arrow C++, DuckDB and Polars with the values that gobag reads.
func TestColumnarReadByEngines(t *testing.T) {
	counts := map[string]int{"Imu": 20_000, "TSBS": 20_000, "PointCloud2": 40, "Image": 20}
	var files []string
	for i := range perf.ColumnarSamples {
		s := &perf.ColumnarSamples[i]
		n := counts[s.Name]
		if n == 0 {
			n = 2000
		}
		topic, ms, err := s.Messages(1, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, preset := range []string{plugin.PresetResilient, plugin.PresetSmall} {
			files = append(files, columnarStorage(t, preset, topic, ms)...)
		}
	}
	checkEngines(t, files)
}

// The same of odd values, and statistics let no row be skipped that a filter asks for.
func TestColumnarOddValues(t *testing.T) {
	topic := plugin.Topic{Name: "/odd", Type: "odd_msgs/msg/Odd", SerializationFormat: "cdr", Definition: plugin.Definition{Encoding: "ros2msg", Text: oddDefinition}}
	files := columnarStorage(t, "", topic, oddMessages())
	if len(files) != 2 || !strings.HasPrefix(filepath.Base(files[0]), "part-") || !strings.HasPrefix(filepath.Base(files[1]), "raw-") {
		t.Fatalf("files: %v, want one of columns and one of payloads", files)
	}
	checkEngines(t, files)
	if out := python(t, "filters", files); len(out) > 0 {
		t.Errorf("filters: %s", out)
	}
}
