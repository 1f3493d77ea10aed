package wire

import (
	"slices"
	"testing"
)

func TestSeqSet(t *testing.T) {
	s := SeqSet{Base: 100}
	if !s.Empty() || s.Highest() != 99 || s.Contains(100) || len(slices.Collect(s.All())) != 0 {
		t.Errorf("empty set %+v", s)
	}
	members := []int64{100, 101, 131, 132, 163, 164, 355}
	for _, m := range members {
		if !s.Add(m) {
			t.Errorf("add %d refused", m)
		}
		if s.NumBits != uint32(m-100+1) || s.Highest() != m {
			t.Errorf("after %d: %d bits, highest %d", m, s.NumBits, s.Highest())
		}
	}
	before := s
	for _, m := range []int64{99, 0, -1, 356, 1 << 40, MaxSeq} {
		if s.Add(m) || s != before {
			t.Errorf("add %d accepted", m)
		}
	}
	if s.Add(101) != true || s != before {
		t.Error("adding again changed the set")
	}
	if got := slices.Collect(s.All()); !slices.Equal(got, members) {
		t.Errorf("members %v", got)
	}
	for sn := int64(90); sn < 370; sn++ {
		if s.Contains(sn) != slices.Contains(members, sn) {
			t.Errorf("contains %d: %v", sn, s.Contains(sn))
		}
	}
	for sn := range s.All() { // stops when told to
		if sn == 131 {
			break
		}
	}
	// A set of a size that the wire does not allow is cut, not overrun.
	s.NumBits = 4000
	if got := slices.Collect(s.All()); !slices.Equal(got, members) || s.Contains(100+256) {
		t.Errorf("members of an oversized set %v", got)
	}
	if b := AppendAckNack(nil, &AckNack{Set: s}); len(b) != 4+24+32 {
		t.Errorf("oversized set takes %d bytes", len(b))
	}
}

func TestFragSet(t *testing.T) {
	s := FragSet{Base: 1}
	if !s.Empty() || s.Highest() != 0 {
		t.Errorf("empty set %+v", s)
	}
	members := []uint32{1, 2, 32, 33, 64, 65, 256}
	for _, m := range members {
		if !s.Add(m) || s.NumBits != m || s.Highest() != m {
			t.Errorf("after %d: %d bits, highest %d", m, s.NumBits, s.Highest())
		}
	}
	before := s
	for _, m := range []uint32{0, 257, 1<<32 - 1} {
		if s.Add(m) || s != before {
			t.Errorf("add %d accepted", m)
		}
	}
	if got := slices.Collect(s.All()); !slices.Equal(got, members) {
		t.Errorf("members %v", got)
	}
	for n := range uint32(300) {
		if s.Contains(n) != slices.Contains(members, n) {
			t.Errorf("contains %d: %v", n, s.Contains(n))
		}
	}
	for range s.All() {
		break
	}
}
