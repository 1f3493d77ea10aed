package player

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// Player plays one bag. Make one with New and call Run once; the other methods may be called from any goroutine at any
// time.
type Player struct {
	o      Options
	src    source
	filter *filter
	remaps []remap
	clock  *clock
	start  int64 // bag stamps: where playback begins and ends, ns
	end    int64

	state    atomic.Int32
	started  atomic.Bool
	steps    steps
	over     chan struct{} // closed when Run is about to return
	cancel   atomic.Pointer[context.CancelFunc]
	seek     seek
	clockPub *clockPublisher
	lateness histogram
	played   atomic.Uint64
	bytes    atomic.Uint64
	loops    atomic.Uint64
	starved  atomic.Uint64

	mu      sync.Mutex
	skipped []Skipped
	events  chan Event

	nextStarved, nextGap time.Time // of the goroutine of Run
	sleeper              sleeper
}

// sleeper does the last part of a wait more precisely than the runtime's timers can.
type sleeper struct {
	span  time.Duration      // how long that part is
	lock  func() func()      // prepares the calling goroutine; what it returns undoes that
	until func(at time.Time) // sleeps, at most span
}

type counter struct{ messages, bytes atomic.Uint64 }

// Result describes a finished playback.
type Result struct {
	Played   uint64 // messages published
	Bytes    uint64 // payload bytes published
	Loops    uint64 // times the bag was begun again
	Elapsed  time.Duration
	Lateness Lateness
	Starved  uint64 // messages that were late because reading did not keep up
	Unacked  int    // messages that reliable subscriptions had not acknowledged at the end
	Dropped  uint64 // messages given up before a reliable subscription had acknowledged them
	Topics   []TopicResult
	Skipped  []Skipped
}

// TopicResult is what was published of one topic.
type TopicResult struct {
	Topic         string // as published
	From          string // in the bag
	Type          string
	Played, Bytes uint64
	Matched       int // subscriptions at the end
}

// New checks the options. Nothing is read or advertised before Run.
func New(o Options) (*Player, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	p := &Player{o: o.withDefaults(), over: make(chan struct{}), sleeper: preciseSleeper, events: make(chan Event, maxEvents)}
	p.src.bags = append([]*bag.Reader{o.Bag}, o.More...)
	p.steps.init()
	p.seek.init()
	var errF, errR error
	p.filter, errF = newFilter(p.o)
	p.remaps, errR = parseRemaps(p.o.Remap)
	if err := errors.Join(errF, errR); err != nil {
		return nil, fmt.Errorf("play: %w", err)
	}
	p.start, p.end, _ = p.src.bounds()
	if p.end < p.start { // no messages
		p.start, p.end = 0, 0
	}
	p.start = add(p.start, int64(p.o.StartOffset))
	until := int64(math.MinInt64)
	if p.o.PlaybackDuration > 0 {
		until = add(p.start, int64(p.o.PlaybackDuration))
	}
	if p.o.PlaybackUntil > 0 {
		until = max(until, p.o.PlaybackUntil)
	}
	if until > math.MinInt64 {
		p.end = min(p.end, until)
	}
	p.clock = newClock(p.o.Rate, p.o.StartPaused)
	p.clock.jump(p.start)
	return p, nil
}

// Run plays until the end of the bag or of ctx and waits for all goroutines. The Result is valid with an error too. The
// end of ctx is no error. Errors: ErrNoTopics, *LiveError, those of the bag (what was read before is played) and those of
// the publishers.
func (p *Player) Run(ctx context.Context) (Result, error) {
	if !p.started.CompareAndSwap(false, true) {
		return Result{}, ErrRunning
	}
	told, allSaid := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		p.tell(allSaid)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.cancel.Store(&cancel)
	res, err := p.run(ctx)
	p.state.Store(int32(StateStopped))
	close(p.over)
	close(allSaid)
	select {
	case <-told:
	case <-time.After(listenerPatience): // a terminal may stand still
	}
	if err != nil {
		return res, fmt.Errorf("play: %w", err)
	}
	return res, nil
}

// listenerPatience is how long the end waits for a listener that is behind.
const listenerPatience = 5 * time.Second

func (p *Player) run(ctx context.Context) (Result, error) {
	began := time.Now()
	pubs, err := p.prepare(ctx)
	if err != nil {
		return p.result(pubs, began), errors.Join(err, closeAll(pubs))
	}
	err = p.play(ctx, pubs)
	p.waitAcked(ctx, pubs)
	res := p.result(pubs, began)
	err = errors.Join(err, closeAll(pubs), p.clockPub.close())
	p.emit(EventStopped, slog.LevelInfo, "", fmt.Sprintf("Playback ended after %s", plural(res.Played, "message")))
	return res, err
}

// prepare advertises the topics and waits for subscriptions that are there already.
func (p *Player) prepare(ctx context.Context) ([]*publication, error) {
	if _, end, messages := p.src.bounds(); messages > 0 && p.start > end {
		p.emit(EventOther, slog.LevelWarn, "", fmt.Sprintf("the start offset %s is beyond the end of the bag; nothing is played", p.o.StartOffset))
	}
	pubs, err := p.choose(p.src.topics())
	if err != nil {
		return nil, err
	}
	p.peek(ctx, pubs)
	if p.clockPub, err = p.openClock(); err != nil {
		return nil, err
	}
	graph := p.o.Node.Graph()
	if p.o.DiscoveryWait > 0 && !settle(ctx, graph, time.Now().Add(p.o.DiscoveryWait)) {
		return nil, nil
	}
	if !p.o.AllowLive {
		if err := live(graph, pubs); err != nil {
			return nil, err
		}
	}
	if pubs, err = p.advertise(pubs); err != nil {
		return nil, err
	}
	if p.o.DiscoveryWait > 0 && !waitMatched(ctx, graph, pubs, time.Now().Add(p.o.DiscoveryWait)) {
		return pubs, nil
	}
	p.reportMismatches(pubs)
	p.state.Store(int32(StateDelay))
	sleep(ctx, p.o.Delay)
	return pubs, nil
}

// play publishes everything in its time.
func (p *Player) play(ctx context.Context, pubs []*publication) error {
	if len(pubs) == 0 || ctx.Err() != nil {
		return nil
	}
	asked := ctx // ends when the user wants
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var clock sync.WaitGroup
	defer clock.Wait()
	defer fail(nil)
	r := &run{p: p, pubs: pubs, fail: fail, buffers: newBuffers(p.o.ReadAheadBytes), files: map[string]string{}}
	r.byID, r.ids = index(pubs)
	r.out = &lanes{p: p, ctx: ctx, fail: fail}
	defer p.sleeper.lock()()
	from, err := p.start, error(nil)
	for again := true; again && err == nil; {
		if from > p.start || p.o.StartOffset > 0 {
			if err = p.playLatched(ctx, pubs, from); err != nil {
				break
			}
		}
		err = r.from(ctx, from, &clock)
		from, again = p.seek.take()
	}
	r.out.close()
	if asked.Err() != nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(append(r.damage, err)...)
}

// run is the playback while it lasts.
type run struct {
	p       *Player
	pubs    []*publication
	byID    map[plugin.TopicID]*publication
	ids     []plugin.TopicID
	buffers *buffers
	out     *lanes
	fail    context.CancelCauseFunc
	started bool
	files   map[string]string // being played, by the directory of the bag

	mu     sync.Mutex
	damage []error
}

// damaged is told about storages that cannot be read on.
func (r *run) damaged(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.damage) < 10 { // loops meet the same one again
		r.damage = append(r.damage, err)
		r.p.emit(EventOther, slog.LevelError, "", fmt.Sprintf("what follows in a damaged storage is not played: %v", err))
	}
}

// from plays from a stamp on, until the end or until another place is sought.
func (r *run) from(ctx context.Context, from int64, clock *sync.WaitGroup) error {
	p := r.p
	reading, stopReading := context.WithCancel(ctx)
	ahead := newReadAhead(p.o.ReadAhead, r.buffers)
	ahead.src, ahead.query = &p.src, plugin.Query{Topics: r.ids, Range: &plugin.TimeRange{Start: from, End: p.end}}
	clear(r.files)
	ahead.start, ahead.loop, ahead.bySent = p.start, p.o.Loop, p.o.ByPublishTime
	ahead.pubs, ahead.met, ahead.damaged = r.byID, p.learn, r.damaged
	in := &intake{readAhead: ahead}
	var reader sync.WaitGroup
	reader.Go(func() { ahead.run(reading) })
	defer func() {
		stopReading()
		reader.Wait()
		in.close()
	}()
	it, waited, ok := in.next(ctx, &p.seek) // the bag's time does not run before the first message is read
	p.clock.jump(from)
	if !r.started {
		r.started = true
		p.state.Store(int32(StatePlaying))
		clock.Go(func() { p.clockPub.run(ctx, p) })
		p.emit(EventStarted, slog.LevelInfo, "", "Playback started")
	}
	for ; ok; it, waited, ok = in.next(ctx, &p.seek) {
		if it.pub == nil {
			r.turn(it)
			continue
		}
		at, now, ok := p.waitUntil(ctx, it.stamp, waited)
		if !ok {
			it.done()
			break
		}
		p.clockPub.message(p, it)
		if err := r.out.send(dueItem{*it, at}, now); err != nil {
			r.fail(err)
			break
		}
	}
	if p.seek.pending() || ctx.Err() != nil {
		return nil
	}
	p.steps.clear()
	stopReading()
	reader.Wait()
	return ahead.err
}

// turn goes over to another file, or to the begin of the bag.
func (r *run) turn(it *item) {
	if it.file == "" {
		r.p.loops.Add(1)
		r.p.clock.jump(r.p.start)
		r.p.emit(EventLoop, slog.LevelInfo, "", "Playing again from the start")
		clear(r.files)
		return
	}
	dir := filepath.Dir(it.file)
	if closed := r.files[dir]; closed != "" && r.p.o.OnFile != nil {
		r.p.o.OnFile(closed, it.file)
	}
	r.files[dir] = it.file
}

// waitUntil returns when the message of that stamp is due, or asked for by PlayNext; at is when it was due, zero when it
// was asked for, and now is the time. ok is false when ctx ends first or another place is sought.
func (p *Player) waitUntil(ctx context.Context, stamp int64, waited bool) (at, now time.Time, ok bool) {
	for {
		at, paused, changed := p.clock.due(stamp)
		if p.seek.pending() {
			return at, now, false
		}
		if paused {
			if p.steps.take() {
				p.clock.jump(stamp)
				return time.Time{}, time.Now(), true
			}
			select {
			case <-ctx.Done():
				return at, now, false
			case <-changed:
			case <-p.steps.wake:
			}
			continue
		}
		now = time.Now()
		wait := at.Sub(now)
		if wait > p.sleeper.span {
			if wait > farGap {
				p.reportGap(wait)
			}
			if !sleepCoarse(ctx, wait-p.sleeper.span, changed) {
				return at, now, false
			}
			continue
		}
		if wait > 0 {
			p.sleeper.until(at)
			now = time.Now()
		} else if waited && wait < -lateAfter {
			p.reportStarved()
		}
		return at, now, ctx.Err() == nil
	}
}

// sleepCoarse waits for d or a change of the clock. It returns false when ctx ends first.
func sleepCoarse(ctx context.Context, d time.Duration, changed <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-t.C:
	}
	return true
}

// publish sends one message; now is its source stamp.
func (p *Player) publish(it *item, now time.Time) error {
	if err := it.pub.publisher().Publish(it.data, now.UnixNano()); err != nil {
		return fmt.Errorf("publish on %s: %w", it.pub.Name, err)
	}
	it.pub.sent.messages.Add(1)
	it.pub.sent.bytes.Add(uint64(len(it.data)))
	p.played.Add(1)
	p.bytes.Add(uint64(len(it.data)))
	return nil
}

const (
	farGap       = 10 * time.Minute // a wait that is worth a line
	reportPeriod = time.Second
)

func (p *Player) reportGap(wait time.Duration) {
	if now := time.Now(); now.After(p.nextGap) {
		p.nextGap = now.Add(wait)
		p.emit(EventGap, slog.LevelWarn, "", fmt.Sprintf("the next message comes in %s; was the clock set while recording?", wait.Round(time.Second)))
	}
}

func (p *Player) reportStarved() {
	p.starved.Add(1)
	if now := time.Now(); now.After(p.nextStarved) {
		p.nextStarved = now.Add(reportPeriod)
		p.emit(EventStarved, slog.LevelWarn, "",
			"Message queue starved. Messages will be delayed. Consider increasing the --read-ahead-queue-size option.")
	}
}

// waitAcked waits as Options.WaitAcked says for reliable subscriptions to acknowledge everything.
func (p *Player) waitAcked(ctx context.Context, pubs []*publication) {
	if p.o.WaitAcked < 0 {
		return
	}
	if p.o.WaitAcked > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.o.WaitAcked)
		defer cancel()
	}
	for n := unacked(pubs); n > 0; n = unacked(pubs) {
		if !sleep(ctx, matchPolling) {
			p.emit(EventAcks, slog.LevelWarn, "", fmt.Sprintf("%s not acknowledged by every reliable subscription", plural(uint64(n), "message")))
			return
		}
	}
}

func unacked(pubs []*publication) (n int) {
	for _, pub := range pubs {
		n += pub.publisher().Stats().Unacked
	}
	return n
}

// result puts the result together; the publishers must be open still.
func (p *Player) result(pubs []*publication, began time.Time) Result {
	p.mu.Lock()
	defer p.mu.Unlock()
	res := Result{Played: p.played.Load(), Bytes: p.bytes.Load(), Loops: p.loops.Load(), Elapsed: time.Since(began),
		Lateness: p.lateness.summary(), Starved: p.starved.Load(), Skipped: p.skipped}
	for _, pub := range pubs {
		st := pub.publisher().Stats()
		res.Unacked += st.Unacked
		res.Dropped += st.Dropped
		res.Topics = append(res.Topics, TopicResult{Topic: pub.Name, From: pub.from, Type: pub.Type,
			Played: pub.sent.messages.Load(), Bytes: pub.sent.bytes.Load(), Matched: st.Matched})
	}
	return res
}
