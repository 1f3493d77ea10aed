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
	const statusType, status, sendGoal = "action_msgs/msg/GoalStatusArray", "/f/_action/status", "/f/_action/send_goal/_service_event"
	cases := []struct {
		name string
		o    Options
		qs   []question
	}{
		{"all", Options{All: true}, []question{
			{"/a", str, true}, {"/_a", str, false}, {"/x/_y/z", str, false},
			{srv, event, true}, {"/_p/add/_service_event", event, false},
			{srv, str, false}, // a hidden topic that only looks like a service event
			{status, statusType, true},
			{"/f/_action/feedback", "x/action/F_FeedbackMessage", true},
			{"/f/_action/send_goal/_service_event", "x/action/F_SendGoal_Event", true},
			{"/_f/_action/status", "action_msgs/msg/GoalStatusArray", false},
			{"/f/_action/other", str, false},
		}},
		{"all with hidden", Options{All: true, IncludeHidden: true}, []question{{"/_a", str, true}, {"/x/_y/z", str, true}}},
		{"all topics", Options{AllTopics: true}, []question{{"/a", str, true}, {"/_a", str, false}, {srv, event, false}, {status, statusType, false}}},
		{"all services", Options{AllServices: true}, []question{{"/a", str, false}, {srv, event, true}, {status, statusType, false},
			{sendGoal, "x/action/F_SendGoal_Event", false}}}, // events of an action's service belong to the action
		{"all actions", Options{AllActions: true}, []question{{"/a", str, false}, {srv, event, false}, {status, statusType, true},
			{sendGoal, "x/action/F_SendGoal_Event", true}}},
		{"named", Options{Topics: []string{"/a", "b", "/_h"}}, []question{
			{"/a", str, true}, {"/b", str, true}, {"/c", str, false}, {"/_h", str, true}, {"/a/b", str, false},
		}},
		{"named services and actions", Options{Services: []string{"add", "/_p/hidden"}, Actions: []string{"/f"}}, []question{
			{srv, event, true}, {"/_p/hidden/_service_event", event, true}, {"/sub/_service_event", event, false}, {"/add", str, false},
			{status, statusType, true}, {"/f/_action/feedback", "x/action/F_FeedbackMessage", true}, {sendGoal, "x/action/F_SendGoal_Event", true},
			{"/f/_action/cancel_goal/_service_event", "action_msgs/srv/CancelGoal_Event", true},
			{"/f/_action/get_result/_service_event", "x/action/F_GetResult_Event", true}, {"/g/_action/status", statusType, false}, {"/f", str, false},
		}},
		{"classes are independent", Options{AllServices: true, Actions: []string{"/f"}, Topics: []string{"/a"}, Regex: "^/r"}, []question{
			{"/a", str, true}, {"/b", str, false}, {"/r1", str, true}, {srv, event, true}, {"/x/_service_event", event, true},
			{status, statusType, true}, {"/g/_action/status", statusType, false}, {"/robot/_action/status", statusType, true},
		}},
		{"a topic that is named in full", Options{Topics: []string{srv, status}}, []question{{srv, event, true}, {status, statusType, true},
			{sendGoal, "x/action/F_SendGoal_Event", false}}},
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
		{"exclusions win", Options{All: true, Topics: []string{"/a"}, ExcludeTopics: []string{"a", "/sub", "/sub2/_service_event"},
			ExcludeServices: []string{"add", "/c"}, ExcludeActions: []string{"/f"}, ExcludeRegex: "^/rosout$",
			ExcludeTopicTypes: []string{"x/msg/Big"}}, []question{
			{"/a", str, false}, {srv, event, false}, {"/sub/_service_event", event, true}, {"/sub2/_service_event", event, false},
			{"/c", str, true}, {status, statusType, false}, {sendGoal, "x/action/F_SendGoal_Event", false}, {"/rosout", str, false}, {"/rosout2", str, true}, {"/img", "x/msg/Big", false},
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
		{Options{Node: node, Services: []string{"/s"}}, ""},
		{Options{Node: node, Actions: []string{"/a"}}, ""},
		{Options{Node: node, AllServices: true, ExcludeServices: []string{"/s"}}, ""},
		{Options{Node: node, AllActions: true, ExcludeActions: []string{"/s"}, ExcludeRegex: "x"}, ""},
		{Options{Node: node, Topics: []string{"/a"}, ExcludeTopics: []string{"/a"}}, "excluding topics needs something to exclude from"},
		{Options{Node: node, AllServices: true, ExcludeTopics: []string{"/a"}}, "excluding topics needs"},
		{Options{Node: node, AllTopics: true, ExcludeServices: []string{"/a"}}, "excluding services needs"},
		{Options{Node: node, AllTopics: true, ExcludeActions: []string{"/a"}}, "excluding actions needs"},
		{Options{Node: node, Actions: []string{"/a"}, ExcludeRegex: "/a"}, "excluding a regular expression needs"},
		{Options{Node: node, Services: []string{"/a b"}}, "not a valid"},
		{Options{Node: node, All: true, MsgPath: []string{"/does/not/exist"}}, "/does/not/exist"},
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

func TestOverriddenExpression(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Regex: "x"}, ""},
		{Options{All: true}, ""},
		{Options{All: true, Regex: "x"}, "the regular expression is ignored since everything is recorded"},
		{Options{AllTopics: true, AllServices: true, AllActions: true, Regex: "x"}, "the regular expression is ignored since everything is recorded"},
		{Options{AllTopics: true, AllActions: true, Regex: "x"}, "all topics and actions are recorded; the regular expression chooses among services only"},
		{Options{AllServices: true, Regex: "x"}, "all services are recorded; the regular expression chooses among topics and actions only"},
	} {
		f, err := newFilter(c.o)
		if got := f.overridden(); got != c.want || err != nil {
			t.Errorf("%+v: %q, %v", c.o, got, err)
		}
	}
}
