package leveldb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/golang/snappy"

	"github.com/gobag/gobag/plugin"
)

// tableFile is an open table. Safe for concurrent use.
type tableFile struct {
	path  string
	f     *os.File
	size  int64
	index []indexEntry

	refs   int // of tableCache
	used   uint64
	closed bool

	mapping sync.Mutex
	mapped  []byte          // nil where not mapped
	mapNot  bool            // it cannot be
	states  []atomic.Uint32 // of mappedBlocks
}

// blocks returns the blocks of the mapped table; ok is false where that is not to be had. It stays mapped as long as
// someone holds the table.
func (t *tableFile) blocks() (m mappedBlocks, ok bool) {
	t.mapping.Lock()
	defer t.mapping.Unlock()
	if t.mapped == nil && !t.mapNot {
		t.mapped = mapFile(t.f, t.size)
		t.mapNot = t.mapped == nil
		t.states = make([]atomic.Uint32, len(t.index))
	}
	return mappedBlocks{t, t.mapped, t.states}, !t.mapNot
}

// letGo unmaps the table, which no one holds.
func (t *tableFile) letGo() {
	if t.mapped != nil {
		unmap(t.mapped)
		t.mapped = nil
	}
}

// end unmaps and closes the table, which no one holds.
func (t *tableFile) end() {
	t.letGo()
	_ = t.f.Close() // opened for reading only
}

// indexEntry is a block: last is not below its last key and below the first of the next block.
type indexEntry struct {
	off  int64
	size int // without blockTrailer
	last place
}

func (t *tableFile) corrupt(off int64, format string, args ...any) error {
	return &plugin.CorruptError{Path: t.path, Offset: off, Err: fmt.Errorf(format, args...)}
}

// openTable opens a table of the given size and reads its index. What comes behind size is not looked at.
func openTable(path string, size int64, order *keyOrder) (*tableFile, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &plugin.CorruptError{Path: path, Offset: 0, Err: errors.New("the table is missing")}
	}
	if err != nil {
		return nil, err
	}
	t := &tableFile{path: path, f: f, size: size}
	if err := t.readIndex(order); err != nil {
		_ = f.Close() // opened for reading only
		return nil, err
	}
	return t, nil
}

func (t *tableFile) readIndex(order *keyOrder) error {
	fi, err := t.f.Stat()
	if err != nil {
		return err
	}
	if fi.Size() < t.size {
		return t.corrupt(fi.Size(), "the table ends here; it had %d bytes", t.size)
	}
	if t.size < footerSize {
		return t.corrupt(0, "the table has %d bytes, less than its footer", t.size)
	}
	var foot [footerSize]byte
	if err := t.readAt(foot[:], t.size-footerSize); err != nil {
		return err
	}
	if binary.LittleEndian.Uint64(foot[footerSize-8:]) != tableMagic {
		return t.corrupt(t.size-8, "the table does not end with LevelDB's magic number")
	}
	var h [4]uint64
	b := foot[:footerSize-8]
	for i := range h {
		var ok bool
		if h[i], b, ok = cutUvarint(b); !ok {
			return t.corrupt(t.size-footerSize, "the footer is damaged")
		}
	}
	if h[2] > uint64(t.size) || h[3] > uint64(t.size) {
		return t.corrupt(t.size-footerSize, "the footer is damaged")
	}
	block, err := t.readBlock(int64(h[2]), int(h[3]))
	if err != nil {
		return err
	}
	t.index = make([]indexEntry, 0, restarts(block))
	return parseBlock(block, func(key, value []byte) error {
		off, rest, ok := cutUvarint(value)
		n, _, ok2 := cutUvarint(rest)
		if !ok || !ok2 || len(key) < trailerSize || off > uint64(t.size) || n > uint64(t.size) || off+n+blockTrailer > uint64(t.size) {
			return t.corrupt(int64(h[2]), "the index of the table is damaged")
		}
		t.index = append(t.index, indexEntry{int64(off), int(n), order.bound(key[:len(key)-trailerSize])})
		return nil
	}, func(err error) error { return t.corrupt(int64(h[2]), "the index of the table: %v", err) })
}

func (t *tableFile) readAt(b []byte, off int64) error {
	n, err := t.f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return t.corrupt(off+int64(n), "the table ends here; it had %d bytes", t.size)
	}
	return err
}

// readBlock reads and checks a block.
func (t *tableFile) readBlock(off int64, n int) ([]byte, error) {
	if off+int64(n)+blockTrailer > t.size {
		return nil, t.corrupt(off, "a block of %d bytes does not fit into the table", n)
	}
	b := make([]byte, n+blockTrailer)
	if err := t.readAt(b, off); err != nil {
		return nil, err
	}
	block, _, err := t.openBlock(b, off, nil)
	return block, err
}

// openBlock checks the block b, trailer included, which stands at off, and returns what is in it: a part of b, or of dec,
// which may be grown.
func (t *tableFile) openBlock(b []byte, off int64, dec []byte) (block, dec2 []byte, err error) {
	n := len(b) - blockTrailer
	if masked(crc32.Checksum(b[:n+1], castagnoli)) != binary.LittleEndian.Uint32(b[n+1:]) {
		return nil, dec, t.wrongChecksum(off, n)
	}
	return t.unpack(b, off, dec)
}

func (t *tableFile) wrongChecksum(off int64, n int) error {
	return t.corrupt(off, "a block of %d bytes is damaged: its checksum is wrong", n)
}

// unpack is openBlock for a block that was checked.
func (t *tableFile) unpack(b []byte, off int64, dec []byte) (block, dec2 []byte, err error) {
	n := len(b) - blockTrailer
	switch kind := b[n]; kind {
	case typeRaw:
		return b[:n], dec, nil
	case typeSnappy:
		m, err := snappy.DecodedLen(b[:n])
		if err != nil || m > 64*n { // a copy of 64 bytes takes three
			return nil, dec, t.corrupt(off, "a block does not decompress: length %d of %d bytes", m, n)
		}
		dec = grow(dec, m)
		if dec, err = snappy.Decode(dec, b[:n]); err != nil {
			return nil, dec, t.corrupt(off, "a block does not decompress: %v", err)
		}
		return dec, dec, nil
	default:
		return nil, dec, t.corrupt(off, "a block is compressed in way %d, which is unknown here", kind)
	}
}

// grow returns b with length n, a new one if its room is too small.
func grow(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}

// restarts returns how many entries of a block stand with their whole key, which in an index are all; at most as many as
// have room.
func restarts(b []byte) int {
	if len(b) < 4 {
		return 0
	}
	return int(min(uint64(binary.LittleEndian.Uint32(b[len(b)-4:])), uint64(len(b)/4)))
}

var errBlock = errors.New("entries do not fit into their block")

// parseBlock calls f for each entry. key is f's only during the call; value aliases b. An error of the block itself
// passes through wrap.
func parseBlock(b []byte, f func(key, value []byte) error, wrap func(error) error) error {
	if len(b) < 4 {
		return wrap(errBlock)
	}
	restarts := uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	if restarts*4+4 > uint64(len(b)) {
		return wrap(errBlock)
	}
	b = b[:uint64(len(b))-restarts*4-4]
	var arr [64]byte
	key := arr[:0]
	for len(b) > 0 {
		var shared, own, vlen uint64
		var ok bool
		if len(b) > 3 && b[0]|b[1]|b[2] < 0x80 {
			shared, own, vlen, b = uint64(b[0]), uint64(b[1]), uint64(b[2]), b[3:]
		} else {
			if shared, b, ok = cutUvarint(b); !ok {
				return wrap(errBlock)
			}
			if own, b, ok = cutUvarint(b); !ok {
				return wrap(errBlock)
			}
			if vlen, b, ok = cutUvarint(b); !ok {
				return wrap(errBlock)
			}
		}
		if shared > uint64(len(key)) || own > uint64(len(b)) || vlen > uint64(len(b))-own {
			return wrap(errBlock)
		}
		key = append(key[:shared], b[:own]...)
		if err := f(key, b[own:own+vlen:own+vlen]); err != nil {
			return err
		}
		b = b[own+vlen:]
	}
	return nil
}

// idleMapped is how many bytes of tables that no iterator holds stay mapped. They are the system's page cache and count as
// memory of the process only as long as it has room.
const idleMapped = 256 << 20

// tableCache keeps tables open for iterators to come. Safe for concurrent use.
type tableCache struct {
	limit int

	mu     sync.Mutex
	idle   int64 // bytes of tables that are mapped and not held
	tables map[string]*tableFile
	tick   uint64
	closed bool
}

// acquire opens a table, or takes one that is open; release must follow.
func (c *tableCache) acquire(path string, size int64, order *keyOrder) (*tableFile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.find(path, size, order)
}

// acquireMessages is acquire for a table of the list of a reader, which knows where it is open.
func (c *tableCache) acquireMessages(m *messageTable) (*tableFile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := m.open; t != nil && !t.closed && !c.closed {
		return c.take(t), nil
	}
	t, err := c.find(m.path, m.size, &m.part.db.order)
	m.open = t
	return t, err
}

func (c *tableCache) take(t *tableFile) *tableFile {
	if t.refs == 0 {
		c.idle -= int64(len(t.mapped))
	}
	t.refs++
	c.tick++
	t.used = c.tick
	return t
}

// find is acquire with mu held.
func (c *tableCache) find(path string, size int64, order *keyOrder) (*tableFile, error) {
	if c.closed {
		return nil, plugin.ErrClosed
	}
	t := c.tables[path]
	if t == nil {
		var err error
		if t, err = openTable(path, size, order); err != nil {
			return nil, err
		}
		if c.tables == nil {
			c.tables = map[string]*tableFile{}
		}
		c.tables[path] = t
		c.evict()
	}
	return c.take(t), nil
}

// evict closes the tables that were not used for longest, as long as there are too many and one is free.
func (c *tableCache) evict() {
	for len(c.tables) > c.limit {
		t := c.oldest(func(t *tableFile) bool { return t.used > 0 })
		if t == nil {
			return
		}
		delete(c.tables, t.path)
		c.idle -= int64(len(t.mapped))
		t.closed, t.index = true, nil
		t.end()
	}
}

// oldest is the table, of those that f takes and no one holds, that was not used for longest; nil if there is none.
func (c *tableCache) oldest(f func(*tableFile) bool) *tableFile {
	var oldest *tableFile
	for _, t := range c.tables {
		if t.refs == 0 && f(t) && (oldest == nil || t.used < oldest.used) {
			oldest = t
		}
	}
	return oldest
}

func (c *tableCache) release(t *tableFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.refs--; t.refs > 0 {
		return
	}
	if c.closed {
		t.end()
		return
	}
	for c.idle += int64(len(t.mapped)); c.idle > idleMapped; {
		t := c.oldest(func(t *tableFile) bool { return t.mapped != nil })
		c.idle -= int64(len(t.mapped))
		t.letGo()
	}
}

// close closes the tables that no iterator holds; the others follow at their release.
func (c *tableCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, t := range c.tables {
		if t.refs == 0 {
			t.end()
		}
	}
	c.tables = nil
}
