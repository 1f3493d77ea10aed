package player

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// A publisher is announced with the encoding of its payloads: a subscription that reads XCDR1 only, as those of ROS do,
// must not be matched with one that sends XCDR2. Which it is says the header of each payload, so the first message of
// every topic has to be known before anything is announced, and announced it must be before the clock starts.
//
// To look for each topic's first message can mean to read the whole bag. So peek reads what comes first anyway, within
// bounds; topics that have not come up by then are announced like the ones that have (the topics of a bag hardly ever
// differ). When the first message of such a topic is read ahead and turns out to be the other kind, learn announces the
// topic anew: by then nothing of it was sent, and usually there are seconds until it is due.

// peekTime bounds how long the bag is looked into before the start. Options.ReadAhead and ReadAheadBytes bound it too.
const peekTime = 500 * time.Millisecond

// xcdr2 says whether a payload is encoded as XCDR2. Anything that is no CDR payload counts as the usual XCDR1.
func xcdr2(payload []byte) bool {
	kind, _, _, err := cdr.Split(payload)
	return err == nil && kind.Version() == 2
}

// peek learns how the payloads of topics are encoded from the messages that will be played first. What is wrong with the
// bag shows when it is played.
func (p *Player) peek(ctx context.Context, pubs []*publication) {
	if p.o.Format != cdrFormat { // there is one encoding only
		for _, pub := range pubs {
			pub.known.Store(true)
		}
		return
	}
	byID, ids := index(pubs)
	it, err := p.src.messages(plugin.Query{Topics: ids, Range: &plugin.TimeRange{Start: p.start, End: p.end}})
	if err != nil {
		return
	}
	defer it.Close()
	unknown, seen2, seen1 := 0, 0, 0
	for _, pub := range pubs {
		if pub.messages > 0 {
			unknown++
		}
	}
	end := time.Now().Add(peekTime)
	var m plugin.Message
	var bytes int64
	for n := 0; n < p.o.ReadAhead && bytes < p.o.ReadAheadBytes && unknown > 0; n++ {
		if err := it.Next(&m); err != nil {
			var damage *plugin.CorruptError
			if errors.As(err, &damage) {
				continue // the other files are read all the same
			}
			break
		}
		if pub := byID[m.Topic]; pub != nil && !pub.known.Swap(true) {
			unknown--
			if pub.xcdr2 = xcdr2(m.Data); pub.xcdr2 {
				seen2++
			} else {
				seen1++
			}
		}
		if bytes += int64(len(m.Data)); time.Now().After(end) || ctx.Err() != nil {
			break
		}
	}
	for _, pub := range pubs {
		if !pub.known.Load() {
			pub.xcdr2 = seen2 > 0 && seen1 == 0
		}
	}
}

// announce makes the publisher of a topic, for payloads of the kind that pub.xcdr2 says.
func (p *Player) announce(pub *publication) (ros.Publisher, error) {
	if pub.call {
		pub.known.Store(true)
		return p.newCaller(pub)
	}
	if !pub.xcdr2 {
		return p.o.Node.Advertise(pub.Topic, pub.qos)
	}
	return ros.AdvertiseAs(p.o.Node, pub.Topic, pub.qos, cdr.AppendHeader(nil, cdr.CDR2LE))
}

// learn looks at the first message of a topic that peek has not met, before it is published, and announces the topic
// anew if it is not encoded as was assumed. It may be called for every message, by several goroutines.
func (p *Player) learn(pub *publication, payload []byte) {
	if pub.known.Load() {
		return
	}
	pub.mu.Lock()
	defer pub.mu.Unlock()
	if pub.known.Load() {
		return
	}
	if is := xcdr2(payload); is != pub.xcdr2 {
		pub.xcdr2 = is
		old := pub.pub
		next, err := p.announce(pub)
		if err == nil {
			pub.pub = next
			err = old.Close()
		}
		if err != nil {
			p.emit(EventOther, slog.LevelWarn, pub.from, fmt.Sprintf("topic '%s' cannot be announced anew for its encoding: %v", pub.from, err))
		} else {
			p.emit(EventOther, slog.LevelInfo, pub.from, fmt.Sprintf("topic '%s' is announced anew: it is encoded otherwise than what came before", pub.from))
		}
	}
	pub.known.Store(true)
}
