package sqlite

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// The write-ahead log (https://sqlite.org/fileformat2.html#the_write_ahead_log): a header, then frames of a page each,
// under a running checksum. What counts is every frame up to the last one that finishes a transaction.
const (
	walHeader   = 32
	frameHeader = 24
	walMagic    = 0x377f0682 // the lowest bit says that checksums are big endian
)

// walSum goes on with the checksum of the log over b, whose length is a multiple of 8.
func walSum(order binary.ByteOrder, s0, s1 uint32, b []byte) (uint32, uint32) {
	for ; len(b) >= 8; b = b[8:] {
		s0 += order.Uint32(b) + s1
		s1 += order.Uint32(b[4:]) + s0
	}
	return s0, s1
}

// readWAL adds the pages of the finished transactions to patches. pages is the size of the database after them, 0
// where the log has none.
func readWAL(f *os.File, pageSize int64, patches map[uint32]patch) (pages int64, end logEnd, err error) {
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, 1<<62), 1<<20)
	head := make([]byte, walHeader)
	if n, err := io.ReadFull(in, head); err != nil {
		return 0, logEnd{there: true, size: walHeader, sum: fold(head[:n])}, endOfLog(err)
	}
	u := binary.BigEndian.Uint32
	var order binary.ByteOrder = binary.LittleEndian
	if u(head)&1 != 0 {
		order = binary.BigEndian
	}
	s0, s1 := walSum(order, 0, 0, head[:24])
	if u(head)&^1 != walMagic || int64(u(head[8:])) != pageSize || u(head[24:]) != s0 || u(head[28:]) != s1 {
		return 0, logEnd{there: true, size: walHeader, sum: fold(head)}, nil
	}
	frame := make([]byte, frameHeader+pageSize)
	pending := map[uint32]patch{}
	for off := int64(walHeader); ; off += int64(len(frame)) {
		n, err := io.ReadFull(in, frame)
		end = logEnd{there: true, off: off, size: int64(len(frame)), sum: fold(frame[:n])}
		if err != nil {
			return pages, end, endOfLog(err)
		}
		if string(frame[8:16]) != string(head[16:24]) {
			return pages, end, nil // left over from before the log was started anew
		}
		s0, s1 = walSum(order, s0, s1, frame[:8])
		s0, s1 = walSum(order, s0, s1, frame[frameHeader:])
		if u(frame[16:]) != s0 || u(frame[20:]) != s1 {
			return pages, end, nil
		}
		pending[u(frame)] = patch{f, off + frameHeader}
		if n := u(frame[4:]); n > 0 {
			pages = int64(n)
			for p, at := range pending {
				patches[p] = at
			}
			clear(pending)
		}
	}
}

// logEnd is the place where reading a log ended, and what lay there: the next transaction is written over it.
type logEnd struct {
	there     bool
	off, size int64
	sum       uint32
}

func (e *logEnd) still(f *os.File) (bool, error) {
	b := make([]byte, e.size)
	n, err := f.ReadAt(b, e.off)
	return fold(b[:n]) == e.sum, endOfLog(err)
}

// fold is FNV-1a.
func fold(b []byte) uint32 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return h
}

func endOfLog(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// walMark identifies a log: the same file, started with the same salts. What follows in it is told by logEnd.
type walMark struct {
	same, there bool
	salts       [8]byte
}

func readWALMark(path string, f *os.File) (walMark, error) {
	var m walMark
	var err error
	if m.same, err = sameFile(path, f); err != nil || f == nil {
		return m, err
	}
	m.there = true
	var head [walHeader]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return m, endOfLog(err)
	}
	copy(m.salts[:], head[16:24])
	return m, nil
}
