package transcode

// op is one step of a program. What a step does depends on the direction; the steps of one program have one direction.
type op struct {
	kind  kind
	field string // for errors
	align int    // in CDR: 1, 2, 4 or 8
	size  int    // opCopy: bytes in all; sequences: bytes of an element
	n     int    // elements of a fixed array, 1 for a single value
	parts []part // opCopy: what it copies, for the other byte order
	bound int    // most elements (of a string: bytes) that the other side takes; 0 = any
	sub   []op   // of one element
	least int    // bytes that an element takes at least in what is read
	fill  []byte // defaults: the value in CDR, little endian
}

// part is n numbers of size bytes.
type part struct{ size, n int }

type kind uint8

const (
	opCopy kind = iota // numbers
	opBool
	opString
	opTime // the seconds are checked
	opSpan // a duration, of which the nanoseconds are checked
	opMessages
	opSeq
	opSeqBool
	opSeqString
	opSeqTime
	opSeqSpan
	opSeqMessages

	// What only ROS 2 has: towards it a default is written, back it must be found.
	opDefault       // numbers
	opDefaultString // fill
	opDefaultSeq    // empty
	opDummy         // the one byte of a message without fields

	// What only ROS 1 has: towards ROS 2 it is dropped.
	opHeaderSeq
	opNoString
	opNoStrings

	opLevel // the level of a log message, of which the numbers differ
)

// appendOp appends a step; numbers that lie behind each other on both sides become one copy.
func appendOp(ops []op, o op) []op {
	if n := len(ops); n > 0 && o.kind == opCopy && ops[n-1].kind == opCopy {
		last := &ops[n-1]
		if o.align <= last.align && last.size%o.align == 0 {
			last.size += o.size
			last.parts = append(last.parts[:len(last.parts):len(last.parts)], o.parts...)
			return ops
		}
	}
	return append(ops, o)
}
