package player

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
)

// Options configure a Player. Node and Bag are needed; all other fields may be left zero (which waits for all
// acknowledgements at the end, see WaitAcked).
type Options struct {
	Node ros.Node      // not closed by the player
	Bag  *bag.Reader   // not closed by the player
	More []*bag.Reader // further bags, merged with Bag by receive stamp; not closed either

	Format string // serialization format that Node sends; "" = "cdr". Topics in another one are not played

	Rate float64 // bag seconds per second; 0 = 1. A huge rate plays without waiting
	Loop bool    // begin again at the end, until stopped

	// What is played. There are three classes, as in rosbag2: topics, the events of services, and the topics of actions.
	// With Regex it is what that matches and what is named; without, a class of which something is named is reduced to
	// that, and one of which nothing is named is played whole. Exclusions win. Names are those in the bag; a missing
	// leading slash is added.
	Topics          []string
	Services        []string // "/add": its events, published as they are
	Actions         []string // "/fibonacci": feedback, status and the events of its services
	ExcludeTopics   []string
	ExcludeServices []string
	ExcludeActions  []string
	Regex           string // ECMAScript; must match the whole name of the topic, service or action, as in rosbag2's play
	ExcludeRegex    string

	Remap []string // "/a:=/b": publish /a as /b

	StartOffset      time.Duration // skip this much bag time at the start
	PlaybackDuration time.Duration // stop after this much bag time; 0 or negative = at the end
	PlaybackUntil    int64         // stop behind this stamp, ns since the Unix epoch; 0 or negative = at the end. With PlaybackDuration the later of the two counts
	Delay            time.Duration // wait once before the first message

	// ByPublishTime orders messages by the publishers' stamps and plays them at those, as far as they are within the
	// messages read ahead; else by the stamps of reception.
	ByPublishTime bool

	// /clock carries the bag's time; that of the bag is not played then.
	ClockRate   float64  // Hz of real time; 0 = not by time
	ClockTopics []string // just before each message of these, names in the bag or as published
	ClockAll    bool     // just before every message

	// CallServices calls the services with the requests that the bag's service events hold, instead of publishing the
	// events; ActionsAsClient does so with the services of actions, and leaves out feedback and status. FromClient takes the
	// events that clients reported, else those of servers. Node must be a ros.Services.
	CallServices, ActionsAsClient, FromClient bool

	ReadAhead      int   // messages read ahead; 0 = 1000
	ReadAheadBytes int64 // memory for them; 0 = 64 MiB. A larger single message is played all the same

	// WaitAcked says how long to wait at the end until reliable subscriptions have acknowledged everything: 0 = for
	// ever, negative = not at all.
	WaitAcked time.Duration

	// DiscoveryWait is the longest wait before the first message for the graph to settle, and once more for subscriptions
	// that are there already to be matched; 0 = 2 s, negative = none. Both together usually take half a second.
	DiscoveryWait time.Duration

	StartPaused bool
	AllowLive   bool // publish topics too that somebody else publishes right now

	QoSOverrides map[string]ros.QoS // offered instead of the recorded profile, by name in the bag or after Remap

	// OnFile is called by the playback when it goes over from one file of a bag to the next, by their paths. It must not block.
	OnFile func(closed, opened string)

	Logger  *slog.Logger // nil = silent. Gets the events too when OnEvent is nil
	OnEvent func(Event)  // called by one goroutine of the player while it runs; the playback does not wait for it
}

const (
	defaultReadAhead      = 1000
	defaultReadAheadBytes = 64 << 20
	defaultDiscoveryWait  = 2 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Rate == 0 {
		o.Rate = 1
	}
	if o.Format == "" {
		o.Format = cdrFormat
	}
	if o.ReadAhead == 0 {
		o.ReadAhead = defaultReadAhead
	}
	if o.ReadAheadBytes == 0 {
		o.ReadAheadBytes = defaultReadAheadBytes
	}
	if o.DiscoveryWait == 0 {
		o.DiscoveryWait = defaultDiscoveryWait
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Validate returns everything that is wrong with the options, joined; nil if nothing is.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Node == nil {
		bad("options: no node")
	}
	if o.Bag == nil {
		bad("options: no bag")
	}
	if o.Rate != 0 {
		if err := checkRate(o.Rate); err != nil {
			errs = append(errs, err)
		}
	}
	if o.StartOffset < 0 {
		bad("start offset must not be negative")
	}
	if o.ClockRate < 0 || math.IsNaN(o.ClockRate) || math.IsInf(o.ClockRate, 0) {
		bad("clock rate %v: it must be more than 0", o.ClockRate)
	}
	if _, ok := o.Node.(ros.Services); !ok && o.Node != nil && (o.CallServices || o.ActionsAsClient) {
		bad("options: the node calls no services")
	}
	if o.Delay < 0 {
		bad("delay must not be negative")
	}
	if o.ReadAhead < 0 || o.ReadAheadBytes < 0 {
		bad("read-ahead must not be negative")
	}
	if _, err := parseRemaps(o.Remap); err != nil {
		errs = append(errs, err)
	}
	if _, err := newFilter(o); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func checkRate(r float64) error {
	if !(r > 0) || math.IsInf(r, 0) {
		return fmt.Errorf("rate %v: it must be more than 0", r)
	}
	return nil
}
