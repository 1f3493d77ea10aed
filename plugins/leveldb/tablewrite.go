package leveldb

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"

	"github.com/golang/snappy"

	"github.com/gobag/gobag/internal/fsx"
)

const (
	tableMagic   = 0xdb4775248b80fb57
	footerSize   = 48
	blockTrailer = 5 // compression type and CRC-32C
	restartEvery = 16
	typeRaw      = 0
	typeSnappy   = 1
	tableBuffer  = 512 << 10 // bytes gathered before they go to the system in one write
	tableWrite   = 1 << 20   // most that goes to the system in one write
	directValue  = 64 << 10  // values from here on go to the system without being copied
	tablePush    = 1 << 20   // bytes after which their way to the disk is started
)

// tableWriter writes one sorted table (LevelDB's table format). Keys must ascend. Without a file it keeps what it is given
// in out, until toFile. Not safe for concurrent use; reset makes it ready for the next table, keeping its buffers.
type tableWriter struct {
	blockSize int
	snappy    bool
	unpushed  bool // the system decides when it writes to the disk

	f      *os.File
	out    []byte // not yet written
	size   int64  // of the file, out included
	pushed int64

	begin    int    // where the open block begins in out; behind its written part it is 0
	crc      uint32 // of the block's written part
	written  int    // bytes of the block that are written
	restarts []uint32
	entries  int // in the open block
	last     []byte
	index    []byte
	indexAt  []uint32
	scratch  []byte
}

// reset begins a table in f, or in memory where that is nil.
func (t *tableWriter) reset(f *os.File) {
	t.f, t.size, t.pushed = f, 0, 0
	t.out, t.index, t.indexAt = t.out[:0], t.index[:0], t.indexAt[:0]
	t.beginBlock()
}

func (t *tableWriter) beginBlock() {
	t.begin, t.crc, t.written, t.entries = len(t.out), 0, 0, 0
	t.restarts = t.restarts[:0]
	t.last = t.last[:0]
}

// blockLen is the size of the open block so far.
func (t *tableWriter) blockLen() int { return t.written + len(t.out) - t.begin }

// addKey appends what stands before the value of an entry.
func (t *tableWriter) addKey(key []byte, valueLen int) {
	shared := 0
	if t.entries%restartEvery == 0 {
		t.restarts = append(t.restarts, uint32(t.blockLen()))
	} else {
		for n := min(len(key), len(t.last)); shared < n && key[shared] == t.last[shared]; {
			shared++
		}
	}
	t.entries++
	t.out = binary.AppendUvarint(t.out, uint64(shared))
	t.out = binary.AppendUvarint(t.out, uint64(len(key)-shared))
	t.out = binary.AppendUvarint(t.out, uint64(valueLen))
	t.out = append(t.out, key[shared:]...)
	t.last = append(t.last[:0], key...)
}

// add appends an entry. key is one with its trailer.
func (t *tableWriter) add(key, value []byte) error {
	t.addKey(key, len(value))
	if len(value) >= directValue && !t.snappy && t.f != nil {
		if err := t.direct(value); err != nil {
			return err
		}
	} else {
		t.out = append(t.out, value...)
	}
	if t.blockLen() >= t.blockSize {
		return t.endBlock()
	}
	return nil
}

// direct writes what is there and then value, without a copy.
func (t *tableWriter) direct(value []byte) error {
	t.crc = crc32.Update(t.crc, castagnoli, t.out[t.begin:])
	t.crc = crc32.Update(t.crc, castagnoli, value)
	t.written += len(t.out) - t.begin + len(value)
	if err := t.flush(); err != nil {
		return err
	}
	t.begin = 0
	return t.write(value)
}

func (t *tableWriter) endBlock() error {
	if t.entries == 0 {
		return nil
	}
	off, n := t.finishBlock()
	t.indexAt = append(t.indexAt, uint32(len(t.index)))
	t.index = append(t.index, 0) // no bytes shared with the key before
	t.index = binary.AppendUvarint(t.index, uint64(len(t.last)))
	handle := binary.AppendUvarint(binary.AppendUvarint(t.scratch[:0], uint64(off)), uint64(n))
	t.index = binary.AppendUvarint(t.index, uint64(len(handle)))
	t.index = append(append(t.index, t.last...), handle...)
	t.scratch = handle
	if len(t.out) >= tableBuffer && t.f != nil {
		if err := t.flush(); err != nil {
			return err
		}
	}
	t.beginBlock()
	return nil
}

// finishBlock appends restarts, type and checksum, compressing before where that pays, and returns offset and length of
// the block.
func (t *tableWriter) finishBlock() (off int64, n int) {
	if len(t.restarts) == 0 {
		t.restarts = append(t.restarts, 0)
	}
	for _, r := range t.restarts {
		t.out = binary.LittleEndian.AppendUint32(t.out, r)
	}
	t.out = binary.LittleEndian.AppendUint32(t.out, uint32(len(t.restarts)))
	kind := byte(typeRaw)
	if t.snappy {
		raw := t.out[t.begin:]
		t.scratch = snappy.Encode(t.scratch[:cap(t.scratch)], raw)
		if len(t.scratch) < len(raw)-len(raw)/8 { // LevelDB keeps a block raw that shrinks by less than an eighth
			t.out = append(t.out[:t.begin], t.scratch...)
			kind = typeSnappy
		}
	}
	n = t.blockLen()
	off = t.length() - int64(n)
	t.out = append(t.out, kind)
	t.crc = crc32.Update(t.crc, castagnoli, t.out[t.begin:])
	t.out = binary.LittleEndian.AppendUint32(t.out, masked(t.crc))
	return off, n
}

// toFile goes on in f with what was begun in memory.
func (t *tableWriter) toFile(f *os.File) error {
	if err := t.endBlock(); err != nil {
		return err
	}
	t.f = f
	if err := t.flush(); err != nil {
		return err
	}
	t.begin = 0
	return nil
}

// finish ends the table. The file is written but not synced; sizes are final.
func (t *tableWriter) finish() error {
	if err := t.endBlock(); err != nil {
		return err
	}
	compress := t.snappy
	t.snappy = false // of LevelDB's own readers all take a raw index
	defer func() { t.snappy = compress }()

	t.beginBlock()
	metaOff, metaLen := t.finishBlock()
	t.beginBlock()
	t.out = append(t.out, t.index...)
	t.restarts = append(t.restarts, t.indexAt...)
	indexOff, indexLen := t.finishBlock()

	foot := len(t.out)
	for _, n := range []uint64{uint64(metaOff), uint64(metaLen), uint64(indexOff), uint64(indexLen)} {
		t.out = binary.AppendUvarint(t.out, n)
	}
	t.out = append(t.out, make([]byte, footerSize-8-(len(t.out)-foot))...)
	t.out = binary.LittleEndian.AppendUint64(t.out, tableMagic)
	return t.flush()
}

func (t *tableWriter) flush() error {
	if len(t.out) == 0 {
		return nil
	}
	var err error
	for rest := t.out; len(rest) > 0 && err == nil; {
		n := min(len(rest), tableWrite)
		err = t.write(rest[:n])
		rest = rest[n:]
	}
	t.out = t.out[:0]
	return err
}

func (t *tableWriter) write(p []byte) error {
	n, err := t.f.Write(p)
	t.size += int64(n)
	if err == nil && !t.unpushed && t.size-t.pushed >= tablePush {
		_ = fsx.StartWriteback(t.f, t.pushed, t.size-t.pushed) // only a hint
		t.pushed = t.size
	}
	return err
}

// length is the size of the table so far.
func (t *tableWriter) length() int64 { return t.size + int64(len(t.out)) }

// sealFile syncs if wanted and closes.
func sealFile(f *os.File, sync bool) error {
	var err error
	if sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
