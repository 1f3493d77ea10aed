package wire

import (
	"iter"
	"math/bits"
)

// SetBits is the largest number of bits that a SeqSet or FragSet can have.
const SetBits = 256

// bitmap holds 256 bits, the most significant bit of the first word first.
type bitmap = [8]uint32

func setBit(m *bitmap, i uint32)      { m[i/32] |= 1 << (31 - i%32) }
func hasBit(m *bitmap, i uint32) bool { return m[i/32]&(1<<(31-i%32)) != 0 }
func words(numBits uint32) int        { return int((numBits + 31) / 32) }
func lastBit(m *bitmap) (i uint32, ok bool) {
	for w := len(m) - 1; w >= 0; w-- {
		if m[w] != 0 {
			return uint32(w*32 + 31 - bits.TrailingZeros32(m[w])), true
		}
	}
	return 0, false
}

// Add puts sn into the set and widens NumBits as needed. It returns false, and changes nothing, when sn is below Base
// or more than 255 above it.
func (s *SeqSet) Add(sn int64) bool {
	if sn < s.Base || sn-s.Base >= SetBits {
		return false
	}
	i := uint32(sn - s.Base)
	setBit(&s.Bits, i)
	s.NumBits = max(s.NumBits, i+1)
	return true
}

// Contains reports whether the bit of sn is set.
func (s *SeqSet) Contains(sn int64) bool {
	if sn < s.Base || sn-s.Base >= int64(min(s.NumBits, SetBits)) {
		return false
	}
	return hasBit(&s.Bits, uint32(sn-s.Base))
}

// All yields the members in ascending order.
func (s *SeqSet) All() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for i := range min(s.NumBits, SetBits) {
			if hasBit(&s.Bits, i) && !yield(s.Base+int64(i)) {
				return
			}
		}
	}
}

// Highest is the largest member, Base-1 for the empty set.
func (s *SeqSet) Highest() int64 {
	if i, ok := lastBit(&s.Bits); ok {
		return s.Base + int64(i)
	}
	return s.Base - 1
}

// Empty reports whether no bit is set.
func (s *SeqSet) Empty() bool { return s.Bits == bitmap{} }

// Add puts fragment number n into the set; see SeqSet.Add.
func (s *FragSet) Add(n uint32) bool {
	if n < s.Base || n-s.Base >= SetBits {
		return false
	}
	setBit(&s.Bits, n-s.Base)
	s.NumBits = max(s.NumBits, n-s.Base+1)
	return true
}

// Contains reports whether the bit of fragment n is set.
func (s *FragSet) Contains(n uint32) bool {
	if n < s.Base || n-s.Base >= min(s.NumBits, SetBits) {
		return false
	}
	return hasBit(&s.Bits, n-s.Base)
}

// All yields the members in ascending order.
func (s *FragSet) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := range min(s.NumBits, SetBits) {
			if hasBit(&s.Bits, i) && !yield(s.Base+i) {
				return
			}
		}
	}
}

// Highest is the largest member, Base-1 for the empty set.
func (s *FragSet) Highest() uint32 {
	if i, ok := lastBit(&s.Bits); ok {
		return s.Base + i
	}
	return s.Base - 1
}

// Empty reports whether no bit is set.
func (s *FragSet) Empty() bool { return s.Bits == bitmap{} }
