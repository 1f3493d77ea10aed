package ros_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gobag/gobag/ros"
)

func TestValidName(t *testing.T) {
	good := []string{"/a", "/camera/image_raw", "/_hidden", "/a/_b/c9", "/A__b", "/" + strings.Repeat("x", 246)}
	for _, name := range good {
		if err := ros.ValidName(name); err != nil {
			t.Errorf("ValidName(%q) = %v", name, err)
		}
	}
	bad := map[string]string{
		"":                             "empty",
		"a":                            "start with a slash",
		"/":                            "part between slashes is empty",
		"/a/":                          "part between slashes is empty",
		"//a":                          "part between slashes is empty",
		"/9a":                          "starts with a digit",
		"/a/2":                         "starts with a digit",
		"/a b":                         `" " is not a letter`,
		"/a-b":                         `"-" is not a letter`,
		"/ä":                           "is not a letter",
		"/~a":                          `"~" is not a letter`,
		"/" + strings.Repeat("x", 247): "more than 247",
	}
	for name, want := range bad {
		err := ros.ValidName(name)
		if !errors.Is(err, ros.ErrName) || !strings.Contains(err.Error(), want) {
			t.Errorf("ValidName(%q) = %v, want ErrName with %q", name, err, want)
		}
	}
}

func TestValidType(t *testing.T) {
	for _, name := range []string{"std_msgs/msg/String", "std_msgs/String", "a/srv/B_Event", "example_interfaces/action/Fibonacci_FeedbackMessage"} {
		if err := ros.ValidType(name); err != nil {
			t.Errorf("ValidType(%q) = %v", name, err)
		}
	}
	for _, name := range []string{"", "String", "/std_msgs/msg/String", "std_msgs//String", "std_msgs/msg/", "std_msgs::msg::String", "a/9", strings.Repeat("x/", 200) + "x"} {
		if err := ros.ValidType(name); !errors.Is(err, ros.ErrName) {
			t.Errorf("ValidType(%q) = %v, want ErrName", name, err)
		}
	}
}

func TestHiddenAndKinds(t *testing.T) {
	for name, want := range map[string]bool{"/a": false, "/a_b/c_": false, "/_a": true, "/a/_b/c": true, "/s/_service_event": true, "_a": true} {
		if got := ros.Hidden(name); got != want {
			t.Errorf("Hidden(%q) = %v", name, got)
		}
	}
	cases := []struct {
		name, typ       string
		event           bool
		service, action string
	}{
		{"/add/_service_event", "example_interfaces/srv/AddTwoInts_Event", true, "/add", ""},
		{"/add/_service_event", "std_msgs/msg/String", false, "/add", ""},
		{"/_service_event", "example_interfaces/srv/AddTwoInts_Event", false, "", ""},
		{"/fib/_action/feedback", "example_interfaces/action/Fibonacci_FeedbackMessage", false, "", "/fib"},
		{"/fib/_action/status", "action_msgs/msg/GoalStatusArray", false, "", "/fib"},
		{"/fib/_action/send_goal/_service_event", "example_interfaces/action/Fibonacci_SendGoal_Event", true, "/fib/_action/send_goal", "/fib"},
		{"/fib/_action/cancel_goal/_service_event", "action_msgs/srv/CancelGoal_Event", true, "/fib/_action/cancel_goal", "/fib"},
		{"/fib/_action/other", "std_msgs/msg/String", false, "", ""},
		{"/_action/status", "action_msgs/msg/GoalStatusArray", false, "", ""},
		{"/chatter", "std_msgs/msg/String", false, "", ""},
	}
	for _, c := range cases {
		if got := ros.IsServiceEvent(c.name, c.typ); got != c.event {
			t.Errorf("IsServiceEvent(%q, %q) = %v", c.name, c.typ, got)
		}
		if got := ros.ServiceOf(c.name); got != c.service {
			t.Errorf("ServiceOf(%q) = %q, want %q", c.name, got, c.service)
		}
		if got := ros.ActionOf(c.name); got != c.action {
			t.Errorf("ActionOf(%q) = %q, want %q", c.name, got, c.action)
		}
	}
}

func TestServiceAndActionTopics(t *testing.T) {
	if topic := ros.ServiceEventTopic("/add"); ros.ServiceOf(topic) != "/add" {
		t.Error(topic)
	}
	topics := ros.ActionTopics("/x/fib")
	if len(topics) != 5 {
		t.Errorf("%v", topics)
	}
	for _, topic := range topics {
		if ros.ActionOf(topic) != "/x/fib" {
			t.Error(topic)
		}
	}
}
