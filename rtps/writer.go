package rtps

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

const (
	defaultWindow   = 8 << 20
	defaultBlocking = 100 * time.Millisecond
	localFragment   = 60000 // the MTU of lo is 65536
	remoteFragment  = 1344  // with all headers within an Ethernet frame
	maxPayload      = 1 << 30
	heartbeatBytes  = 256 << 10 // a HEARTBEAT goes along at least this often
	heartbeatWait   = 10 * time.Millisecond
)

// Writer sends a topic. Safe for concurrent use.
type Writer struct {
	p      *Participant
	guid   GUID
	entity wire.EntityID
	cfg    WriterConfig

	writing sync.Mutex // one Write at a time, so that sequence numbers have the order of the calls

	sending sync.Mutex // one sender at a time, so that the wire has the order of the sequence numbers. Taken before the participant's mutex
	job     job        // guarded by sending
	kick    chan struct{}
	quit    chan struct{}
	ended   chan struct{} // the goroutine is gone

	// Guarded by the participant's mutex.
	sinks     map[GUID]*sink
	refused   map[GUID]netip.AddrPort // readers that WriterConfig.Accept turned away, and where they are
	groups    []group
	stale     bool // groups is to be made anew
	hist      history
	last      int64 // written
	sent      int64 // handed to the socket for every ready reader, builtin readers included
	acked     int64 // sent and acknowledged by every reliable reader
	unacked   int   // bytes of (acked, last]
	hbCount   uint32
	hbAt      mono // last HEARTBEAT that went along with data
	hbBytes   int  // sent since
	busy      bool // in the middle of a sample
	progress  chan struct{}
	waiting   int // on progress
	timer     timer
	gate      timer // a reader that does not acknowledge is not waited for any longer
	lively    timer // manual liveliness
	closed    bool
	count     WriterInfo
	post      timer          // builtin: new samples are sent
	posted    mono           // builtin: when they were last
	keyedSeqs map[GUID]int64 // builtin: sequence number of the latest sample of a key
}

// NewWriter makes a writer and announces it at once.
func (p *Participant) NewWriter(cfg WriterConfig) (*Writer, error) {
	if err := checkNames(cfg.Topic, cfg.Type, cfg.UserData); err != nil {
		return nil, fmt.Errorf("new writer: %w", err)
	}
	if cfg.FragmentSize%4 != 0 || cfg.FragmentSize != 0 && (cfg.FragmentSize < 64 || cfg.FragmentSize > localFragment) {
		return nil, fmt.Errorf("new writer %s: fragment size %d: a multiple of 4 from 64 to %d expected", cfg.Topic, cfg.FragmentSize, localFragment)
	}
	if cfg.Window < 0 {
		return nil, fmt.Errorf("new writer %s: window of %d bytes", cfg.Topic, cfg.Window)
	}
	cfg.QoS.Representation = representations(cfg.QoS.Representation)[:1]
	cfg.UserData = bytes.Clone(cfg.UserData)
	p.lock()
	defer p.unlock()
	if p.closed {
		return nil, fmt.Errorf("new writer %s: %w", cfg.Topic, ErrClosed)
	}
	id, err := p.newEntity(wire.KindWriterKeyless)
	if err != nil {
		return nil, fmt.Errorf("new writer %s: %w", cfg.Topic, err)
	}
	w := newWriter(p, id, cfg)
	p.writers[id] = w
	p.publish(w.endpoint(), true)
	for _, e := range p.topics[cfg.Topic] {
		if !e.Writer {
			w.consider(e)
		}
	}
	p.dirty = true
	p.wg.Go(w.run)
	w.startLiveliness()
	return w, nil
}

func newWriter(p *Participant, id wire.EntityID, cfg WriterConfig) *Writer {
	if cfg.Window == 0 {
		cfg.Window = defaultWindow
	}
	if cfg.QoS.MaxBlocking == 0 {
		cfg.QoS.MaxBlocking = defaultBlocking
	}
	if cfg.QoS.Depth < 1 {
		cfg.QoS.Depth = 1
	}
	w := &Writer{p: p, guid: wire.MakeGUID(p.prefix, id), entity: id, cfg: cfg, sinks: map[GUID]*sink{}, refused: map[GUID]netip.AddrPort{},
		kick: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}), progress: make(chan struct{}),
		keyedSeqs: map[GUID]int64{}}
	w.hist.first = 1
	w.timer.fire, w.post.fire = w.onTimer, w.postNew
	w.gate.fire = func(mono) { w.wake() }
	return w
}

func (w *Writer) builtin() bool { return w.cfg.Topic == "" }

func (w *Writer) endpoint() Endpoint {
	return Endpoint{GUID: w.guid, Writer: true, Local: true, Topic: w.cfg.Topic, Type: w.cfg.Type, QoS: w.cfg.QoS, UserData: w.cfg.UserData, Vendor: wire.VendorGobag}
}

// GUID identifies the writer.
func (w *Writer) GUID() GUID { return w.guid }

// Write sends a payload, encapsulation header included, with its source time in nanoseconds since the Unix epoch, and
// returns its sequence number. payload may be reused when it returns.
//
// A sample that fits one datagram is normally on its way when Write returns; a larger one is sent by the writer's
// goroutine. While more than Window bytes are unsent or unacknowledged, Write blocks, at most for QoS.MaxBlocking; then it
// gives up the oldest sample and counts it as dropped.
func (w *Writer) Write(payload []byte, sourceTime int64) (seq int64, err error) {
	return w.write(payload, sourceTime, nil)
}

// WriteRelated is Write for a sample that says which other sample it belongs to. It needs WriterConfig.Related.
func (w *Writer) WriteRelated(payload []byte, sourceTime int64, id SampleID) (seq int64, err error) {
	if !w.cfg.Related {
		return 0, fmt.Errorf("write %s: the writer was not made for related samples", w.cfg.Topic)
	}
	return w.write(payload, sourceTime, &wire.InlineQoS{HasRelated: true, RelatedGUID: id.Writer, RelatedSeq: id.Seq})
}

func (w *Writer) write(payload []byte, sourceTime int64, inline *wire.InlineQoS) (seq int64, err error) {
	if len(payload) == 0 || len(payload) > maxPayload {
		return 0, fmt.Errorf("write %s: payload of %d bytes, 1 to %d expected", w.cfg.Topic, len(payload), maxPayload)
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	p := w.p
	var data []byte
	var buf *buffer
	if len(payload) > slabPayload { // not while everyone waits
		buf = p.pool.get(len(payload))
		data = append(buf.b[:0], payload...)
	}
	p.lock()
	if err := w.awaitSpace(len(payload)); err != nil {
		p.unlock()
		if buf != nil {
			buf.release()
		}
		return 0, fmt.Errorf("write %s: %w", w.cfg.Topic, err)
	}
	if buf == nil {
		data, buf, _ = p.fill.copy(payload)
	}
	w.last++
	seq = w.last
	w.hist.push(wsample{seq: seq, time: sourceTime, at: p.now, buf: buf, data: data, inline: inline})
	w.unacked += len(data)
	w.count.Sent++
	if w.sent != seq-1 || len(data) > localFragment || !w.sending.TryLock() {
		p.unlock()
		w.wake()
		return seq, nil
	}
	w.sendInline()
	w.sending.Unlock()
	return seq, nil
}

// sendInline sends the sample just written on the caller's goroutine if that takes one datagram for each reader, else
// leaves it to the writer's own. The participant's mutex is held on entry and released.
func (w *Writer) sendInline() {
	p := w.p
	s := w.hist.at(w.last)
	wait := w.gated(len(s.data))
	for i := range w.currentGroups() {
		wait = wait || len(s.data) > w.groups[i].sinks[0].cut.frame
	}
	if wait {
		p.unlock()
		w.wake()
		return
	}
	job := w.freshJob(s)
	w.sent = s.seq
	w.afterSend()
	p.unlock()
	job.send()
	job.release()
}

// awaitSpace waits until n more bytes fit the window, or makes room. The participant's mutex is held, but not while
// waiting.
func (w *Writer) awaitSpace(n int) error {
	p := w.p
	if w.closed {
		return ErrClosed
	}
	if w.unacked == 0 || w.unacked+n <= w.cfg.Window {
		return nil
	}
	limit := time.NewTimer(w.cfg.QoS.MaxBlocking)
	defer limit.Stop()
	began := p.now
	for w.unacked > 0 && w.unacked+n > w.cfg.Window {
		progress := w.progress
		w.waiting++
		p.unlock()
		expired := false
		select {
		case <-progress:
		case <-limit.C:
			expired = true
		}
		p.lock()
		w.waiting--
		if w.closed {
			return ErrClosed
		}
		if expired && p.now.sub(began) > w.cfg.QoS.MaxBlocking+maxStall {
			began = p.now // the process stood still, acknowledgements may wait in the socket
			limit.Reset(w.cfg.QoS.MaxBlocking)
			continue
		}
		if expired {
			for w.unacked > 0 && w.unacked+n > w.cfg.Window {
				w.giveUpOldest()
			}
			w.trim()
		}
	}
	return nil
}

// giveUpOldest drops the oldest sample that is not acknowledged. Readers learn it from the next HEARTBEAT.
func (w *Writer) giveUpOldest() {
	seq := w.acked + 1
	s := w.hist.at(seq)
	if s == nil {
		w.acked = seq // cannot be: unacked > 0
		return
	}
	n := len(s.data)
	w.unacked -= n
	w.count.Dropped++
	w.acked = seq
	w.sent = max(w.sent, seq)
	for w.hist.first <= seq {
		w.hist.pop()
	}
	for _, k := range w.sinks {
		if k.acked < seq {
			k.acked = seq
			k.landed(n)
		}
	}
}

// trim moves what every reliable reader has acknowledged out of the window and out of the history.
func (w *Writer) trim() {
	low, silent := w.sent, w.sent
	for _, k := range w.sinks {
		switch {
		case !k.reliable:
		case k.counts(w.p.now):
			low = min(low, k.acked)
		default:
			silent = min(silent, k.acked)
		}
	}
	moved := low > w.acked
	for w.acked < low {
		w.acked++
		if s := w.hist.at(w.acked); s != nil && !w.builtin() {
			w.unacked -= len(s.data)
			if w.acked > silent {
				w.count.Dropped++
				w.forget(len(s.data))
			}
		}
	}
	for w.hist.len() > 0 && w.hist.first <= w.acked && !w.retained() {
		w.hist.pop()
	}
	if moved && w.waiting > 0 {
		close(w.progress)
		w.progress = make(chan struct{})
	}
}

// forget takes the sample at w.acked from the flight of the readers that have not acknowledged it.
func (w *Writer) forget(n int) {
	for _, k := range w.sinks {
		if k.reliable && k.acked < w.acked {
			k.landed(n)
		}
	}
}

// retained reports whether the oldest sample is kept for readers to come, no longer than its lifespan. A transient-local writer that keeps all keeps
// as much as fits the window.
func (w *Writer) retained() bool {
	if w.builtin() {
		return w.hist.at(w.hist.first) != nil && w.hist.at(w.hist.first).keep
	}
	if w.cfg.QoS.Durability == Volatile {
		return false
	}
	if s := w.hist.at(w.hist.first); s != nil && w.p.now.sub(s.at) >= limit(w.cfg.QoS.Lifespan) {
		return false
	}
	if w.cfg.QoS.History == KeepAll {
		return w.hist.bytes <= w.cfg.Window
	}
	return w.hist.len() <= w.cfg.QoS.Depth
}

// WaitAcked waits until every sample written before has been sent and acknowledged by all matched reliable readers.
func (w *Writer) WaitAcked(ctx context.Context) error {
	p := w.p
	p.lock()
	target := w.last
	for w.acked < target && !w.closed {
		progress := w.progress
		w.waiting++
		n := target - w.acked
		p.unlock()
		var err error
		select {
		case <-progress:
		case <-ctx.Done():
			err = ctx.Err()
		}
		p.lock()
		w.waiting--
		if err != nil {
			p.unlock()
			return fmt.Errorf("wait for acknowledgements of %s: %d samples left: %w", w.cfg.Topic, n, err)
		}
	}
	closed := w.closed && w.acked < target
	p.unlock()
	if closed {
		return fmt.Errorf("wait for acknowledgements of %s: %w", w.cfg.Topic, ErrClosed)
	}
	return nil
}

// Stats describes the writer. It keeps working after Close.
func (w *Writer) Stats() WriterInfo {
	p := w.p
	p.lock()
	defer p.unlock()
	st := w.count
	st.Matched = len(w.sinks)
	for _, k := range w.sinks {
		if k.reliable {
			st.Reliable++
			if k.ready {
				st.Ready++
			}
		}
	}
	st.Unacked = int(w.last - w.acked)
	if !w.closed {
		st.Mismatches = p.mismatches(w.cfg.Topic, false, func(e *endpoint) string { return unfit(e, w.cfg.Type, w.cfg.QoS, e.QoS) })
	}
	return st
}

// Close waits up to a second for acknowledgements and withdraws the writer. Idempotent.
func (w *Writer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), lingering)
	err := w.WaitAcked(ctx)
	cancel()
	p := w.p
	p.lock()
	if w.closed {
		p.unlock()
		<-w.ended
		return nil
	}
	w.shut()
	delete(p.writers, w.entity)
	p.withdraw(w.guid, true)
	p.dirty = true
	p.unlock()
	<-w.ended
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("close writer: %w", err)
	}
	return nil
}

// shut ends sending. The participant's mutex is held.
func (w *Writer) shut() {
	if w.closed {
		return
	}
	w.closed = true
	for _, k := range w.sinks {
		w.unmatch(k)
	}
	clear(w.refused)
	w.p.timers.stop(&w.timer)
	w.p.timers.stop(&w.gate)
	w.p.timers.stop(&w.post)
	w.p.timers.stop(&w.lively)
	if !w.builtin() {
		for w.hist.len() > 0 {
			w.hist.pop()
		}
	}
	close(w.quit)
	if w.waiting > 0 {
		close(w.progress)
		w.progress = make(chan struct{})
	}
}

// wake tells the writer's goroutine that there is something to send.
func (w *Writer) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// run sends what is queued and what is asked for until the writer closes.
func (w *Writer) run() {
	defer close(w.ended)
	for {
		w.sending.Lock()
		more := w.sendNext()
		w.sending.Unlock()
		if more {
			continue
		}
		select {
		case <-w.kick:
		case <-w.quit:
			return
		}
	}
}
