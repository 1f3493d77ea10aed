package leveldb

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// Large blocks, and small ones when one is read after the other, are not copied out of the page cache but read where it is
// mapped. What is left of the work is the checksum, which is compared once for each block of an open table, by the cursor
// that wants it or, ahead of it, by lookahead.
const mapBlock = 32 << 10

// errFault says that mapped bytes could not be read: the file was cut off, or the disk fails. Reading them says which.
var errFault = errors.New("a mapped file cannot be read")

// States of a block of a mapped table.
const (
	blockUnknown uint32 = iota
	blockTaken          // its checksum is being compared
	blockGood
)

// mappedBlocks are the blocks of a mapped table. Safe for concurrent use.
type mappedBlocks struct {
	t      *tableFile
	data   []byte
	states []atomic.Uint32 // by block
}

// check makes sure that the checksum of a block is right. Where lookahead is at it, the one behind it is compared
// meanwhile, so that neither waits for the other.
func (m mappedBlocks) check(block int) error {
	for next := block + 1; m.states[block].Load() == blockTaken && next < len(m.states); next++ {
		_, _ = m.take(next, nil) // an error is found again when it is asked for
	}
	switch m.states[block].Load() {
	case blockGood:
		return m.reach(block)
	case blockTaken: // rather twice than waiting
		return m.compare(block, nil)
	}
	taken, err := m.take(block, nil)
	if err == nil && !taken {
		return m.check(block)
	}
	return err
}

// take compares the checksum of a block that no one has looked at. touched is as for compare.
func (m mappedBlocks) take(block int, touched *int64) (taken bool, err error) {
	if !m.states[block].CompareAndSwap(blockUnknown, blockTaken) {
		return false, nil
	}
	if err := m.compare(block, touched); err != nil {
		m.states[block].Store(blockUnknown)
		return true, err
	}
	m.states[block].Store(blockGood)
	return true, nil
}

// reach says whether a block is still there: a file may be cut off after its checksums were compared.
func (m mappedBlocks) reach(block int) (err error) {
	defer catchFault(debug.SetPanicOnFault(true), &err)
	e := &m.t.index[block]
	runtime.KeepAlive(m.data[e.off+int64(e.size)+blockTrailer-1])
	return nil
}

// compare compares the checksum of a block. Bytes come into the processor's cache faster when loads do not wait for each
// other as those of a checksum do, so what is a little ahead is touched first; with touched, that goes on behind the block,
// and is how far the file was touched.
func (m mappedBlocks) compare(block int, touched *int64) (err error) {
	const step, line = 3 << 10, 64 // hash/crc32 sums 3 KiB at once
	const far = 64 << 10
	defer catchFault(debug.SetPanicOnFault(true), &err)
	e := &m.t.index[block]
	at, end := e.off, e.off+int64(e.size)+1
	low, high := at, end
	if touched != nil {
		low, high = max(at, *touched), int64(len(m.data))
	}
	var crc uint32
	var bits byte
	for at < end {
		for ahead := min(at+far, high); low < ahead; low += line {
			bits |= m.data[low]
		}
		next := min(at+step, end)
		crc = crc32.Update(crc, castagnoli, m.data[at:next])
		at = next
	}
	runtime.KeepAlive(bits)
	if touched != nil {
		*touched = low
	}
	if masked(crc) != binary.LittleEndian.Uint32(m.data[end:]) {
		return m.t.wrongChecksum(e.off, e.size)
	}
	return nil
}

// catchFault, deferred, makes errFault of a fault and puts back what debug.SetPanicOnFault was before.
func catchFault(before bool, err *error) {
	debug.SetPanicOnFault(before)
	if p := recover(); p != nil {
		if _, ok := p.(interface{ Addr() uintptr }); !ok {
			panic(p)
		}
		*err = errFault
	}
}
