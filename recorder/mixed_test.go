package recorder

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

// offers are the kinds of publishers that one topic can have.
var offers = []struct {
	name   string
	change func(*ros.Topic, *ros.QoS)
}{
	{"reliable", func(*ros.Topic, *ros.QoS) {}},
	{"best effort", bestEffort},
	{"latched", latched},
	{"latched best effort", func(t *ros.Topic, q *ros.QoS) {
		latched(t, q)
		bestEffort(t, q)
	}},
}

// Nothing of a topic whose publishers offer different things is lost, in whatever order they come, before or after the
// recording begins: what is sent while both are there is recorded, of latched reliable publishers also what came before.
func TestMixedPublishers(t *testing.T) {
	for _, order := range permutations([]int{0, 1, 2, 3}) {
		for early := range len(order) + 1 {
			name := fmt.Sprintf("%d before", early)
			for _, i := range order {
				name += ", " + offers[i].name
			}
			inBubble(t, rostest.Options{}, func(g *rig) {
				const before, during = 2, 20
				pubs := make([]ros.Publisher, len(offers))
				want := map[string]int{} // by publisher
				come := func(place int) {
					i := order[place]
					pubs[i] = g.advertise("/x", offers[i].change)
				}
				send := func(n int) {
					for i, p := range pubs {
						if p == nil {
							continue
						}
						for range n {
							if err := p.Publish(fmt.Appendf(nil, "%d ", i), g.net.Clock().Now()); err != nil {
								t.Fatal(err)
							}
						}
					}
				}
				for place := range early {
					come(place)
				}
				send(before)
				if pubs[2] != nil {
					want["2"] += before
				}
				g.start(Options{Topics: []string{"/x"}})
				for place := early; place < len(order); place++ {
					come(place)
					settled()
					send(1)
					for _, i := range order[:place+1] {
						want[fmt.Sprint(i)]++
					}
				}
				settled()
				send(during)
				for i := range offers {
					want[fmt.Sprint(i)] += during
				}
				time.Sleep(2 * time.Second)
				res, err := g.stop()
				if err != nil {
					t.Fatal(name, err)
				}
				g.checkSums(res)
				s := g.read()
				got := map[string]int{}
				for _, m := range s.msgs["/x"] {
					who, _, _ := strings.Cut(string(m.Data), " ")
					got[who]++
				}
				for who, n := range want {
					if got[who] != n {
						t.Errorf("%s: %d messages of publisher %s, want %d", name, got[who], who, n)
					}
				}
				l := res.Ledger.Topics["/x"]
				if l.Lost.Total() != 0 || l.UnknownWriters != 2 {
					t.Errorf("%s: %+v", name, l)
				}
				qos, err := bag.DecodeQoS(s.topics["/x"].OfferedQoS)
				if err != nil || len(qos) != len(offers) {
					t.Errorf("%s: %d profiles, %v", name, len(qos), err)
				}
				if src := s.topics["/x"].Sources; len(src) != len(offers) {
					t.Errorf("%s: %d sources", name, len(src))
				}
				if g.hasEvent(EventQoS, "") {
					t.Errorf("%s: %v", name, g.events)
				}
			})
		}
	}
}

func permutations(of []int) (out [][]int) {
	if len(of) == 0 {
		return [][]int{nil}
	}
	for i := range of {
		rest := append(append([]int{}, of[:i]...), of[i+1:]...)
		for _, p := range permutations(rest) {
			out = append(out, append([]int{of[i]}, p...))
		}
	}
	return out
}

// A publisher that leaves and one that takes its place with weaker quality of service lose nothing either.
func TestPublishersComeAndGo(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.start(Options{All: true})
		sent := 0
		for i := range 12 {
			p := g.advertise("/x", offers[i%len(offers)].change)
			settled()
			g.publish(p, 10, 20)
			sent += 10
			settled()
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if i%3 == 0 {
				time.Sleep(5 * time.Second)
			}
		}
		res, err := g.stop()
		if err != nil || res.Messages != uint64(sent) || res.Ledger.Topics["/x"].Lost.Total() != 0 {
			t.Fatal(err, res.Messages, sent, res.Ledger)
		}
		g.checkSums(res)
	})
}
