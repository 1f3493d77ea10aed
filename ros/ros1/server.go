package ros1

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
	"github.com/bluenviron/goroslib/v2/pkg/prototcp"
)

// subscriber is the connection of a remote subscriber.
type subscriber struct {
	conn   net.Conn
	window int

	mu     sync.Mutex
	queue  []queuedFrame
	bytes  int // of the queue and of what is being written
	busy   int // frames being written
	closed bool
	more   chan struct{} // something was queued
	room   chan struct{} // something was written
}

// queuedFrame is a message with its length in front.
type queuedFrame struct {
	b *block
	n int
}

const writeBatch = 64 // frames handed to the kernel at once

// frame copies a message, with its length in front, into a block with one reference.
func (n *Node) frame(data []byte) *block {
	size := len(data) + 4
	var b *block
	if size <= slabMessage {
		b = &block{buf: make([]byte, size)}
		b.refs.Store(1)
	} else {
		b = n.pools.get(size)
	}
	binary.LittleEndian.PutUint32(b.buf, uint32(len(data)))
	copy(b.buf[4:], data)
	return b
}

// push queues a frame. Where there is no room it waits for some, at most for wait. false: it was not queued.
func (c *subscriber) push(f queuedFrame, wait time.Duration) bool {
	var timeout <-chan time.Time
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return false
		}
		if c.bytes == 0 || c.bytes+f.n <= c.window {
			c.queue = append(c.queue, f)
			c.bytes += f.n
			c.mu.Unlock()
			select {
			case c.more <- struct{}{}:
			default:
			}
			return true
		}
		c.mu.Unlock()
		if wait <= 0 {
			return false
		}
		if timeout == nil {
			t := time.NewTimer(wait)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-c.room:
		case <-timeout:
			wait = 0
		}
	}
}

func (c *subscriber) queued() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) + c.busy
}

// write sends what is queued until the connection ends.
func (c *subscriber) write(gone <-chan struct{}) {
	var batch []queuedFrame
	var bufs net.Buffers
	for {
		c.mu.Lock()
		n := min(len(c.queue), writeBatch)
		batch = append(batch[:0], c.queue[:n]...)
		c.queue = c.queue[:copy(c.queue, c.queue[n:])]
		c.busy = n
		c.mu.Unlock()
		if n == 0 {
			select {
			case <-c.more:
				continue
			case <-gone:
				return
			}
		}
		bufs = bufs[:0]
		done := 0
		for _, f := range batch {
			bufs = append(bufs, f.b.buf[:f.n])
			done += f.n
		}
		work := bufs // WriteTo eats it
		_, err := work.WriteTo(c.conn)
		for _, f := range batch {
			f.b.Release(nil)
		}
		c.mu.Lock()
		c.bytes -= done
		c.busy = 0
		c.mu.Unlock()
		select {
		case c.room <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// accept takes connections of subscribers.
func (n *Node) accept() {
	for {
		c, err := n.ln.Accept()
		if err != nil {
			if n.ctx.Err() != nil {
				return
			}
			select { // out of file descriptors, perhaps
			case <-n.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		n.workers.Go(func() { n.serve(c) })
	}
}

// serve speaks with one subscriber, or one caller of a service.
func (n *Node) serve(c net.Conn) {
	defer func() { _ = c.Close() }() // it is over in any case
	end := make(chan struct{})
	defer close(end)
	n.workers.Go(func() { // Close does not wait for a header that does not come
		select {
		case <-n.ctx.Done():
			_ = c.Close()
		case <-end:
		}
	})
	if err := c.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return
	}
	br := bufio.NewReader(c)
	h, err := readHeader(br)
	if err != nil {
		return
	}
	if _, ok := h["service"]; ok {
		n.serveCalls(c, br, h)
		return
	}
	n.mu.Lock()
	tp := n.pubs[h["topic"]]
	n.mu.Unlock()
	if text := tp.refuses(h); text != "" {
		_ = protocommon.HeaderEncode(c, &prototcp.HeaderError{Error: text}) // the connection ends in any case
		return
	}
	tp.serve(c, br)
}

// refuses says what is wrong with what a subscriber wants; "" if nothing is.
func (tp *topicPub) refuses(h protocommon.HeaderRaw) string {
	switch {
	case tp == nil:
		return fmt.Sprintf("topic %.200q is not published by this node", h["topic"])
	case h["md5sum"] != "*" && tp.md5 != "*" && h["md5sum"] != tp.md5:
		return fmt.Sprintf("topic %s has md5sum %s, the subscriber wants %.64s", tp.name, tp.md5, h["md5sum"])
	case h["type"] != "" && h["type"] != "*" && h["type"] != tp.typ:
		return fmt.Sprintf("topic %s has type %s, the subscriber wants %.200s", tp.name, tp.typ, h["type"])
	}
	return ""
}

// serve sends a topic to a subscriber until it, or the topic, ends.
func (tp *topicPub) serve(c net.Conn, br *bufio.Reader) {
	s := &subscriber{conn: c, window: tp.n.o.Window, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	tp.mu.Lock()
	latching := 0
	if tp.latching {
		latching = 1
	}
	tp.mu.Unlock()
	err := protocommon.HeaderEncode(c, &prototcp.HeaderPublisher{Topic: tp.name, Type: tp.typ, Md5sum: tp.md5, Callerid: tp.n.name, Latching: latching,
		MessageDefinition: tp.definition})
	if err != nil || c.SetDeadline(time.Time{}) != nil {
		return
	}
	tp.mu.Lock()
	if tp.ctx.Err() != nil {
		tp.mu.Unlock()
		return
	}
	tp.workers.Add(1)
	defer tp.workers.Done()
	if tp.last != nil {
		tp.last.refs.Add(1)
		n := int(binary.LittleEndian.Uint32(tp.last.buf)) + 4
		s.queue, s.bytes = []queuedFrame{{tp.last, n}}, n
	}
	tp.conns = append(slices.Clone(tp.conns), s)
	tp.mu.Unlock()
	gone := make(chan struct{})
	tp.n.workers.Go(func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, br) // a subscriber says nothing more; its end does
	})
	s.write(gone)
	_ = c.Close()
	<-gone
	tp.mu.Lock()
	tp.conns = slices.DeleteFunc(slices.Clone(tp.conns), func(o *subscriber) bool { return o == s })
	tp.mu.Unlock()
	s.mu.Lock()
	s.closed = true
	rest := s.queue
	s.queue, s.bytes = nil, 0
	s.mu.Unlock()
	for _, f := range rest {
		f.b.Release(nil)
	}
}
