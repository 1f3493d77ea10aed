package bag

import (
	"errors"
	"fmt"
	"io"

	"github.com/gobag/gobag/plugin"
)

// Messages returns the messages that match q from all files, ordered by (RecvTime, file, Order), or exactly backwards.
// The iterator has a method File() string too: the path of the file that the last message is from.
// Topic ids are those of Info; plugin.ErrUnknownTopic for others. Files are opened when their time has come.
//
// When a file is damaged, Next returns its *plugin.CorruptError once; called again it goes on with the other files.
func (r *Reader) Messages(q plugin.Query) (plugin.Iterator, error) {
	r.mu.Lock()
	topics, closed := len(r.topics), r.closed
	r.mu.Unlock()
	if closed {
		return nil, plugin.ErrClosed
	}
	for _, id := range q.Topics {
		if id == 0 || int(id) > topics {
			return nil, fmt.Errorf("read bag %s: topic %d: %w", r.path, id, plugin.ErrUnknownTopic)
		}
	}
	it := &mergeIterator{r: r, q: q}
	if q.Topics != nil && len(q.Topics) == 0 {
		return it, nil
	}
	for i, f := range r.files {
		if f.known && f.count == 0 {
			continue
		}
		start, end := f.bounds()
		if q.Range != nil {
			if end < q.Range.Start || start > q.Range.End || q.Range.Start > q.Range.End {
				continue
			}
			start, end = max(start, q.Range.Start), min(end, q.Range.End)
		}
		c := &cursor{file: f, index: i}
		if c.key = start; q.Reverse {
			c.key = end
		}
		it.push(c)
	}
	return it, nil
}

// mergeIterator merges the iterators of files. heap[0] is next.
type mergeIterator struct {
	r      *Reader
	q      plugin.Query
	heap   []*cursor
	given  bool // the message of heap[0] was handed out
	closed bool
	turns  turns
}

// cursor is the place in one file.
type cursor struct {
	file  *readerFile
	index int
	key   int64                  // stamp of the message; before the file is opened, the first that it may have
	it    plugin.Iterator        // nil before the file is opened
	skip  map[plugin.TopicID]int // repeats still to be left out, by topic of the bag
	m     plugin.Message
	buf   []byte // undone compression
}

// Next implements plugin.Iterator.
func (it *mergeIterator) Next(m *plugin.Message) error {
	if it.closed {
		return plugin.ErrClosed
	}
	if it.given {
		it.given = false
		if err := it.advance(); err != nil {
			return err
		}
	}
	for len(it.heap) > 0 {
		c := it.heap[0]
		if c.it == nil {
			if err := it.open(c); err != nil {
				return err
			}
			continue
		}
		*m = c.m
		it.given = true
		if it.r.o.Transcode != nil {
			skip, err := it.turn(m)
			if err != nil {
				return err
			}
			if skip {
				it.given = false
				if err := it.advance(); err != nil {
					return err
				}
				continue
			}
		}
		return nil
	}
	return io.EOF
}

// File is the path of the file that the message handed out last is from; "" without one. The iterators of Reader.Messages
// have it.
func (it *mergeIterator) File() string {
	if !it.given || len(it.heap) == 0 {
		return ""
	}
	return it.heap[0].file.path
}

// open begins to read the file of heap[0].
func (it *mergeIterator) open(c *cursor) error {
	rd, err := c.file.acquire(it.r.ctx)
	if err != nil {
		it.pop()
		return fmt.Errorf("read bag %s: %w", it.r.path, err)
	}
	q := it.q
	if q.Topics != nil {
		q.Topics = c.file.topicIDs(it.q.Topics)
	}
	c.file.mu.Lock()
	reverse := c.file.drv.Features().Reverse
	c.file.mu.Unlock()
	if q.Reverse && !reverse {
		err = plugin.ErrUnsupported
	} else {
		c.it, err = rd.Messages(q)
	}
	if err != nil {
		c.file.release()
		it.pop()
		return fmt.Errorf("read bag %s: %s: %w", it.r.path, c.file.name, err)
	}
	c.skip = c.file.repeatsLeft()
	return it.advance()
}

// advance reads the next message of heap[0] and puts the heap in order again.
func (it *mergeIterator) advance() error {
	c := it.heap[0]
	err := c.next()
	if err == nil {
		err = it.translate(c)
	}
	if err == nil {
		c.key = c.m.RecvTime
		it.down(0)
		return nil
	}
	it.pop()
	err = ignoreEOF(err)
	if cerr := c.close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("read bag %s: %s: %w", it.r.path, c.file.name, err)
	}
	return nil
}

// next reads the next message of the file that repeats none of the files before.
func (c *cursor) next() error {
	for {
		if err := c.it.Next(&c.m); err != nil || c.skip == nil || c.m.RecvTime != c.file.repeats.Stamp {
			return err
		}
		id := c.file.toBag[c.m.Topic].id
		if c.skip[id] == 0 {
			return nil
		}
		c.skip[id]--
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// translate turns a file's message into one of the bag.
func (it *mergeIterator) translate(c *cursor) error {
	t, ok := c.file.toBag[c.m.Topic]
	if !ok {
		return &plugin.CorruptError{Path: c.file.path, Offset: -1, Err: fmt.Errorf("message of topic %d, which the storage does not list", c.m.Topic)}
	}
	c.m.Topic = t.id
	if t.sources != nil && c.m.Source > 0 && int(c.m.Source) <= len(t.sources) {
		c.m.Source = t.sources[c.m.Source-1]
	}
	if it.r.unpack == unpackNone || it.r.unpack == unpackAuto && !it.r.isCDR(t.id) {
		return nil
	}
	data, err := unpackMessage(c.buf[:0], c.m.Data)
	if err != nil {
		return &plugin.CorruptError{Path: c.file.path, Offset: -1, Err: fmt.Errorf("message at %d: %w", c.m.RecvTime, err)}
	}
	if len(c.m.Data) == 0 || len(data) == 0 || &data[0] != &c.m.Data[0] {
		c.buf = data
	}
	c.m.Data = data
	return nil
}

func (r *Reader) isCDR(id plugin.TopicID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.topics[id-1].SerializationFormat == "cdr"
}

// topicIDs returns the file's ids of bag topics; empty, not nil, where it has none of them.
func (f *readerFile) topicIDs(bag []plugin.TopicID) []plugin.TopicID {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []plugin.TopicID{}
	for _, id := range bag {
		out = append(out, f.toFile[id]...)
	}
	return out
}

func (c *cursor) close() error {
	if c.it == nil {
		return nil
	}
	err := c.it.Close()
	c.it = nil
	c.file.release()
	return err
}

// Close implements plugin.Iterator. Idempotent.
func (it *mergeIterator) Close() error {
	it.closed = true
	var errs []error
	for _, c := range it.heap {
		errs = append(errs, c.close())
	}
	it.heap = nil
	return errors.Join(errs...)
}

// before says whether a's next message comes before b's. A file that is not open yet goes first at its first stamp: its
// message there may be the one.
func (it *mergeIterator) before(a, b *cursor) bool {
	if a.key != b.key {
		return (a.key < b.key) != it.q.Reverse
	}
	if (a.it == nil) != (b.it == nil) {
		return a.it == nil
	}
	return (a.index < b.index) != it.q.Reverse
}

func (it *mergeIterator) push(c *cursor) {
	it.heap = append(it.heap, c)
	for i := len(it.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !it.before(it.heap[i], it.heap[up]) {
			break
		}
		it.heap[i], it.heap[up] = it.heap[up], it.heap[i]
		i = up
	}
}

// pop takes heap[0] out.
func (it *mergeIterator) pop() {
	last := len(it.heap) - 1
	it.heap[0] = it.heap[last]
	it.heap[last] = nil
	it.heap = it.heap[:last]
	it.down(0)
}

// down puts heap[i] into its place among those below it.
func (it *mergeIterator) down(i int) {
	for {
		next := 2*i + 1
		if next >= len(it.heap) {
			return
		}
		if next+1 < len(it.heap) && it.before(it.heap[next+1], it.heap[next]) {
			next++
		}
		if !it.before(it.heap[next], it.heap[i]) {
			return
		}
		it.heap[i], it.heap[next] = it.heap[next], it.heap[i]
		i = next
	}
}
