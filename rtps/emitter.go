package rtps

import (
	"net/netip"
	"sync"

	"github.com/gobag/gobag/rtps/wire"
)

const (
	emitMsgs    = 32       // datagrams handed to the system at once
	emitHeaders = 16 << 10 // bytes of headers of those
	emitParts   = 256
	segmentRun  = 32 << 10 // bytes of datagrams of the same size handed over as one
	datagramTax = 800      // bytes that a socket's buffer is charged for a datagram beside its payload, about
	segmentMax  = 64       // and how many
)

var zeros [4]byte

// target is where a sample goes: one reader, or all readers of a participant.
type target struct {
	dst            netip.AddrPort
	prefix         wire.Prefix
	reader         wire.EntityID
	frame          int // bytes of a fragment that nothing on the way cuts
	fragment       int // bytes of a fragment of the sample at hand
	pacer          *pacer
	hbStart, hbEnd int // HEARTBEATs behind the sample, in job.beats
}

// emitter turns samples into datagrams without copying payloads, and sends them in batches and paced. Its memory is used
// again and again.
type emitter struct {
	p    *Participant
	msgs []outMsg
	bufs [][]byte
	hdr  []byte
	sent uint64 // datagrams
}

var emitters = sync.Pool{New: func() any {
	return &emitter{msgs: make([]outMsg, 0, emitMsgs), bufs: make([][]byte, 0, emitParts), hdr: make([]byte, 0, emitHeaders)}
}}

// room makes sure that the next message fits, by sending what there is.
func (e *emitter) room(headers, parts int) {
	if len(e.msgs) == cap(e.msgs) || len(e.hdr)+headers > cap(e.hdr) || len(e.bufs)+parts > cap(e.bufs) {
		e.flush()
	}
}

// flush sends what was collected.
func (e *emitter) flush() {
	if len(e.msgs) > 0 {
		_ = e.p.link.sendBatch(e.msgs) // counted by the link; reliable readers ask again
	}
	clear(e.bufs)
	clear(e.msgs)
	e.msgs, e.bufs, e.hdr = e.msgs[:0], e.bufs[:0], e.hdr[:0]
}

// pace waits until n more bytes may go to the target.
func (e *emitter) pace(t *target, n int) {
	if d := t.pacer.take(n, e.p.monotonic()); d > 0 {
		e.flush()
		e.p.pause(d)
	}
}

// begin starts a datagram for a sample.
func (e *emitter) begin(t *target, s *wsample) {
	e.hdr = wire.AppendHeader(e.hdr, e.p.header)
	if t.prefix != (wire.Prefix{}) {
		e.hdr = wire.AppendInfoDst(e.hdr, t.prefix)
	}
	e.hdr = wire.AppendInfoTS(e.hdr, wire.TimestampFromUnix(s.time))
}

// add completes the parts of a datagram: what was put into the headers since start, payload, padding, tail.
func (e *emitter) add(start int, payload []byte, pad int, tail []byte) {
	e.bufs = append(e.bufs, e.hdr[start:len(e.hdr):len(e.hdr)], payload)
	if pad > 0 {
		e.bufs = append(e.bufs, zeros[:pad])
	}
	if len(tail) > 0 {
		e.bufs = append(e.bufs, tail)
	}
}

// message makes one message of the parts from first on.
func (e *emitter) message(t *target, first, segment int) {
	e.msgs = append(e.msgs, outMsg{dst: t.dst, bufs: e.bufs[first:len(e.bufs):len(e.bufs)], segment: segment})
}

// sample sends a whole sample, with tail (HEARTBEATs) in its last datagram.
func (e *emitter) sample(t *target, w wire.EntityID, s *wsample, tail []byte) {
	if len(s.data) > t.fragment {
		n := uint32((len(s.data) + t.fragment - 1) / t.fragment)
		e.fragments(t, w, s, 0, n-1, nil)
		e.fragments(t, w, s, n-1, n, tail)
		return
	}
	e.room(headRoom, 4)
	e.pace(t, len(s.data)+datagramTax)
	start, first := len(e.hdr), len(e.bufs)
	e.begin(t, s)
	var pad int
	d := wire.Data{Reader: t.reader, Writer: w, Seq: s.seq}
	if s.inline != nil {
		d.InlineQoS = *s.inline
	}
	e.hdr, pad = wire.AppendDataHead(e.hdr, &d, len(s.data))
	e.add(start, s.data, pad, tail)
	e.message(t, first, 0)
	e.sent++
}

// fragments sends the fragments from a to b-1, counted from 0, with tail in each datagram that is not of full size.
func (e *emitter) fragments(t *target, w wire.EntityID, s *wsample, a, b uint32, tail []byte) {
	for a < b {
		run := uint32(1)
		head := headerBytes + infoDstBytes + infoTSBytes + fragHeadBytes
		segment := head + t.fragment
		if len(tail) == 0 && s.inline == nil && t.fragment <= t.frame && e.p.link.segmentation() {
			full := uint32(len(s.data)/t.fragment) - min(a, uint32(len(s.data)/t.fragment))
			run = max(1, min(b-a, segmentMax, uint32(segmentRun/segment), full))
		}
		e.room(int(run)*headRoom, int(run)*2+2)
		e.pace(t, int(run)*(t.fragment+datagramTax*max(1, t.fragment/max(t.frame, 1))))
		first := len(e.bufs)
		for f := a; f < a+run; f++ {
			from := int(f) * t.fragment
			payload := s.data[from:min(from+t.fragment, len(s.data))]
			start := len(e.hdr)
			e.begin(t, s)
			var pad int
			d := wire.DataFrag{Reader: t.reader, Writer: w, Seq: s.seq, First: f + 1, Count: 1, Size: uint16(t.fragment), SampleSize: uint32(len(s.data))}
			if s.inline != nil {
				d.InlineQoS = *s.inline
			}
			e.hdr, pad = wire.AppendDataFragHead(e.hdr, &d, len(payload))
			e.add(start, payload, pad, tail)
		}
		if run == 1 {
			segment = 0
		}
		e.message(t, first, segment)
		e.sent += uint64(run)
		a += run
	}
}

// Sizes of what begin and AppendDataFragHead append.
const (
	headerBytes   = 20
	infoDstBytes  = 16
	infoTSBytes   = 12
	fragHeadBytes = 36
	relatedBytes  = 60 // the inline parameters of a related sample

	headRoom = 192 // all of them and some
)
