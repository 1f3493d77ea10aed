package rtps

import (
	"net/netip"
	"sync"

	"github.com/gobag/gobag/rtps/wire"
)

// outbox collects the small messages that the state machine wants to send while the participant's mutex is held. They
// go out when it is released. Messages in a row to the same participant share a datagram.
type outbox struct {
	buf  []byte
	msgs []outboxMsg
}

type outboxMsg struct {
	dst        netip.AddrPort
	to         wire.Prefix // zero: no INFO_DST
	start, end int
}

// outboxLimit is the datagram size up to which messages are joined: nothing on the way fragments it.
const outboxLimit = 1400

// open returns the buffer to append submessages for the participant to at dst; size is about how much will be appended.
// close must follow with the result.
func (o *outbox) open(p *Participant, dst netip.AddrPort, to wire.Prefix, size int) []byte {
	if n := len(o.msgs); n > 0 {
		m := &o.msgs[n-1]
		if m.dst == dst && m.to == to && m.end-m.start+size <= outboxLimit {
			return o.buf
		}
	}
	start := len(o.buf)
	o.buf = wire.AppendHeader(o.buf, p.header)
	if to != (wire.Prefix{}) {
		o.buf = wire.AppendInfoDst(o.buf, to)
	}
	o.msgs = append(o.msgs, outboxMsg{dst: dst, to: to, start: start})
	return o.buf
}

func (o *outbox) close(b []byte) {
	o.buf = b
	o.msgs[len(o.msgs)-1].end = len(b)
}

func (o *outbox) empty() bool { return len(o.msgs) == 0 }

func (o *outbox) reset() {
	if cap(o.buf) > 1<<20 {
		o.buf = nil
	}
	o.buf, o.msgs = o.buf[:0], o.msgs[:0]
}

// send sends everything. Errors are counted by the link; the protocol repeats what matters.
func (o *outbox) send(l link) {
	for _, m := range o.msgs {
		_ = l.Send(m.dst, o.buf[m.start:m.end])
	}
}

var outboxes = sync.Pool{New: func() any { return new(outbox) }}

// sendQueue sends outboxes in the order in which they were filled, though several goroutines release the participant's
// mutex: a count that overtakes a lower one makes the peer ignore the lower one's message.
type sendQueue struct {
	mu    sync.Mutex
	idle  sync.Cond // signalled when everything is sent; L is mu
	queue []*outbox
	busy  bool // a goroutine is sending
}

// maxSends is how many outboxes may wait while the system takes nothing; then those who bring more wait too.
const maxSends = 64

func newSendQueue() *sendQueue {
	q := &sendQueue{}
	q.idle.L = &q.mu
	return q
}

// add appends an outbox. The participant's mutex is held: it makes the order.
func (q *sendQueue) add(o *outbox) {
	q.mu.Lock()
	q.queue = append(q.queue, o)
	q.mu.Unlock()
}

// send sends what is queued, unless another goroutine is at it: that one sends it then.
func (q *sendQueue) send(l link) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy {
		for len(q.queue) > maxSends {
			q.idle.Wait()
		}
		return
	}
	q.busy = true
	for len(q.queue) > 0 {
		o := q.queue[0]
		n := copy(q.queue, q.queue[1:])
		q.queue[n] = nil
		q.queue = q.queue[:n]
		q.mu.Unlock()
		o.send(l)
		o.reset()
		outboxes.Put(o)
		q.mu.Lock()
	}
	q.busy = false
	q.idle.Broadcast()
}

// wait returns when everything that was added before is sent.
func (q *sendQueue) wait() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.busy || len(q.queue) > 0 { // whoever added it sends it
		q.idle.Wait()
	}
}
