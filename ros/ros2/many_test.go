package ros2_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
)

// A recorder's discovery loop keeps up with a thousand topics: all are found and subscribed, and the graph is not
// rebuilt for each of them.
func TestThousandTopics(t *testing.T) {
	const topics = 1000
	a, b := newNode(t, local(224)), newNode(t, local(224))
	start := time.Now()
	var pubs []ros.Publisher
	for i := range topics {
		p, err := a.Advertise(ros.Topic{Name: fmt.Sprintf("/many/t%d", i), Type: "std_msgs/msg/String"}, ros.DefaultQoS())
		if err != nil {
			t.Fatal(err)
		}
		pubs = append(pubs, p)
	}
	advertised := time.Since(start)
	subs := map[string]ros.Subscription{}
	received := make(chan string, topics)
	rounds := 0
	const patience = 2 * time.Minute
	deadline := time.After(patience)
	for len(subs) < topics {
		changed := b.Graph().Changed()
		rounds++
		for _, info := range b.Graph().Topics() {
			if subs[info.Name] != nil || len(info.Publishers) == 0 {
				continue
			}
			s, err := b.Subscribe(ros.Topic{Name: info.Name, Type: info.Types[0]}, ros.BestAvailableQoS(), func(s ros.Sample) {
				received <- info.Name
				s.Release()
			})
			if err != nil {
				t.Fatal(err)
			}
			subs[info.Name] = s
		}
		if len(subs) < topics {
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("%d of %d topics were found", len(subs), topics)
			}
		}
	}
	subscribed := time.Since(start)
	for _, p := range pubs {
		for p.Stats().Matched == 0 {
			if time.Since(start) > patience {
				t.Fatalf("%s is not matched", p.Topic().Name)
			}
			time.Sleep(time.Millisecond)
		}
	}
	matched := time.Since(start)
	for _, p := range pubs {
		if err := p.Publish([]byte{0, 1, 0, 0, 1, 0, 0, 0, 0}, 1); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]bool{}
	for len(got) < topics {
		select {
		case name := <-received:
			got[name] = true
		case <-deadline:
			t.Fatalf("%d of %d topics delivered", len(got), topics)
		}
	}
	t.Logf("advertised after %v, all subscribed after %v in %d rounds, matched after %v, received after %v", advertised, subscribed, rounds, matched, time.Since(start))
	if rounds > topics/2 {
		t.Errorf("%d rounds for %d topics", rounds, topics)
	}
}
