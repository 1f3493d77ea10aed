package leveldb

import (
	"errors"
	"math"
	"sort"

	"github.com/gobag/gobag/plugin"
)

// readAhead is how many bytes are read at once when block follows block.
const readAhead = 256 << 10

// cursor walks over the messages of one table, or of what journals held, in one direction.
type cursor struct {
	table   *tableFile // nil for journals
	order   *keyOrder
	topic   plugin.TopicID // of all messages, where values do not say
	reverse bool

	ms    []message // of the current block
	pos   int       // in ms
	block int       // in table.index

	// What was read last. It stays when the cursor goes on to another query, which may ask for the same block or the next.
	loaded      *tableFile // the table of ms and window; it may be closed
	loadedBlock int        // whose messages ms are; -1 none
	window      []byte     // bytes of the file from windowAt on
	windowAt    int64
	dec         []byte

	ahead    *lookahead // nil where there is none
	inOrder  bool       // the block to be read next is one of many
	isMapped bool       // ms are in a mapped table
}

// reset makes a cursor ready for another table, keeping what it has read.
func (c *cursor) reset(t *tableFile, order *keyOrder, topic plugin.TopicID, reverse bool) {
	c.table, c.order, c.topic, c.reverse, c.inOrder = t, order, topic, reverse, false
	if c.loaded != t {
		c.loaded, c.loadedBlock = t, -1
		c.window = c.window[:0]
	}
}

// leave ends the use of the table, which may be unmapped then.
func (c *cursor) leave() {
	c.ahead = nil
	if c.isMapped {
		c.loadedBlock, c.isMapped, c.ms = -1, false, c.ms[:0]
	}
	c.table = nil
}

// start goes to the first message at or behind from, in the cursor's direction. ok is false where there is none.
func (c *cursor) start(from stamp) (ok bool, err error) {
	if c.table == nil {
		c.pos = sort.Search(len(c.ms), func(i int) bool {
			if c.reverse {
				return from.less(c.ms[i].stamp)
			}
			return !c.ms[i].stamp.less(from)
		})
		if c.reverse {
			c.pos--
		}
		return c.pos >= 0 && c.pos < len(c.ms), nil
	}
	index := c.table.index
	c.block = sort.Search(len(index), func(i int) bool {
		last := &index[i].last
		return !last.before && !last.less(from)
	})
	if c.block == len(index) {
		if !c.reverse || len(index) == 0 {
			return false, nil
		}
		c.block--
	}
	for c.block >= 0 && c.block < len(index) {
		if err := c.load(); err != nil {
			return false, err
		}
		c.pos = sort.Search(len(c.ms), func(i int) bool {
			if c.reverse {
				return from.less(c.ms[i].stamp)
			}
			return !c.ms[i].stamp.less(from)
		})
		if c.reverse {
			c.pos--
		}
		if c.pos >= 0 && c.pos < len(c.ms) {
			return true, nil
		}
		c.block += c.step()
	}
	return false, nil
}

func (c *cursor) step() int {
	if c.reverse {
		return -1
	}
	return 1
}

func (c *cursor) current() *message { return &c.ms[c.pos] }

// next goes on by one message. ok is false at the end. The bytes of the message before are valid no more.
func (c *cursor) next() (ok bool, err error) {
	c.pos += c.step()
	for c.pos < 0 || c.pos >= len(c.ms) {
		if c.table == nil {
			return false, nil
		}
		c.block += c.step()
		if c.block < 0 || c.block >= len(c.table.index) {
			return false, nil
		}
		if err := c.load(); err != nil {
			return false, err
		}
		c.pos = 0
		if c.reverse {
			c.pos = len(c.ms) - 1
		}
	}
	return true, nil
}

// load reads the current block, unless it is there.
func (c *cursor) load() error {
	if c.block == c.loadedBlock {
		return nil
	}
	sequential := c.inOrder || c.loadedBlock >= 0 && c.block == c.loadedBlock+c.step()
	c.loadedBlock = -1
	e := &c.table.index[c.block]
	b, err := c.read(e, sequential)
	if err != nil {
		return err
	}
	c.ms = c.ms[:0]
	before := place{before: true} // last of the block before: of equal keys only the first, newest, counts
	if c.block > 0 {
		before = c.table.index[c.block-1].last
	}
	corrupt := func(err error) error { return c.table.corrupt(e.off, "%v", err) }
	err = parseBlock(b, func(key, value []byte) error {
		user, seq, kind, err := splitKey(key)
		if err != nil {
			return corrupt(err)
		}
		s, ok, err := c.order.parse(user)
		if err != nil {
			return corrupt(err)
		}
		if !ok || len(c.ms) > 0 && c.ms[len(c.ms)-1].stamp == s {
			return nil
		}
		if len(c.ms) == 0 && !before.before && before.stamp == s {
			return nil
		}
		c.ms = append(c.ms, message{s, seq, kind, value})
		return nil
	}, corrupt)
	if err == nil {
		c.loadedBlock = c.block
	}
	return err
}

// read returns what is in a block: by the mapped table where that pays.
func (c *cursor) read(e *indexEntry, sequential bool) (b []byte, err error) {
	c.isMapped = false
	if e.size >= mapBlock || c.ahead != nil {
		if m, ok := c.table.blocks(); ok {
			err := m.check(c.block)
			if c.ahead != nil {
				c.ahead.took(e.size)
			}
			if err == nil {
				c.isMapped = true
				b, c.dec, err = c.table.unpack(m.data[e.off:e.off+int64(e.size)+blockTrailer], e.off, c.dec)
			}
			if !errors.Is(err, errFault) {
				return b, err
			}
		}
	}
	if b, err = c.bytes(e.off, e.size+blockTrailer, sequential); err == nil {
		b, c.dec, err = c.table.openBlock(b, e.off, c.dec)
	}
	return b, err
}

// bytes returns n bytes of the file from off on, out of the window that reading ahead has filled.
func (c *cursor) bytes(off int64, n int, sequential bool) ([]byte, error) {
	if off >= c.windowAt && off+int64(n) <= c.windowAt+int64(len(c.window)) {
		at := off - c.windowAt
		return c.window[at : at+int64(n)], nil
	}
	from, size := off, int64(n)
	if sequential && n < readAhead {
		last := &c.table.index[len(c.table.index)-1]
		end := last.off + int64(last.size) + blockTrailer
		if c.reverse {
			from = max(0, off+int64(n)-readAhead)
			size = off + int64(n) - from
		} else {
			size = max(size, min(readAhead, end-off))
		}
	}
	if off < 0 || from+size > c.table.size || size > math.MaxInt32 {
		return nil, c.table.corrupt(off, "a block of %d bytes does not fit into the table", n)
	}
	c.window = grow(c.window, int(size))
	c.windowAt = from
	if err := c.table.readAt(c.window, from); err != nil {
		c.window = c.window[:0]
		return nil, err
	}
	at := off - from
	return c.window[at : at+int64(n)], nil
}
