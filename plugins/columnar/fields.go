package columnar

import (
	"encoding/binary"
	"errors"
)

var le = binary.LittleEndian

var errDamaged = errors.New("record is damaged")

// fields takes records apart. After the first mistake bad is set and everything is zero.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) fail() { f.bad, f.b = true, nil }

func (f *fields) uvarint() uint64 {
	v, n := binary.Uvarint(f.b)
	if n <= 0 {
		f.fail()
		return 0
	}
	f.b = f.b[n:]
	return v
}

func (f *fields) varint() int64 {
	v, n := binary.Varint(f.b)
	if n <= 0 {
		f.fail()
		return 0
	}
	f.b = f.b[n:]
	return v
}

// text is a string with its length before it.
func (f *fields) text() string {
	n := f.uvarint()
	if n > uint64(len(f.b)) {
		f.fail()
		return ""
	}
	s := string(f.b[:n])
	f.b = f.b[n:]
	return s
}

// count is the number of things to come, each a byte at least.
func (f *fields) count() int {
	n := f.uvarint()
	if n > uint64(len(f.b)) {
		f.fail()
		return 0
	}
	return int(n)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
