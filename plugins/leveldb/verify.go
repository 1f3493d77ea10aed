package leveldb

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"runtime"
	"runtime/debug"
	"sync"
)

// Large blocks are not copied out of the page cache but read where it is mapped. What is left of the work is the checksum;
// a cursor that reads one block after the other shares it with a second goroutine, which checks what comes next.
const (
	mapBlock  = 32 << 10  // blocks from here on are mapped
	verifyRun = 512 << 10 // bytes that are checked at once
)

// errFault says that mapped bytes could not be read: the file was cut off, or the disk fails. Reading them says which.
var errFault = errors.New("a mapped file cannot be read")

// verified is a row of blocks whose checksums were compared.
type verified struct {
	from, to int   // blocks
	bad      int   // the first that is not good
	err      error // nil where all are good
}

func (v *verified) has(block int) bool { return block >= v.from && block < v.to }

// of is the verdict on a block of the row.
func (v *verified) of(block int) error {
	if v.err != nil && block >= v.bad {
		return v.err
	}
	return nil
}

// verifier checks blocks for one cursor.
type verifier struct {
	done  verified
	ahead verified // what the second goroutine is at
	work  sync.WaitGroup
}

// check compares the checksum of a block of a mapped table; of those that come behind too where they are about to be
// read.
func (v *verifier) check(t *tableFile, mapped []byte, block int, sequential bool) error {
	if v.done.has(block) {
		return v.done.of(block)
	}
	v.work.Wait()
	if v.ahead.has(block) {
		v.done, v.ahead = v.ahead, verified{}
		return v.done.of(block)
	}
	v.done = verified{from: block, to: block + 1}
	if sequential {
		v.done.to = t.run(block)
		if v.ahead = (verified{from: v.done.to, to: t.run(v.done.to)}); v.ahead.from < v.ahead.to {
			v.work.Add(1)
			go func() {
				defer v.work.Done()
				v.ahead.verify(t, mapped)
			}()
		}
	}
	v.done.verify(t, mapped)
	return v.done.of(block)
}

// reset forgets what was checked. It waits for what is being checked.
func (v *verifier) reset() {
	v.work.Wait()
	v.done, v.ahead = verified{}, verified{}
}

// run is the block behind those from block on that are checked at once.
func (t *tableFile) run(block int) int {
	for n := 0; block < len(t.index) && n < verifyRun; block++ {
		n += t.index[block].size
	}
	return block
}

// checksumFar is the CRC-32C of bytes that are not in the processor's cache. Loads that do not wait for each other bring
// them in faster than the checksum's own, so each piece is touched while the one before it is summed up.
func checksumFar(b []byte) (crc uint32) {
	const piece, line = 16 << 10, 64
	var touched byte
	for at := 0; at < len(b); at += piece {
		next := b[min(at+piece, len(b)):min(at+2*piece, len(b))]
		if at == 0 {
			next = b[:min(2*piece, len(b))]
		}
		for i := 0; i < len(next); i += line {
			touched |= next[i]
		}
		crc = crc32.Update(crc, castagnoli, b[at:min(at+piece, len(b))])
	}
	runtime.KeepAlive(touched)
	return crc
}

// verify compares checksums up to the first that is wrong.
func (v *verified) verify(t *tableFile, mapped []byte) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(interface{ Addr() uintptr }); !ok {
				panic(p)
			}
			v.err = errFault
		}
	}()
	for v.bad = v.from; v.bad < v.to; v.bad++ {
		e := &t.index[v.bad]
		b := mapped[e.off : e.off+int64(e.size)+blockTrailer]
		if masked(checksumFar(b[:e.size+1])) != binary.LittleEndian.Uint32(b[e.size+1:]) {
			v.err = t.wrongChecksum(e.off, e.size)
			return
		}
	}
}
