package rtps

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/rtps/wire"
)

// poolLimit bounds the free memory kept for reuse, in bytes.
const poolLimit = 16 << 20

// Participant takes part in a DDS domain. Safe for concurrent use.
type Participant struct {
	cfg      Config
	log      *slog.Logger
	header   wire.Header
	prefix   wire.Prefix
	began    time.Time // origin of mono
	link     link
	sends    *sendQueue
	pool     *pool
	lanes    []netip.AddrPort    // further addresses of ours on this host
	askLimit int                 // bytes of the socket's buffer that fragments asked for at once may fill
	pause    func(time.Duration) // between datagrams
	wg       sync.WaitGroup
	stop     context.CancelFunc
	done     context.Context

	datagrams, bytes, malformed, refused atomic.Uint64

	mu        sync.Mutex // everything below
	dec       wire.Decoder
	scratch   meta // of the sample at hand; never two at once
	fill      filler
	timers    timers
	out       *outbox
	laned     []byte // scratch of announcementFor
	now       mono   // of the batch or timer at hand
	wall      int64  // wall clock of the same moment
	held      int64  // bytes of incomplete and out-of-order samples
	reclaimed mono   // last look for incomplete samples to give up
	peers     map[wire.Prefix]*peer
	topics    map[string]map[GUID]*endpoint // remote endpoints by topic
	endpoints int                           // of all peers
	announced int                           // bytes of names and user data of all peers
	readers   map[wire.EntityID]*Reader
	writers   map[wire.EntityID]*Writer
	sources   map[GUID][]*source // states of our readers for a remote writer
	due       []*source          // sources that owe an answer when the batch is done
	early     map[GUID]int64     // lowest sequence number seen of writers not discovered yet
	pacers    map[netip.AddrPort]*pacer
	lastKey   uint32 // of our user entities
	changed   chan struct{}
	awake     chan struct{} // the announcer begins anew
	dirty     bool          // closes changed at unlock
	closed    bool

	pubReader, subReader, liveReader *Reader
	pubWriter, subWriter, liveWriter *Writer
	liveTimer                        timer
	closing                          sync.Once
	closeErr                         error
}

// NewParticipant joins the domain: it binds the sockets and announces itself at once.
func NewParticipant(cfg Config) (*Participant, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	systemClock := cfg.Now == nil
	cfg = cfg.withDefaults()
	p := &Participant{
		cfg: cfg, log: cfg.Logger, began: time.Now(), pool: newPool(poolLimit), timers: newTimers(),
		peers: map[wire.Prefix]*peer{}, topics: map[string]map[GUID]*endpoint{}, readers: map[wire.EntityID]*Reader{}, writers: map[wire.EntityID]*Writer{},
		sources: map[GUID][]*source{}, early: map[GUID]int64{}, pacers: map[netip.AddrPort]*pacer{}, changed: make(chan struct{}), awake: make(chan struct{}, 1), out: new(outbox), sends: newSendQueue(),
	}
	p.fill.pool = p.pool
	// Fresh at every start: peers keep what they know of an old prefix. It must not begin with a vendor's id.
	if _, err := rand.Read(p.prefix[:]); err != nil {
		return nil, fmt.Errorf("participant prefix: %w", err)
	}
	copy(p.prefix[:], wire.VendorGobag[:])
	p.header = wire.Header{Version: wire.Protocol, Vendor: wire.VendorGobag, Prefix: p.prefix}
	if cfg.Transport != nil {
		p.link, p.pause = plainLink{cfg.Transport}, time.Sleep // simulated time does not pass in a system call
	} else {
		l, err := newUDPLink(cfg)
		if err != nil {
			return nil, fmt.Errorf("new participant: %w", err)
		}
		p.link, p.pause = l, pause
		if systemClock { // the kernel's stamps are of the same clock
			l.stamped = p.receiveStamped
		}
	}
	p.done, p.stop = context.WithCancel(context.Background())
	p.lanes = p.link.lanes()
	p.addBuiltin()
	var s Stats
	p.link.stats(&s)
	p.askLimit = 512 << 10
	if s.RecvBuffer > 0 {
		p.askLimit = max(64<<10, s.RecvBuffer/2)
	}
	if err := p.link.Start(p.receive); err != nil {
		return nil, fmt.Errorf("new participant: %w", errors.Join(err, p.link.Close()))
	}
	p.wg.Go(p.runTimers)
	p.wg.Go(p.runAnnouncer)
	return p, nil
}

// GUID identifies the participant.
func (p *Participant) GUID() GUID { return wire.MakeGUID(p.prefix, wire.EntityParticipant) }

// monotonic is the time now.
func (p *Participant) monotonic() mono { return mono(time.Since(p.began)) + 1 }

// lock takes the mutex and reads the clocks.
func (p *Participant) lock() {
	p.mu.Lock()
	p.now, p.wall = p.monotonic(), p.cfg.Now()
}

// unlock answers what is due, releases the mutex and sends what was collected.
func (p *Participant) unlock() {
	p.answerDue()
	if p.dirty {
		p.dirty = false
		close(p.changed)
		p.changed = make(chan struct{})
	}
	if p.out.empty() {
		p.mu.Unlock()
		return
	}
	p.sends.add(p.out)
	p.out = outboxes.Get().(*outbox)
	p.mu.Unlock()
	p.sends.send(p.link)
}

// receive takes a batch of datagrams from the link.
func (p *Participant) receive(datagrams [][]byte) { p.receiveStamped(datagrams, nil) }

// receiveStamped is receive with the times when the datagrams came, 0 where it is not known; stamps may be nil.
func (p *Participant) receiveStamped(datagrams [][]byte, stamps []int64) {
	p.lock()
	defer p.unlock()
	if p.closed {
		return
	}
	for i, b := range datagrams {
		if stamps != nil && stamps[i] != 0 {
			p.wall = stamps[i]
		}
		p.datagrams.Add(1)
		p.bytes.Add(uint64(len(b)))
		if len(b) >= wire.HeaderSize {
			if q := p.peers[wire.Prefix(b[8:20])]; q != nil {
				q.seen = p.now
			}
		}
		if err := p.dec.Decode(b, p); err != nil && !errors.Is(err, wire.ErrNotRTPS) {
			p.malformed.Add(1)
		}
	}
}

// maxIdle is how long the timers sleep at most, and maxStall how late they wake up before it is taken that the whole
// process stood still.
const (
	maxIdle  = 500 * time.Millisecond
	maxStall = 500 * time.Millisecond
)

// runTimers fires timers until the participant closes.
func (p *Participant) runTimers() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	var due mono
	for {
		p.lock()
		if due != 0 && p.now.sub(due) > maxStall {
			p.resumed()
		}
		due = min(p.timers.run(p.now), p.now.add(maxIdle))
		wait := due.sub(p.now)
		p.unlock()
		t.Reset(wait)
		select {
		case <-t.C:
		case <-p.timers.wake:
		case <-p.done.Done():
			return
		}
	}
}

// resumed lets every lease and every reader's patience begin anew after the process was stopped: the peers' messages of
// that time are still in the sockets. Peers that have given us up meanwhile are told at once that we are back.
func (p *Participant) resumed() {
	p.announceToPeers()
	select {
	case p.awake <- struct{}{}:
	default:
	}
	for _, q := range p.peers {
		q.seen = p.now
	}
	for _, w := range p.writers {
		for _, k := range w.sinks {
			if k.behind != 0 {
				k.behind = p.now
			}
			if !k.ready {
				k.matched = p.now
			}
		}
	}
}

// How often a participant announces itself: some times in a row at the start, and when it was stopped for a while, since a
// peer may forget it at that very moment; then every few seconds.
const (
	quickAnnouncements = 5
	quickAnnouncing    = 100 * time.Millisecond
	announcing         = 3 * time.Second
)

// runAnnouncer announces the participant until it closes.
func (p *Participant) runAnnouncer() {
	again := false
	for i := 0; ; i++ {
		if err := p.link.Announce(p.announcement); err != nil && i == 0 {
			p.log.Warn("announcing by multicast failed", "err", err)
		}
		p.lock()
		if i >= quickAnnouncements || again {
			p.announceToPeers()
		}
		p.unlock()
		wait := announcing
		if i < quickAnnouncements {
			wait = quickAnnouncing
		}
		select {
		case <-time.After(wait):
		case <-p.awake:
			i, again = -1, true
		case <-p.done.Done():
			return
		}
	}
}

// Endpoints returns the user readers and writers that are known, ours included, in no particular order.
func (p *Participant) Endpoints() []Endpoint { return p.Select(func(*Endpoint) bool { return true }) }

// Select returns those of Endpoints that keep wants. keep must not call the participant.
func (p *Participant) Select(keep func(*Endpoint) bool) []Endpoint {
	p.lock()
	defer p.unlock()
	var out []Endpoint
	add := func(e *Endpoint) {
		if keep(e) {
			out = append(out, *e)
		}
	}
	for _, q := range p.peers {
		for _, e := range q.writers {
			add(&e.Endpoint)
		}
		for _, e := range q.readers {
			add(&e.Endpoint)
		}
	}
	for _, r := range p.readers {
		if !r.builtin() {
			e := r.endpoint()
			add(&e)
		}
	}
	for _, w := range p.writers {
		if !w.builtin() {
			e := w.endpoint()
			add(&e)
		}
	}
	return out
}

// Peers returns the remote participants, in no particular order.
func (p *Participant) Peers() []Peer {
	p.lock()
	defer p.unlock()
	out := make([]Peer, 0, len(p.peers))
	for _, q := range p.peers {
		out = append(out, q.public())
	}
	return out
}

// Changed returns a channel that is closed at the next change of Endpoints or Peers. Take it before reading them.
func (p *Participant) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Stats counts since the participant began.
func (p *Participant) Stats() Stats {
	s := Stats{Datagrams: p.datagrams.Load(), Bytes: p.bytes.Load(), Malformed: p.malformed.Load(), Refused: p.refused.Load()}
	p.link.stats(&s)
	p.mu.Lock()
	s.Reassembly = p.held
	p.mu.Unlock()
	return s
}

// lingering is how long Close waits for acknowledgements.
const lingering = time.Second

// Close waits up to a second until reliable readers have everything, says goodbye and ends every goroutine. No handler
// runs after it. Idempotent.
func (p *Participant) Close() error {
	p.closing.Do(func() { p.closeErr = p.close() })
	return p.closeErr
}

func (p *Participant) close() error {
	p.lock()
	var writers []*Writer
	for _, w := range p.writers {
		if !w.builtin() {
			writers = append(writers, w)
		}
	}
	p.unlock()
	ctx, cancel := context.WithTimeout(context.Background(), lingering)
	for _, w := range writers {
		_ = w.WaitAcked(ctx) // what is not acknowledged by then is lost to that reader
	}
	cancel()
	p.lock()
	for _, w := range writers {
		w.shut()
		p.withdraw(w.guid, true)
	}
	for _, r := range p.readers {
		if !r.builtin() {
			r.shut()
			p.withdraw(r.guid, false)
		}
	}
	p.pubWriter.postAll()
	p.subWriter.postAll()
	goodbye := p.goodbye(nil)
	for _, q := range p.peers {
		if q.meta.IsValid() && !p.closed {
			b := p.out.open(p, q.meta, wire.Prefix{}, len(goodbye))
			p.out.close(append(b, goodbye[wire.HeaderSize:]...))
		}
	}
	for _, r := range p.readers {
		r.shut()
	}
	for _, w := range p.writers {
		w.shut()
	}
	p.closed = true
	p.unlock()
	p.sends.wait()
	err := p.link.Announce(func(_, _ []netip.AddrPort) []byte { return goodbye })
	if err != nil {
		p.log.Debug("goodbye by multicast failed", "err", err)
	}
	p.stop()
	err = p.link.Close()
	p.wg.Wait()
	p.lock()
	p.dropAll()
	p.fill.close()
	p.dirty = true
	p.unlock()
	return err
}
