package shred

import (
	"strings"

	"github.com/gobag/gobag/msg"
)

// Kind is what a column holds. It also says in which slice of Values.
type Kind uint8

// The kinds of columns.
const (
	Bool     Kind = iota + 1 // U8, 0 or 1
	Int8                     // I32
	UInt8                    // I32; also byte and char
	Int16                    // I32
	UInt16                   // I32
	Int32                    // I32
	UInt32                   // I32, the bits
	Int64                    // I64
	UInt64                   // I64, the bits
	Float32                  // F32, NaNs with all their bits
	Float64                  // F64, the same
	String                   // Data and Ends, valid UTF-8 without the terminating NUL
	WString                  // Data and Ends, the UTF-16 units as UTF-8
	Bytes                    // Data and Ends, a sequence of one-byte numbers; Data alone if Column.Fixed is set
	Time                     // I64, builtin_interfaces/Time as ns since the Unix epoch
	Duration                 // I64, builtin_interfaces/Duration in ns
)

var kindNames = [...]string{"", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
	"float32", "float64", "string", "wstring", "bytes", "time", "duration"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// wireSize is the size of a number in bytes; it is its alignment too.
var wireSize = [...]uint8{Bool: 1, Int8: 1, UInt8: 1, Int16: 2, UInt16: 2, Int32: 4, UInt32: 4, Int64: 8, UInt64: 8, Float32: 4, Float64: 8}

// Column is one leaf of the type.
type Column struct {
	Path  []string // names of the fields from the root: "header", "stamp"
	Kind  Kind
	Elem  msg.Base // the type in the definition; of Bytes that of an element; of Time and Duration msg.Nested
	List  int      // the innermost list that the column is in, an index of Program.Lists; -1 if there is one value a row
	Fixed int      // Bytes of a fixed array: their number; else 0
}

// Name is the path with dots.
func (c *Column) Name() string { return strings.Join(c.Path, ".") }

// List is a sequence or array of anything but bytes. A list of numbers or strings has the same path as its one column.
type List struct {
	Path   []string
	Parent int // the list that this one is in; -1 none. Parents come first
	Fixed  int // elements, of an array; 0 for a sequence
	Depth  int // 1 + Depth of Parent: both levels of an element
}

// Name is the path with dots.
func (l *List) Name() string { return strings.Join(l.Path, ".") }

// Columns are the leaves in the order of the definition. The slice is the program's.
func (p *Program) Columns() []Column { return p.cols }

// Lists are the lists in the order of the definition, parents before children. The slice is the program's.
func (p *Program) Lists() []List { return p.lists }

// Type is the name of the type.
func (p *Program) Type() string { return p.typ }

// MaxLevel is the largest definition and repetition level of a column: the number of lists it is in.
func (p *Program) MaxLevel(col int) int {
	if l := p.cols[col].List; l >= 0 {
		return p.lists[l].Depth
	}
	return 0
}
