package parquet

import (
	"fmt"
)

// Kind is what a leaf holds, and in which slice of Values.
type Kind uint8

// The kinds.
const (
	Bool      Kind = iota + 1 // U8, 0 or 1
	Int8                      // I32
	UInt8                     // I32
	Int16                     // I32
	UInt16                    // I32
	Int32                     // I32
	UInt32                    // I32, the bits
	Int64                     // I64
	UInt64                    // I64, the bits
	Float32                   // F32
	Float64                   // F64
	String                    // Data and Ends, UTF-8
	Bytes                     // Data and Ends; Data alone where Fixed is set
	Timestamp                 // I64, ns since the Unix epoch, not adjusted to UTC
	lastKind
)

// Field is a node of a schema. All fields are required.
type Field struct {
	Name   string
	Kind   Kind    // of a leaf; 0 for a struct
	Fixed  int     // length of all values of a Bytes leaf; 0 if they differ
	List   bool    // the field is a list of what it says
	Count  int     // elements of every occurrence of a list; 0 if they differ
	Fields []Field // of a struct
}

// Leaf is a column.
type Leaf struct {
	Name  string   // names of the fields with dots
	Path  []string // as Parquet has it, with "list" and "element"
	Kind  Kind
	Fixed int
	List  int // the innermost list it is in, an index of Lists; -1 none
}

// List is a list of a schema; parents come before children.
type List struct {
	Name   string
	Parent int // -1 none
	Depth  int // 1 + Depth of Parent
	Count  int // elements of every occurrence, 0 if they differ; a reader does not know
}

// layout is a schema with its leaves and lists.
type layout struct {
	fields []Field
	leaves []Leaf
	lists  []List
	nodes  int // Parquet schema elements without the root
}

// maxDepth bounds the nesting of fields, maxNodes their number.
const (
	maxDepth = 64
	maxNodes = 1 << 17
)

func newLayout(fields []Field) (*layout, error) {
	l := &layout{fields: fields}
	if err := l.walk(fields, "", nil, -1, 0); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *layout) walk(fields []Field, prefix string, path []string, list, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("schema: field %s is nested too deeply", prefix)
	}
	for i := range fields {
		f := &fields[i]
		if l.nodes++; l.nodes > maxNodes {
			return fmt.Errorf("schema: more than %d fields", maxNodes)
		}
		name := f.Name
		if prefix != "" {
			name = prefix + "." + f.Name
		}
		p := append(path[:len(path):len(path)], f.Name)
		in := list
		if f.List {
			l.nodes += 2 // of the three levels; the element of a struct is counted below
			d := 1
			if list >= 0 {
				d = l.lists[list].Depth + 1
			}
			l.lists = append(l.lists, List{Name: name, Parent: list, Depth: d, Count: f.Count})
			in = len(l.lists) - 1
			p = append(p, "list", "element")
		}
		if f.Kind == 0 {
			if len(f.Fields) == 0 {
				return fmt.Errorf("schema: field %s has neither a kind nor fields", name)
			}
			if err := l.walk(f.Fields, name, p, in, depth+1); err != nil {
				return err
			}
			continue
		}
		if f.Kind >= lastKind || len(f.Fields) > 0 || f.Fixed < 0 || f.Count < 0 || f.Count > 0 && !f.List || f.Fixed > 0 && f.Kind != Bytes {
			return fmt.Errorf("schema: field %s contradicts itself", name)
		}
		l.leaves = append(l.leaves, Leaf{Name: name, Path: p, Kind: f.Kind, Fixed: f.Fixed, List: in})
	}
	return nil
}

// Physical types.
const (
	typeBoolean = 0
	typeInt32   = 1
	typeInt64   = 2
	typeFloat   = 4
	typeDouble  = 5
	typeBytes   = 6
	typeFixed   = 7
)

func (l *Leaf) physical() int {
	switch l.Kind {
	case Bool:
		return typeBoolean
	case Int64, UInt64, Timestamp:
		return typeInt64
	case Float32:
		return typeFloat
	case Float64:
		return typeDouble
	case String:
		return typeBytes
	case Bytes:
		if l.Fixed > 0 {
			return typeFixed
		}
		return typeBytes
	}
	return typeInt32
}

// Values are the values of a column in the slice its Kind names, those of all lists and rows one after the other.
type Values struct {
	U8   []uint8
	I32  []int32
	I64  []int64
	F32  []float32
	F64  []float64
	Data []byte   // all byte values
	Ends []uint32 // where each ends in Data
}

// Len is the number of values.
func (v *Values) Len(l *Leaf) int {
	switch l.physical() {
	case typeBoolean:
		return len(v.U8)
	case typeInt64:
		return len(v.I64)
	case typeFloat:
		return len(v.F32)
	case typeDouble:
		return len(v.F64)
	case typeBytes:
		return len(v.Ends)
	case typeFixed:
		return len(v.Data) / l.Fixed
	}
	return len(v.I32)
}

// Reset empties v and keeps its memory.
func (v *Values) Reset() {
	*v = Values{U8: v.U8[:0], I32: v.I32[:0], I64: v.I64[:0], F32: v.F32[:0], F64: v.F64[:0], Data: v.Data[:0], Ends: v.Ends[:0]}
}

// At is value i of a String or Bytes leaf that is not fixed. It aliases v.
func (v *Values) At(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = v.Ends[i-1]
	}
	return v.Data[start:v.Ends[i]]
}
