package player

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/gobag/gobag/ros"
)

const (
	graphQuiet   = 300 * time.Millisecond // a graph without changes for so long has settled
	graphEmpty   = 700 * time.Millisecond // the same while nobody else is in it
	matchSettle  = 100 * time.Millisecond // after the last match, for the other side to see it too
	matchPolling = 10 * time.Millisecond
)

// settle waits until the graph has not changed for a while, so that who is there already is known. It returns false when
// ctx ends first.
func settle(ctx context.Context, g ros.Graph, deadline time.Time) bool {
	for {
		changed := g.Changed()
		quiet := graphEmpty
		if slices.ContainsFunc(g.Topics(), hasRemote) {
			quiet = graphQuiet
		}
		t := time.NewTimer(min(quiet, time.Until(deadline)))
		select {
		case <-ctx.Done():
			t.Stop()
			return false
		case <-t.C:
			return true
		case <-changed:
			t.Stop()
		}
	}
}

func hasRemote(t ros.TopicInfo) bool {
	return slices.ContainsFunc(t.Publishers, remote) || slices.ContainsFunc(t.Subscriptions, remote)
}

func remote(e ros.Endpoint) bool { return !e.Local }

// everybodys are the topics that every ROS 2 node publishes: to find a live publisher of them says nothing.
var everybodys = []string{"/rosout", "/parameter_events"}

// live returns an error that names those of the topics that somebody else publishes. Topics without messages, and those
// that every node publishes, do not count.
func live(g ros.Graph, pubs []*publication) error {
	var e LiveError
	for _, info := range g.Topics() {
		if !slices.ContainsFunc(pubs, func(p *publication) bool { return p.Name == info.Name && p.messages > 0 && !p.call }) ||
			slices.Contains(everybodys, info.Name) {
			continue
		}
		found := false
		for _, pub := range info.Publishers {
			if pub.Local {
				continue
			}
			found = true
			if pub.Node != "" && !slices.Contains(e.Nodes, pub.Node) {
				e.Nodes = append(e.Nodes, pub.Node)
			}
		}
		if found {
			e.Topics = append(e.Topics, info.Name)
		}
	}
	if len(e.Topics) == 0 {
		return nil
	}
	return &e
}

// waitMatched waits until every subscription in the graph to one of the topics is matched or known not to match, then a
// moment more. It returns false when ctx ends first.
func waitMatched(ctx context.Context, g ros.Graph, pubs []*publication, deadline time.Time) bool {
	for time.Now().Before(deadline) && !allMatched(g, pubs) {
		if !sleep(ctx, matchPolling) {
			return false
		}
	}
	return sleep(ctx, min(matchSettle, time.Until(deadline)))
}

func allMatched(g ros.Graph, pubs []*publication) bool {
	topics := g.Topics()
	for _, pub := range pubs {
		i, ok := slices.BinarySearchFunc(topics, pub.Name, func(t ros.TopicInfo, name string) int { return compare(t.Name, name) })
		if !ok {
			continue
		}
		waiting := 0
		for _, s := range topics[i].Subscriptions {
			if !s.Local && (s.Topic.Type == pub.Type || s.Topic.Type == "") { // "" takes any, in ROS 1
				waiting++
			}
		}
		if st := pub.publisher().Stats(); st.Matched+len(st.Mismatches) < waiting {
			return false
		}
	}
	return true
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// reportMismatches names subscriptions that cannot receive what is played.
func (p *Player) reportMismatches(pubs []*publication) {
	for _, pub := range pubs {
		for _, m := range pub.publisher().Stats().Mismatches {
			p.emit(EventQoS, slog.LevelWarn, pub.from, fmt.Sprintf(
				"subscription %s to topic '%s' receives nothing: %s; a QoS override of the topic can offer what it asks for", m.ID, pub.Name, m.Reason))
		}
	}
}

// sleep waits for d. It returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
