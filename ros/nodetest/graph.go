package nodetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
)

func (s suite) graphEndpoints(t *testing.T) {
	n := s.nodes(t, 2)
	names := []string{"/graph/b", "/graph/a", "/graph/a/x", "/graph/_hidden", "/graph/c"}
	var pubs []ros.Publisher
	for _, name := range names {
		pubs = append(pubs, advertise(t, n[0], ros.Topic{Name: name, Type: "pkg_a/msg/Some_Type2"}, ros.DefaultQoS()))
	}
	sub, _ := subscribe(t, n[1], ros.Topic{Name: "/graph/a", Type: "pkg_a/msg/Some_Type2"}, ros.DefaultQoS())
	for _, node := range n {
		for _, name := range names {
			subs := 0
			if name == "/graph/a" {
				subs = 1
			}
			s.eventually(t, "discovery", func() string { return sees(node, name, 1, subs) })
		}
		var got []string
		for _, info := range node.Graph().Topics() {
			got = append(got, info.Name)
			if len(info.Types) != 1 || info.Types[0] != "pkg_a/msg/Some_Type2" {
				t.Errorf("%s has types %q", info.Name, info.Types)
			}
		}
		want := slices.Sorted(slices.Values(names))
		if !slices.Equal(got, want) {
			t.Errorf("topics are %q, want %q", got, want)
		}
	}
	here, there := find(n[0], "/graph/a"), find(n[1], "/graph/a")
	if here.Publishers[0].ID != there.Publishers[0].ID || here.Subscriptions[0].ID != there.Subscriptions[0].ID ||
		here.Publishers[0].ID == here.Subscriptions[0].ID {
		t.Errorf("the nodes see different ids: %+v, %+v", here, there)
	}
	if !here.Publishers[0].Local || here.Subscriptions[0].Local || there.Publishers[0].Local || !there.Subscriptions[0].Local {
		t.Errorf("local is wrong: %+v, %+v", here, there)
	}
	for _, p := range pubs {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	for _, node := range n {
		s.eventually(t, "end of the topics", func() string {
			if infos := node.Graph().Topics(); len(infos) != 0 {
				return fmt.Sprintf("still %+v", infos)
			}
			return ""
		})
	}
}

// Changed, taken before Topics, misses no change, and is silent while there is none.
func (s suite) changed(t *testing.T) {
	n := s.nodes(t, 2)
	// await changes something and waits with Changed until it shows.
	await := func(what string, change func(), ok func() string) {
		t.Helper()
		before := n[1].Graph().Changed()
		change()
		deadline := time.After(s.Patience)
		defer func() {
			select {
			case <-before:
			case <-deadline:
				t.Errorf("%s: a channel taken before it was not closed", what)
			}
		}()
		for {
			changed := n[1].Graph().Changed()
			problem := ok()
			if problem == "" {
				return
			}
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("%s: no change came, but %s", what, problem)
			}
		}
	}
	topic := ros.Topic{Name: "/changed", Type: stringType}
	var pub, own ros.Publisher
	var sub ros.Subscription
	var c *collector
	await("advertise", func() { pub = advertise(t, n[0], topic, ros.DefaultQoS()) }, func() string { return sees(n[1], topic.Name, 1, 0) })
	await("subscribe", func() { sub, c = subscribe(t, n[0], topic, ros.DefaultQoS()) }, func() string { return sees(n[1], topic.Name, 1, 1) })
	await("own publisher", func() { own = advertise(t, n[1], topic, keepAll()) }, func() string { return sees(n[1], topic.Name, 2, 1) })

	// Data is no change.
	s.matched(t, own, 1)
	deadline := time.Now().Add(s.Patience)
	for {
		changed := n[1].Graph().Changed()
		before := c.len()
		publish(t, own, 1, 10)
		s.count(t, c, before+10)
		select {
		case <-changed: // discovery was still at work
			if time.Now().After(deadline) {
				t.Fatal("the graph keeps changing")
			}
			continue
		case <-time.After(s.Quiet):
		}
		break
	}
	for _, end := range []struct {
		close      func() error
		pubs, subs int
	}{{pub.Close, 1, 1}, {sub.Close, 1, 0}, {own.Close, 0, 0}} {
		await("close", func() {
			if err := end.close(); err != nil {
				t.Fatal(err)
			}
		}, func() string { return sees(n[1], topic.Name, end.pubs, end.subs) })
	}
}
