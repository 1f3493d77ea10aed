package msg

import (
	"fmt"
	"strings"
)

// Base is what a field holds, one element of it if it is an array. The numbers are the type ids of
// type_description_interfaces/msg/FieldType.
type Base uint8

// The bases that interface files can express.
const (
	Nested Base = iota + 1 // another message: Type.Name
	Int8
	UInt8 // also the char of .msg files
	Int16
	UInt16
	Int32
	UInt32
	Int64
	UInt64
	Float
	Double
	LongDouble // .idl only
	Char       // the char of .idl files
	WChar      // .idl only
	Bool
	Byte
	String
	WString
	BoundedString  Base = 21
	BoundedWString Base = 22
)

// Array is how many elements a field has.
type Array uint8

// The kinds of Array. Type ids are 48 apart.
const (
	Single    Array = iota
	Fixed           // exactly Type.Capacity elements
	Bounded         // a sequence of at most Type.Capacity elements
	Unbounded       // a sequence
)

// Type is the type of a field or constant.
type Type struct {
	Base           Base
	Name           string // full name of a nested type, "geometry_msgs/msg/Point"
	Array          Array
	Capacity       uint64 // elements of a fixed array, bound of a bounded sequence
	StringCapacity uint64 // bound of a bounded string, characters
}

// ID returns the type id of type_description_interfaces/msg/FieldType.
func (t Type) ID() int { return int(t.Base) + 48*int(t.Array) }

// Field is one member of a message.
type Field struct {
	Name    string
	Type    Type
	Default string // as written in the file; "" none
}

// Constant is a named value of a message. Constants are not on the wire and not in the hash.
type Constant struct {
	Name  string
	Type  Type
	Value string // as written in the file, quotes included
}

// Message is one structure: a message, or one of the types that a service or an action stands for.
type Message struct {
	Name      string // "std_msgs/msg/String", "std_srvs/srv/Empty_Request"
	Fields    []Field
	Constants []Constant
}

// File is one parsed interface file.
type File struct {
	Name     string    // "std_msgs/msg/String.msg"
	Messages []Message // a message; or a service or action with all its derived types, itself first
	Includes []string  // of a .idl, as written
}

// Message returns the message with the full name, nil if the file does not define it.
func (f *File) Message(name string) *Message {
	for i := range f.Messages {
		if f.Messages[i].Name == name {
			return &f.Messages[i]
		}
	}
	return nil
}

// Limits on foreign input. They are far above what real interfaces need.
const (
	maxFile       = 1 << 20 // bytes of one interface file
	maxText       = 8 << 20 // bytes of one definition text
	maxTypes      = 1000    // types that one type refers to
	maxFields     = 1 << 16 // fields of a type and all it refers to
	maxDepth      = 50      // nesting of definition texts, rosbag2's limit
	maxIdentifier = 255     // bytes
	maxCapacity   = 1<<32 - 1
)

// identifier tells whether s is a name as IDL and rosidl have them: ASCII letters, digits and underscores, a letter
// first.
func identifier(s string) bool {
	if s == "" || len(s) > maxIdentifier || !letter(s[0]) {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

func letter(c byte) bool   { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func nameByte(c byte) bool { return letter(c) || c == '_' || c >= '0' && c <= '9' }

// fullName is a type name in its parts.
type fullName struct{ pkg, folder, name string }

func (n fullName) String() string { return n.pkg + "/" + n.folder + "/" + n.name }

// splitName takes "pkg/msg/T" apart. The old form "pkg/T" means a message.
func splitName(s string) (fullName, error) {
	parts := strings.Split(s, "/")
	if len(parts) == 2 {
		parts = []string{parts[0], "msg", parts[1]}
	}
	if len(parts) != 3 || !identifier(parts[0]) || !identifier(parts[1]) || !identifier(parts[2]) {
		return fullName{}, fmt.Errorf("type name %.100q: want package/msg/Type, package/srv/Type or package/action/Type", s)
	}
	return fullName{parts[0], parts[1], parts[2]}, nil
}

var (
	serviceSuffixes = []string{"_Request", "_Response", "_Event"}
	actionSuffixes  = []string{"_SendGoal", "_GetResult", "_Goal", "_Result", "_FeedbackMessage", "_Feedback"}
)

// file returns the interface that declares n: that of a service or action for the types derived from it, else n.
func (n fullName) file() fullName {
	if n.folder != "srv" && n.folder != "action" {
		return n
	}
	cut := func(suffixes []string) bool {
		for _, s := range suffixes {
			if base, ok := strings.CutSuffix(n.name, s); ok && base != "" {
				n.name = base
				return true
			}
		}
		return false
	}
	if n.folder == "srv" {
		cut(serviceSuffixes)
		return n
	}
	whole := n
	if cut(serviceSuffixes) && !strings.HasSuffix(n.name, "_SendGoal") && !strings.HasSuffix(n.name, "_GetResult") {
		n = whole
	}
	cut(actionSuffixes)
	return n
}

// extension is that of the plain interface file of n, "" if there is only .idl.
func (n fullName) extension() string {
	switch n.folder {
	case "msg", "srv", "action":
		return "." + n.folder
	}
	return ""
}
