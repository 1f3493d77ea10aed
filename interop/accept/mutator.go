//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"

	"github.com/gobag/gobag/rtps/wire"
)

// mutator makes damaged datagrams out of captured ones.
type mutator struct {
	r      *rand.Rand
	seeds  [][]byte
	target wire.Prefix // datagrams to somebody are to this participant; zero = left alone
	buf    []byte
}

// edges are values that parsers trip over.
var edges = []uint32{0, 1, 2, 3, 4, 255, 256, 257, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff}

// next returns a datagram, valid until the next call. Every eighth one is undamaged, so that a participant learns of
// peers and endpoints that the others are then about.
func (m *mutator) next() []byte {
	m.buf = append(m.buf[:0], m.seeds[m.r.IntN(len(m.seeds))]...)
	m.redirect()
	if m.r.IntN(8) == 0 {
		return m.buf
	}
	for range 1 + m.r.IntN(4) {
		m.damage()
	}
	return m.buf
}

// redirect puts the target into every INFO_DST.
func (m *mutator) redirect() {
	if m.target == (wire.Prefix{}) {
		return
	}
	for pos := wire.HeaderSize; pos+4 <= len(m.buf); {
		n := int(binary.LittleEndian.Uint16(m.buf[pos+2:]))
		if m.buf[pos+1]&1 == 0 {
			n = int(binary.BigEndian.Uint16(m.buf[pos+2:]))
		}
		if m.buf[pos] == 0x0e && n >= 12 && pos+16 <= len(m.buf) {
			copy(m.buf[pos+4:], m.target[:])
		}
		pos += 4 + n
	}
}

// damage changes the datagram in one of the ways that networks, bugs and attackers do.
func (m *mutator) damage() {
	b := m.buf
	if len(b) < 24 {
		m.buf = append(b, make([]byte, 24-len(b))...)
		return
	}
	at := func(room int) int { return m.r.IntN(len(b) - room + 1) }
	switch m.r.IntN(9) {
	case 0: // one bit
		b[at(1)] ^= 1 << m.r.IntN(8)
	case 1: // one byte
		b[at(1)] = byte(m.r.Uint32())
	case 2: // a word with a value at the edge, in the headers rather than in the payload
		i := m.r.IntN(min(len(b)-3, 160))
		binary.LittleEndian.PutUint32(b[i:], edges[m.r.IntN(len(edges))])
	case 3: // a length or count
		i := m.r.IntN(min(len(b)-1, 160))
		binary.LittleEndian.PutUint16(b[i:], uint16(edges[m.r.IntN(len(edges))]))
	case 4: // cut
		m.buf = b[:at(0)]
	case 5: // bytes of another datagram behind its header
		other := m.seeds[m.r.IntN(len(m.seeds))]
		if len(other) > wire.HeaderSize {
			m.buf = append(b[:wire.HeaderSize+m.r.IntN(len(b)-wire.HeaderSize+1)], other[wire.HeaderSize:]...)
		}
	case 6: // a run overwritten
		i := at(4)
		for k := i; k < min(len(b), i+m.r.IntN(64)); k++ {
			b[k] = byte(m.r.Uint32())
		}
	case 7: // another sender, by every name it gives itself: some that come again, others as many as datagrams
		old := [12]byte(b[8:20])
		other := old
		id := m.r.Uint32()
		if id&1 == 0 {
			id = id >> 1 & 63
		}
		binary.LittleEndian.PutUint32(other[8:], id)
		for i := bytes.Index(b, old[:]); i >= 0; i = bytes.Index(b, old[:]) {
			copy(b[i:], other[:])
			if other == old {
				break
			}
		}
	case 8: // a flag of a submessage
		b[21] ^= 1 << m.r.IntN(8)
	}
	if len(m.buf) > 65000 {
		m.buf = m.buf[:65000]
	}
}
