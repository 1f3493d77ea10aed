package recorder

import (
	"time"

	"github.com/gobag/gobag/bag"
)

// ring is a queue of messages, the oldest first. The zero value is empty.
type ring struct {
	entries []bag.Entry // a circle; its length is a power of two or 0
	head, n int
	cost    int64 // bytes of memory
}

func (g *ring) len() int { return g.n }

// at returns the i-th oldest entry.
func (g *ring) at(i int) *bag.Entry { return &g.entries[(g.head+i)&(len(g.entries)-1)] }

func (g *ring) push(e bag.Entry) {
	if g.n == len(g.entries) {
		grown := make([]bag.Entry, max(1024, 2*len(g.entries)))
		for i := range g.n {
			grown[i] = *g.at(i)
		}
		g.entries, g.head = grown, 0
	}
	g.n++
	*g.at(g.n - 1) = e
	g.cost += int64(e.Cost)
}

func (g *ring) pop() bag.Entry {
	at := g.at(0)
	e := *at
	*at = bag.Entry{}
	g.head = (g.head + 1) & (len(g.entries) - 1)
	g.n--
	g.cost -= int64(e.Cost)
	return e
}

// span is the time between the oldest and the newest.
func (g *ring) span() time.Duration {
	if g.n == 0 {
		return 0
	}
	return time.Duration(g.at(g.n-1).RecvTime - g.at(0).RecvTime)
}
