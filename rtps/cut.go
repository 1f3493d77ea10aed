package rtps

import "time"

// A reader asks for at most 256 fragments at a time (RTPS 2.5 §9.4.5.14), and only when a HEARTBEAT has made it: with
// Fast DDS 5 ms later, and a request of Cyclone DDS that is lost comes again after 100 ms. A sample of 8 MB in fragments
// that fit Ethernet's frames takes two dozen such rounds as soon as one datagram in a hundred is lost.
//
// Fragments are of a frame's size all the same, since IP fragments of which one is lost fill the memory that the reader's
// system has for them, for half a minute. But where samples took many rounds, fragments of several frames are tried, and
// kept as long as they are not lost as much more often as they have frames: then it is not frames that are lost.
const (
	leastFrames    = 3                // in a larger fragment, else it gains nothing
	manyRounds     = 6                // for one sample: larger fragments may help
	someRounds     = 3                // the same where somewhat larger ones have helped
	muchLost       = 0.25             // of larger ones: they are no good
	manyFull       = 3                // samples in a row of which a third and more was lost in long rows
	cutPatience    = time.Minute      // before larger fragments are tried again after they did not help, doubling
	maxCutPatience = 16 * time.Minute // at most
)

// fewFragments is how many fragments a sample of a level has at most. Level 0 has fragments of one frame, however many;
// the next ones four requests' worth and one's.
var fewFragments = [...]int{1 << 30, 1024, 256}

// cut is how samples are cut into fragments for one reader.
type cut struct {
	frame  int   // bytes of a fragment that fits a datagram that nothing on the way cuts
	fixed  bool  // by configuration
	level  int   // of samples from since on
	before int   // of those before
	since  int64 // 0: all

	lost [len(fewFragments)]float64 // share of the fragments lost one by one lately, by level
	full int                        // samples in a row that were lost in long rows
	next mono                       // larger ones are not tried before
	wait time.Duration
}

// same reports whether both cut all samples alike.
func (c *cut) same(d *cut) bool {
	return c.frame == d.frame && c.level == d.level && c.before == d.before && c.since == d.since
}

// size is the bytes of a fragment of a sample of n bytes: the same whenever it is asked for, since fragment numbers depend
// on it.
func (c *cut) size(seq int64, n int) int {
	if seq < c.since {
		return c.sizeAt(c.before, n)
	}
	return c.sizeAt(c.level, n)
}

func (c *cut) sizeAt(level, n int) int {
	most := fewFragments[level] * c.frame
	frames := min((n+most-1)/most, localFragment/c.frame)
	if c.fixed || frames < leastFrames {
		return c.frame
	}
	return c.frame * frames
}

// judge takes what became of a sample of n bytes that has been acknowledged: what was asked for of it. next is the first
// sample that can still be cut otherwise. It reports whether that one is.
func (c *cut) judge(seq int64, n int, t *tally, next int64, now mono) (changed bool) {
	if seq < c.since || c.sizeAt(len(fewFragments)-1, n) == c.frame {
		return false
	}
	size := c.size(seq, n)
	all, burst := float64(n)/float64(size), float64(t.missing-t.alone)
	share := float64(t.alone) / max(all-burst, 1)
	lost := &c.lost[c.level]
	if *lost == 0 {
		*lost = share
	}
	*lost += (share - *lost) / 2
	if c.full++; 3*burst < all {
		c.full = 0
	}
	frames := float64(size / c.frame)
	switch worse := c.lost[0]*(1+frames)/2 + 3/all; {
	case c.level > 0 && (*lost > min(worse, muchLost) || c.full >= manyFull):
		if *lost < 2*frames*c.lost[0]+3/all { // else the datagrams came too fast, or it is not as it was
			c.wait = min(max(2*c.wait, cutPatience), maxCutPatience)
			c.next = now.add(c.wait)
		}
		return c.change(0, next)
	case c.level == 0 && t.rounds >= manyRounds && now >= c.next:
		return c.change(1, next)
	case c.level > 0 && c.level+1 < len(fewFragments) && t.rounds >= someRounds:
		return c.change(c.level+1, next)
	}
	return false
}

func (c *cut) change(level int, next int64) bool {
	c.before, c.level, c.since = c.level, level, next
	c.lost[level], c.full = c.lost[level]*float64(b2i(level == 0)), 0
	return true
}
