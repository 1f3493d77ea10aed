package recorder

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gobag/gobag/ros"
)

const str = "std_msgs/msg/String"

func TestFilter(t *testing.T) {
	type question struct {
		name, typ string
		want      bool
	}
	const event, srv = "example_interfaces/srv/AddTwoInts_Event", "/add/_service_event"
	cases := []struct {
		name string
		o    Options
		qs   []question
	}{
		{"all", Options{All: true}, []question{
			{"/a", str, true}, {"/_a", str, false}, {"/x/_y/z", str, false},
			{srv, event, true}, {"/_p/add/_service_event", event, false},
			{srv, str, false}, // a hidden topic that only looks like a service event
			{"/f/_action/status", "action_msgs/msg/GoalStatusArray", true},
			{"/f/_action/feedback", "x/action/F_FeedbackMessage", true},
			{"/f/_action/send_goal/_service_event", "x/action/F_SendGoal_Event", true},
			{"/_f/_action/status", "action_msgs/msg/GoalStatusArray", false},
			{"/f/_action/other", str, false},
		}},
		{"all with hidden", Options{All: true, IncludeHidden: true}, []question{{"/_a", str, true}, {"/x/_y/z", str, true}}},
		{"named", Options{Topics: []string{"/a", "b", "/_h"}}, []question{
			{"/a", str, true}, {"/b", str, true}, {"/c", str, false}, {"/_h", str, true}, {"/a/b", str, false},
		}},
		{"regex is a search", Options{Regex: "cam"}, []question{
			{"/front/camera", str, true}, {"/lidar", str, false}, {"/_cam", str, false},
		}},
		{"regex on services and actions", Options{Regex: "^/(add|fib)$"}, []question{
			{srv, event, true}, {"/fib/_action/status", "x/msg/Y", true}, {"/addx", str, false},
		}},
		{"lookahead", Options{Regex: "^/(?!tf)"}, []question{{"/tf", str, false}, {"/odom", str, true}}},
		{"types", Options{TopicTypes: []string{str}}, []question{{"/a", str, true}, {"/b", "x/msg/Y", false}, {"/_a", str, false}}},
		{"union of selectors", Options{Topics: []string{"/a"}, Regex: "^/b", TopicTypes: []string{"x/msg/Y"}}, []question{
			{"/a", str, true}, {"/b1", str, true}, {"/c", "x/msg/Y", true}, {"/d", str, false},
		}},
		{"exclusions win", Options{All: true, Topics: []string{"/a"}, ExcludeTopics: []string{"a", "/add"}, ExcludeRegex: "^/rosout$",
			ExcludeTopicTypes: []string{"x/msg/Big"}}, []question{
			{"/a", str, false}, {srv, event, false}, {"/rosout", str, false}, {"/rosout2", str, true}, {"/img", "x/msg/Big", false},
		}},
	}
	for _, c := range cases {
		f, err := newFilter(c.o)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for range 2 { // the second time from memory
			for _, q := range c.qs {
				if got, err := f.takes(q.name, q.typ); got != q.want || err != nil {
					t.Errorf("%s: %s (%s): %v %v, want %v", c.name, q.name, q.typ, got, err, q.want)
				}
			}
		}
	}
}

func TestFilterForgets(t *testing.T) {
	f, err := newFilter(Options{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxDecisions + 100 {
		f.takes(fmt.Sprintf("/t%d", i), str)
	}
	if n := len(f.decisions); n > maxDecisions {
		t.Fatalf("%d decisions kept", n)
	}
}

func TestFilterSlowExpression(t *testing.T) {
	f, err := newFilter(Options{Regex: "(a|aa)+$"})
	if err != nil {
		t.Fatal(err)
	}
	take, err := f.takes("/"+strings.Repeat("a", 60)+"_", str)
	if take || err == nil {
		t.Fatalf("%v %v, want an error", take, err)
	}
}

func TestValidate(t *testing.T) {
	node := struct{ ros.Node }{}
	cases := []struct {
		o    Options
		want string // "" = valid
	}{
		{Options{Node: node, All: true}, ""},
		{Options{Node: node, Topics: []string{"chatter"}, MinFreeSpace: -1}, ""},
		{Options{All: true}, "no node"},
		{Options{Node: node}, "nothing to record"},
		{Options{Node: node, Topics: []string{"/a"}, ExcludeTopics: []string{"/a"}}, "something to exclude from"},
		{Options{Node: node, Regex: "(", All: true}, "regular expression"},
		{Options{Node: node, All: true, ExcludeRegex: "["}, "regular expression"},
		{Options{Node: node, Topics: []string{"/a//b"}}, "between slashes"},
		{Options{Node: node, Topics: []string{""}}, "empty"},
		{Options{Node: node, All: true, Duration: -1}, "duration must not be negative"},
		{Options{Node: node, All: true, MaxCacheSize: -1}, "cache size must not be negative"},
		{Options{Node: node, All: true, CustomData: map[string]string{"gobag.ledger": "x"}}, "gobag's own"},
	}
	for _, c := range cases {
		err := c.o.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
