package leveldb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync/atomic"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// A journal (LevelDB's log format) is a row of blocks. A record is cut into chunks that do not cross a block's border;
// a chunk is CRC-32C (masked, 4 bytes), length (2 bytes LE), type, data. Less than a header's room at the end of a block
// stays zero. The MANIFEST is a journal too.
const (
	journalBlock  = 32 << 10
	chunkHeader   = 7
	chunkFull     = 1
	chunkFirst    = 2
	chunkMiddle   = 3
	chunkLast     = 4
	journalPush   = 2 << 20   // bytes after which their way to the disk is started
	journalBuffer = 256 << 10 // bytes gathered before they go to the system in one write
)

// journalWriter appends records to a file. Not safe for concurrent use.
type journalWriter struct {
	f    *os.File
	buf  []byte // not yet written
	size int64  // of the file, buf included
	need int    // bytes that the record begun still needs

	chunk int  // where the open chunk begins in buf
	left  int  // data bytes that it still takes
	first bool // it is the first of its record

	pushed int64       // bytes of the file whose way to the disk has been started
	named  atomic.Bool // the directory was synced since the file is there

	refs int  // held by a Sync
	done bool // to be closed by the last that holds it
}

// createJournal makes the file. buf may be memory for its buffer, or nil.
func createJournal(path string, buf []byte) (*journalWriter, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &journalWriter{f: f, buf: buf[:0]}, nil
}

// begin starts a record of n bytes, which add must then deliver.
func (j *journalWriter) begin(n int) error {
	j.need, j.first = n, true
	return j.open()
}

// open starts a chunk.
func (j *journalWriter) open() error {
	if len(j.buf) >= journalBuffer {
		if err := j.flush(); err != nil {
			return err
		}
	}
	room := journalBlock - int(j.size%journalBlock)
	if room < chunkHeader {
		j.buf = append(j.buf, make([]byte, room)...)
		j.size += int64(room)
		room = journalBlock
	}
	j.chunk = len(j.buf)
	j.left = min(j.need, room-chunkHeader)
	j.buf = append(j.buf, 0, 0, 0, 0, 0, 0, 0)
	j.size += chunkHeader
	if j.left == 0 && j.need == 0 {
		j.seal()
	}
	return nil
}

// seal fills in the header of the open chunk.
func (j *journalWriter) seal() {
	b := j.buf[j.chunk:]
	kind := byte(chunkMiddle)
	switch {
	case j.first && j.need == 0:
		kind = chunkFull
	case j.first:
		kind = chunkFirst
	case j.need == 0:
		kind = chunkLast
	}
	j.first = false
	b[6] = kind
	binary.LittleEndian.PutUint16(b[4:], uint16(len(b)-chunkHeader))
	binary.LittleEndian.PutUint32(b, checksum(b[6:]))
}

// add appends bytes of the record begun.
func (j *journalWriter) add(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), j.left)
		j.buf = append(j.buf, p[:n]...)
		p = p[n:]
		j.size += int64(n)
		j.left -= n
		j.need -= n
		if j.left > 0 {
			return nil
		}
		j.seal()
		if j.need == 0 {
			return nil
		}
		if err := j.open(); err != nil {
			return err
		}
	}
	return nil
}

// record appends a whole record and hands it to the system.
func (j *journalWriter) record(p []byte) error {
	return errors.Join(j.begin(len(p)), j.add(p), j.flush())
}

// flush hands everything to the system: it survives the end of this process.
func (j *journalWriter) flush() error {
	if len(j.buf) == 0 {
		return nil
	}
	_, err := j.f.Write(j.buf)
	j.buf = j.buf[:0]
	if j.size-j.pushed >= journalPush {
		_ = fsx.StartWriteback(j.f, j.pushed, j.size-j.pushed) // only a hint
		j.pushed = j.size
	}
	return err
}

// sync waits for the disk. It may run beside add.
func (j *journalWriter) sync(dir string) error {
	if err := j.f.Sync(); err != nil {
		return err
	}
	if j.named.Load() {
		return nil
	}
	if err := fsx.SyncDir(dir); err != nil {
		return err
	}
	j.named.Store(true)
	return nil
}

// release gives back what a Sync held.
func (j *journalWriter) release() {
	j.refs--
	if j.done && j.refs == 0 {
		_ = j.f.Close() // it is not needed any more
	}
}

// discard closes the journal, at the latest when no Sync holds it. It is not needed any more.
func (j *journalWriter) discard() {
	j.done = true
	if j.refs == 0 {
		_ = j.f.Close()
	}
}

// errTorn says that a journal ends in the middle of a record, as after a crash.
var errTorn = errors.New("the journal ends within a record")

// readJournal calls f for every whole record of a journal in b, in order; f may keep the bytes. It
// returns where reading ended and why: nil at the end of b, errTorn where the last record is not whole, a CorruptError
// where whole records follow the damage, and what f returns.
func readJournal(path string, b []byte, f func(rec []byte, off int64) error) (int64, error) {
	return readJournalFrom(path, b, 0, f)
}

// readJournalFrom begins with the chunk at byte off.
func readJournalFrom(path string, b []byte, off int, f func(rec []byte, off int64) error) (int64, error) {
	var rec []byte
	inRecord := false
	begin := off
	for off < len(b) {
		room := journalBlock - off%journalBlock
		if room < chunkHeader {
			off += room
			continue
		}
		kind, data, ok := parseChunk(b[off:min(off+room, len(b))])
		good := ok && (kind == chunkFull || kind == chunkFirst) != inRecord
		if !good {
			if !inRecord {
				begin = off
			}
			if off = nextChunk(b, off+1); off < len(b) {
				return int64(begin), &plugin.CorruptError{Path: path, Offset: int64(begin), Err: errors.New("a record of the journal is damaged")}
			}
			return int64(begin), errTorn
		}
		if !inRecord {
			begin = off
		}
		off += chunkHeader + len(data)
		switch kind {
		case chunkFull:
			rec = data
		case chunkFirst:
			rec, inRecord = append([]byte(nil), data...), true
			continue
		default:
			rec = append(rec, data...)
			inRecord = kind != chunkLast
		}
		if inRecord {
			continue
		}
		if err := f(rec, int64(begin)); err != nil {
			return int64(begin), err
		}
	}
	if inRecord {
		return int64(begin), errTorn
	}
	return int64(len(b)), nil
}

// parseChunk takes apart the chunk at the beginning of b, which ends with the block or the file.
func parseChunk(b []byte) (kind byte, data []byte, ok bool) {
	if len(b) < chunkHeader {
		return 0, nil, false
	}
	n := int(binary.LittleEndian.Uint16(b[4:]))
	kind = b[6]
	if kind < chunkFull || kind > chunkLast || chunkHeader+n > len(b) {
		return 0, nil, false
	}
	if masked(crc32.Checksum(b[6:chunkHeader+n], castagnoli)) != binary.LittleEndian.Uint32(b) {
		return 0, nil, false
	}
	return kind, b[chunkHeader : chunkHeader+n], true
}

// nextChunk finds the next place at or behind off where a record begins that is whole as far as its first chunk goes;
// len(b) if there is none. Chunks may begin anywhere, but one that follows damage begins a block or lies behind a
// whole chunk, so only the rest of this block is looked through byte by byte.
func nextChunk(b []byte, off int) int {
	for end := min(len(b), off/journalBlock*journalBlock+journalBlock); off < end; off++ {
		if kind, data, ok := parseChunk(b[off:end]); ok && (kind == chunkFull || kind == chunkFirst) && len(data) > 0 {
			return off
		}
	}
	for off < len(b) {
		end := min(len(b), off+journalBlock)
		for at := off; at < end; {
			kind, data, ok := parseChunk(b[at:end])
			if !ok {
				break
			}
			if kind == chunkFull || kind == chunkFirst {
				return at
			}
			at += chunkHeader + len(data)
		}
		off += journalBlock
	}
	return len(b)
}

// A batch is what a record of a journal holds: sequence number of its first entry (LE64), number of entries (LE32), and
// the entries: type, key with its length, and, but for deletions, value with its length.
const (
	batchHeader  = 12
	typeDeletion = 0
	typeValue    = 1
)

func appendBatchHeader(b []byte, seq uint64, count int) []byte {
	b = binary.LittleEndian.AppendUint64(b, seq)
	return binary.LittleEndian.AppendUint32(b, uint32(count))
}

var errBatch = errors.New("a batch of the journal is not one")

// readBatch calls f for each entry of a batch. key and value alias b.
func readBatch(b []byte, f func(seq uint64, kind byte, key, value []byte) error) error {
	if len(b) < batchHeader {
		return errBatch
	}
	seq, count := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])
	b = b[batchHeader:]
	for ; count > 0; count-- {
		if len(b) == 0 {
			return errBatch
		}
		kind := b[0]
		key, rest, ok := cutBytes(b[1:])
		if !ok || kind > typeValue {
			return errBatch
		}
		var value []byte
		if kind == typeValue {
			if value, rest, ok = cutBytes(rest); !ok {
				return errBatch
			}
		}
		if err := f(seq, kind, key, value); err != nil {
			return err
		}
		b = rest
		seq++
	}
	if len(b) > 0 {
		return fmt.Errorf("%w: %d bytes too many", errBatch, len(b))
	}
	return nil
}
