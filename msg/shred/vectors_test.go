package shred

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/gobag/gobag/msg"
)

// vector is a line of the files of CDR vectors: payload and value as other implementations have them.
type vector struct {
	Type, Case, Definition, CDR string
	DefinitionOf                string `json:"definition_of"`
	Reencode                    string
	Bag                         string
	Value                       map[string]any
}

func readVectors(tb testing.TB, path string) []vector {
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var list []vector
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var v vector
		d := json.NewDecoder(bytes.NewReader(sc.Bytes()))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			tb.Fatal(err)
		}
		list = append(list, v)
	}
	if err := sc.Err(); err != nil {
		tb.Fatal(err)
	}
	return list
}

// shared is a path in the shared data; the test is skipped where there is none.
func shared(tb testing.TB, path string) string {
	root := os.Getenv("GOBAG_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	path = filepath.Join(root, path)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		tb.Skip("no " + path)
	}
	return path
}

// programs compiles the types of vectors, whose definitions are of plain .msg lines.
type programs struct {
	o     Options
	files map[string]string
	cache map[string]*Program
}

func newPrograms(list []vector) *programs {
	p := &programs{files: map[string]string{}, cache: map[string]*Program{}}
	for _, v := range list {
		p.files[v.Type+".msg"] = v.Definition
	}
	return p
}

func (p *programs) get(tb testing.TB, typ string) *Program {
	if c := p.cache[typ]; c != nil {
		return c
	}
	d, err := msg.Describe(typ, func(name string) ([]byte, error) {
		if s, ok := p.files[name]; ok {
			return []byte(s), nil
		}
		return nil, fs.ErrNotExist
	})
	if err != nil {
		tb.Fatal(err)
	}
	c, err := CompileWith(&d, p.o)
	if err != nil {
		tb.Fatal(err)
	}
	p.cache[typ] = c
	return c
}

// TestVectors walks payloads of two independent encoders, compares the values and assembles the bytes again, in every
// encoding.
func TestVectors(t *testing.T) {
	list := readVectors(t, "../../cdr/testdata/vectors.jsonl")
	if len(list) < 80 {
		t.Fatalf("%d vectors", len(list))
	}
	types, split := newPrograms(list), newPrograms(list)
	split.o.SplitTimes = true
	for _, v := range list {
		t.Run(v.Type+"/"+v.Case, func(t *testing.T) {
			payload, err := hex.DecodeString(v.CDR)
			if err != nil {
				t.Fatal(err)
			}
			p := types.get(t, v.Type)
			if v.Case == "max" && (v.Type == "std_msgs/msg/Header" || v.Type == "align_msgs/msg/TimeAfterByte") {
				var not *NotCanonical // 4294967295 ns
				if err := p.Append(p.NewBatch(), payload); !errors.As(err, &not) || not.Reason != BadNanosec {
					t.Fatal(err)
				}
				p = split.get(t, v.Type)
			}
			checkVector(t, p, payload, v.Value)
			for _, form := range []Form{FormBigEndian, FormXCDR2, FormBigEndian | FormXCDR2, 1 << formTail, 3<<formTail | 3<<formDeclared | FormBigEndian} {
				checkVector(t, p, recode(t, p, payload, form), v.Value)
			}
		})
	}
}

// recode is a payload in another form.
func recode(t *testing.T, p *Program, payload []byte, form Form) []byte {
	b := p.NewBatch()
	if err := p.Append(b, payload); err != nil {
		t.Fatal(err)
	}
	b.Forms[0] = form
	out, err := p.Assemble(nil, b, p.NewCursor())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkVector puts a payload between two others, so that columns and cursors are not at their starts.
func checkVector(t *testing.T, p *Program, payload []byte, value map[string]any) {
	t.Helper()
	b, c := p.NewBatch(), p.NewCursor()
	for range 3 {
		if err := p.Append(b, payload); err != nil {
			t.Fatalf("%v: %x", err, payload)
		}
	}
	checkLevels(t, p, b)
	if err := p.Check(b); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		got, err := p.Assemble([]byte{7, 7, 7}, b, c)
		if err != nil || !bytes.Equal(got[3:], payload) {
			t.Fatalf("assembled, %v\n got %x\nwant %x", err, got[3:], payload)
		}
	}
	c.Rewind()
	for range 3 {
		got, err := p.Value(b, c)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, "", got, value)
	}
}

// checkLevels converts the counts of all lists to levels and back.
func checkLevels(t *testing.T, p *Program, b *Batch) {
	t.Helper()
	for i := range p.lists {
		def, rep := p.Levels(b, i, nil, nil)
		for j := i; j >= 0; j = p.lists[j].Parent {
			got, err := p.Occurrences(j, def, rep, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(b.Counts[j]) {
				t.Fatalf("list %s: counts %v from levels %v, %v; want %v", p.lists[j].Name(), got, def, rep, b.Counts[j])
			}
			for k := range got {
				if got[k] != b.Counts[j][k] {
					t.Fatalf("list %s: counts %v from levels %v, %v; want %v", p.lists[j].Name(), got, def, rep, b.Counts[j])
				}
			}
		}
	}
}

// compare compares a value of ours with one of JSON.
func compare(t *testing.T, path string, got, want any) {
	t.Helper()
	ok := false
	switch got := got.(type) {
	case Struct:
		want := want.(map[string]any)
		for _, f := range got {
			if w, there := want[f.Name]; there {
				compare(t, path+"."+f.Name, f.Value, w)
			} else if f.Name != "structure_needs_at_least_one_member" {
				t.Errorf("%s.%s is not expected", path, f.Name)
			}
		}
		ok = len(got) == len(want) || len(want) == 0
	case bool:
		ok = got == want.(bool)
	case string:
		ok = got == want.(string)
	case float32:
		ok = sameFloat(float64(got), want)
	case float64:
		ok = sameFloat(got, want)
	case int8:
		ok = sameInt(int64(got), want)
	case int16:
		ok = sameInt(int64(got), want)
	case int32:
		ok = sameInt(int64(got), want)
	case int64:
		ok = sameInt(got, want)
	case uint8:
		ok = sameInt(int64(got), want)
	case uint16:
		ok = sameInt(int64(got), want)
	case uint32:
		ok = sameInt(int64(got), want)
	case uint64:
		n, err := strconv.ParseUint(want.(json.Number).String(), 10, 64)
		ok = err == nil && n == got
	case []Struct:
		ok = compareList(t, path, got, want)
	case []bool:
		ok = compareList(t, path, got, want)
	case []string:
		ok = compareList(t, path, got, want)
	case []float32:
		ok = compareList(t, path, got, want)
	case []float64:
		ok = compareList(t, path, got, want)
	case []int8:
		ok = compareList(t, path, got, want)
	case []int16:
		ok = compareList(t, path, got, want)
	case []int32:
		ok = compareList(t, path, got, want)
	case []int64:
		ok = compareList(t, path, got, want)
	case []uint8:
		ok = compareList(t, path, got, want)
	case []uint16:
		ok = compareList(t, path, got, want)
	case []uint32:
		ok = compareList(t, path, got, want)
	case []uint64:
		ok = compareList(t, path, got, want)
	}
	if !ok {
		t.Errorf("%s: %T %v, want %v", path, got, got, want)
	}
}

func compareList[T any](t *testing.T, path string, got []T, want any) bool {
	list := want.([]any)
	if len(list) != len(got) {
		return false
	}
	for i := range got {
		compare(t, path+"["+strconv.Itoa(i)+"]", got[i], list[i])
	}
	return true
}

func sameInt(got int64, want any) bool {
	n, err := want.(json.Number).Int64()
	return err == nil && n == got
}

func sameFloat(got float64, want any) bool {
	switch want := want.(type) {
	case json.Number:
		f, err := want.Float64()
		return err == nil && math.Float64bits(f) == math.Float64bits(got)
	case string:
		switch want {
		case "NaN":
			return got != got
		case "Infinity":
			return math.IsInf(got, 1)
		case "-Infinity":
			return math.IsInf(got, -1)
		}
	}
	return false
}
