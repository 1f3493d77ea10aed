package ros1

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
	"github.com/bluenviron/goroslib/v2/pkg/prototcp"

	"github.com/gobag/gobag/ros"
)

// link keeps up the connection to one publisher.
type link struct {
	ts     *topicSub
	uri    string
	cancel context.CancelFunc

	named   atomic.Bool            // the master names the publisher
	poke    chan struct{}          // it has said something about the topic
	refused atomic.Pointer[string] // why nothing is received of it
	warned  bool                   // of a message that is too large

	largest int // bytes of the largest message so far: lengths up to it are believed
}

// writer counts what came over one connection.
type writer struct {
	id             ros.EndpointID
	node           string
	open           atomic.Bool
	received, lost atomic.Uint64
}

// maxWriters bounds the connections of a topic that are counted one by one.
const maxWriters = 1 << 10

// run keeps the connection open as long as the master names the publisher.
func (l *link) run(ctx context.Context) {
	backoff := firstBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := l.once(ctx)
		if ctx.Err() != nil || !l.named.Load() {
			break
		}
		if err != nil && !errors.Is(err, io.EOF) {
			l.ts.n.o.Logger.Debug("connection to a publisher ended, trying again", "topic", l.ts.name, "node", l.uri, "err", err)
		}
		if time.Since(began) > lastBackoff {
			backoff = firstBackoff
		}
		t := time.NewTimer(backoff)
		backoff = min(2*backoff, lastBackoff)
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-l.poke:
			backoff = firstBackoff
		}
		t.Stop()
	}
	l.cancel()
	l.ts.mu.Lock()
	if l.ts.links[l.uri] == l {
		delete(l.ts.links, l.uri)
	}
	l.ts.mu.Unlock()
}

// once connects and receives until the connection ends.
func (l *link) once(ctx context.Context) error {
	c, br, w, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // it is over in any case
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer w.open.Store(false)
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return l.receive(br, w)
}

// connect asks the publisher for an address and shakes hands there. A few at a time: the servers of rospy take five
// connections that wait, and drop further ones.
func (l *link) connect(ctx context.Context) (c net.Conn, br *bufio.Reader, w *writer, err error) {
	ts := l.ts
	gate := ts.n.gate(l.uri)
	select {
	case gate <- struct{}{}:
		defer func() { <-gate }()
	case <-ctx.Done():
		return nil, nil, nil, ctx.Err()
	}
	address, err := ts.n.publisherAddress(l.uri, ts.name)
	if err != nil {
		return nil, nil, nil, err
	}
	d := net.Dialer{Timeout: dialTimeout}
	if c, err = d.DialContext(ctx, "tcp", address); err != nil {
		return nil, nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	if br, w, err = l.greet(c); err != nil {
		_ = c.Close() // err says why
		return nil, nil, nil, err
	}
	return c, br, w, nil
}

// greet exchanges headers.
func (l *link) greet(c net.Conn) (*bufio.Reader, *writer, error) {
	ts := l.ts
	if err := c.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return nil, nil, err
	}
	if err := protocommon.HeaderEncode(c, &prototcp.HeaderSubscriber{Callerid: ts.n.name, Topic: ts.name, Type: "*", Md5sum: "*", TcpNodelay: 1}); err != nil {
		return nil, nil, err
	}
	br := bufio.NewReaderSize(c, 64<<10)
	h, err := readHeader(br)
	if err != nil {
		return nil, nil, err
	}
	if text := h["error"]; text != "" {
		return nil, nil, l.refuse(fmt.Sprintf("the publisher refuses: %.200s", text))
	}
	w, err := l.meet(h)
	return br, w, err
}

// readHeader reads a connection header.
func readHeader(br *bufio.Reader) (protocommon.HeaderRaw, error) {
	if _, err := br.Peek(4); err != nil { // the decoder does not wait for all of its length
		return nil, err
	}
	return protocommon.HeaderRawDecode(br)
}

// refuse notes why nothing is received.
func (l *link) refuse(reason string) error {
	if old := l.refused.Swap(&reason); old == nil || *old != reason {
		l.ts.n.o.Logger.Warn("a publisher is not received", "topic", l.ts.name, "node", l.uri, "reason", reason)
	}
	return errors.New(reason)
}

// meet takes over what the publisher says of itself.
func (l *link) meet(h protocommon.HeaderRaw) (*writer, error) {
	ts := l.ts
	typ, md5, node := h["type"], h["md5sum"], h["callerid"]
	if typ == "*" {
		typ = ""
	}
	if md5 == "*" {
		md5 = ""
	}
	if node == "" {
		node = l.uri
	}
	if typ != "" && ts.typ != "" && typ != ts.typ {
		return nil, l.refuse(fmt.Sprintf("type: offered %.200s, requested %s", typ, ts.typ))
	}
	ts.mu.Lock()
	if ts.md5 == "" {
		ts.md5 = md5
	}
	if md5 != "" && md5 != ts.md5 {
		want := ts.md5
		ts.mu.Unlock()
		return nil, l.refuse(fmt.Sprintf("md5sum: offered %.64s, received is %s: these are two definitions of %s", md5, want, typ))
	}
	l.refused.Store(nil)
	w := ts.writer(node)
	w.open.Store(true)
	ts.mu.Unlock()
	if md5 != "" && typ != "" {
		ts.n.learn(typ, md5, h["message_definition"])
	}
	ts.n.graph.learn(node, ts.name, offer{typ, md5, h["latching"] == "1"})
	return w, nil
}

// writer returns the counter of a new connection to a node; ts.mu is held.
func (ts *topicSub) writer(node string) *writer {
	generation := 0
	var last *writer
	for _, w := range ts.writers {
		if w.node == node {
			generation++
			last = w
		}
	}
	if len(ts.writers) >= maxWriters && last != nil {
		return last
	}
	w := &writer{node: node, id: endpointID(kindPublisher, node, ts.name, generation)}
	ts.writers = append(ts.writers, w)
	return w
}

// receive hands every message over, until the connection ends.
func (l *link) receive(br *bufio.Reader, w *writer) error {
	ts := l.ts
	var slab *block
	used := 0
	defer func() {
		if slab != nil {
			slab.Release(nil)
		}
	}()
	for {
		head, err := br.Peek(4)
		if err != nil {
			return err
		}
		n := int(binary.LittleEndian.Uint32(head))
		if _, err := br.Discard(4); err != nil {
			return err
		}
		s := ros.Sample{Writer: w.id}
		switch {
		case n > ts.n.o.MaxMessage:
			w.lost.Add(1)
			if !l.warned {
				l.warned = true
				ts.n.o.Logger.Warn("a message is too large and is lost", "topic", ts.name, "node", w.node, "bytes", n, "limit", ts.n.o.MaxMessage)
			}
			if _, err := io.CopyN(io.Discard, br, int64(n)); err != nil {
				return err
			}
			continue
		case n <= slabMessage:
			if slab == nil || slabSize-used < n {
				if slab != nil {
					slab.Release(nil)
				}
				slab, used = ts.n.pools.slab(), 0
			}
			s.Data = slab.buf[used : used+n : used+n]
			if _, err := io.ReadFull(br, s.Data); err != nil {
				return err
			}
			used += (n + 7) &^ 7
			used = min(used, slabSize)
			slab.refs.Add(1)
			s.Owner, s.Cost = slab, n+sampleCost
		default:
			b, err := l.large(br, n)
			if err != nil {
				return err
			}
			s.Data, s.Owner, s.Cost = b.buf[:n:n], b, cap(b.buf)+sampleCost
		}
		s.RecvTime = ts.n.o.Now()
		s.SourceTime = s.RecvTime
		w.received.Add(1)
		ts.deliver(s)
	}
}

// large reads a message into a block of its own. Memory for a length that is larger than any before grows with the data.
func (l *link) large(br *bufio.Reader, n int) (*block, error) {
	if n <= max(l.largest, trustedStart) {
		b := l.ts.n.pools.get(n)
		if _, err := io.ReadFull(br, b.buf[:n]); err != nil {
			b.Release(nil)
			return nil, err
		}
		return b, nil
	}
	buf := make([]byte, trustedStart)
	for at := 0; ; {
		if _, err := io.ReadFull(br, buf[at:]); err != nil {
			return nil, err
		}
		if at = len(buf); at == n {
			break
		}
		grown := make([]byte, min(2*at, n))
		copy(grown, buf)
		buf = grown
	}
	l.largest = n
	b := &block{buf: buf}
	b.refs.Store(1)
	return b, nil
}
