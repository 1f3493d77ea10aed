package recorder

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

func typed(typ string) func(*ros.Topic, *ros.QoS) {
	return func(topic *ros.Topic, _ *ros.QoS) { topic.Type = typ }
}

// advertiseAction makes publishers of what an action server has without introspection, then of the rest.
func (g *rig) advertiseAction(name string) (visible []ros.Publisher, introspect func() []ros.Publisher) {
	visible = []ros.Publisher{g.advertise(name+"/_action/feedback", typed("x/action/F_FeedbackMessage")),
		g.advertise(name+"/_action/status", typed("action_msgs/msg/GoalStatusArray"))}
	return visible, func() []ros.Publisher {
		return []ros.Publisher{g.advertise(name+"/_action/send_goal/_service_event", typed("x/action/F_SendGoal_Event")),
			g.advertise(name+"/_action/cancel_goal/_service_event", typed("action_msgs/srv/CancelGoal_Event")),
			g.advertise(name+"/_action/get_result/_service_event", typed("x/action/F_GetResult_Event"))}
	}
}

// Named services and actions are recorded with all their topics, also those that come later, and nothing else is.
func TestNamedServicesAndActions(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		pubs := []ros.Publisher{g.advertise("/add/_service_event", typed("x/srv/Add_Event")), g.advertise("/other/_service_event", typed("x/srv/Add_Event")),
			g.advertise("/add"), g.advertise("/fib")}
		action, introspect := g.advertiseAction("/fib")
		other, _ := g.advertiseAction("/fib2")
		g.start(Options{Services: []string{"add"}, Actions: []string{"/fib"}, IncludeHidden: false})
		if g.hasEvent(EventAllSubscribed, "") {
			t.Error("discovery ended before the action was complete")
		}
		time.Sleep(time.Minute)
		action = append(action, introspect()...)
		settled()
		g.wantEvent(EventAllSubscribed, "")
		for _, p := range slices.Concat(pubs, action, other) {
			g.publish(p, 1, 10)
		}
		settled()
		res, err := g.stop()
		if err != nil || res.Messages != 6 || len(res.Missing) != 0 {
			t.Fatal(err, res.Messages, res.Missing)
		}
		s := g.read()
		for _, name := range append(ros.ActionTopics("/fib"), "/add/_service_event") {
			if len(s.msgs[name]) != 1 {
				t.Errorf("%s: %d messages", name, len(s.msgs[name]))
			}
		}
		if len(s.topics) != 6 {
			t.Errorf("%v", s.topics)
		}
	})
}

// -a takes all three classes; the topics of hidden actions and services are hidden.
func TestAllClasses(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		pubs := []ros.Publisher{g.advertise("/a"), g.advertise("/add/_service_event", typed("x/srv/Add_Event")),
			g.advertise("/_hidden/_service_event", typed("x/srv/Add_Event"))}
		action, introspect := g.advertiseAction("/fib")
		hidden, _ := g.advertiseAction("/_secret")
		g.start(Options{All: true})
		settled()
		for _, p := range slices.Concat(pubs, action, introspect(), hidden) {
			settled()
			g.publish(p, 1, 10)
		}
		settled()
		if res, err := g.stop(); err != nil || res.Messages != 7 {
			t.Fatal(err, res.Messages)
		}
	})
}

func TestMissingServicesAndActions(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		a := g.advertise("/a")
		g.advertiseAction("/there")
		g.start(Options{Topics: []string{"/a", "/b", "/c"}, Services: []string{"/add"}, Actions: []string{"/there", "fib"}})
		g.publish(a, 1, 10)
		time.Sleep(6 * time.Second)
		g.wantEvent(EventMissing, "topics '/b', '/c', service '/add', action '/fib' have not appeared yet; a service shows up once introspection is switched on")
		if m := g.rec.Snapshot().Missing; len(m) != 4 || m[2] != (Wanted{"service", "/add"}) {
			t.Errorf("%v", m)
		}
		res, err := g.stop()
		if !errors.Is(err, ErrMissingTopics) || err.Error() != "record: topics '/b', '/c', service '/add', action '/fib' never appeared" {
			t.Fatal(err)
		}
		if len(res.Missing) != 4 {
			t.Errorf("%v", res.Missing)
		}
	})
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.advertise("/a")
		g.start(Options{Actions: []string{"/fib"}})
		time.Sleep(6 * time.Second)
		g.wantEvent(EventMissing, "action '/fib' has not appeared yet")
		if _, err := g.stop(); !errors.Is(err, ErrMissingTopics) || !errors.Is(err, ErrNothingRecorded) {
			t.Fatal(err)
		}
	})
}

// What is named and excluded is not missed.
func TestExcludedIsNotMissing(t *testing.T) {
	o := Options{All: true, Topics: []string{"/a", "b"}, Services: []string{"/s"}, Actions: []string{"/x", "/y"},
		ExcludeTopics: []string{"a"}, ExcludeServices: []string{"s"}, ExcludeActions: []string{"/y"}}
	if got, want := o.wanted(), []Wanted{{"topic", "/b"}, {"action", "/x"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
