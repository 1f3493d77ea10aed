package selection

import (
	"slices"
	"testing"
)

func TestClassify(t *testing.T) {
	for name, want := range map[string]Member{
		"/a":                                     {Topic, "/a"},
		"/add/_service_event":                    {Service, "/add"},
		"/fib/_action/status":                    {Action, "/fib"},
		"/fib/_action/send_goal/_service_event":  {Action, "/fib"},
		"/a/_service_event/b":                    {Topic, "/a/_service_event/b"},
		"/ns/sub/_action/feedback":               {Action, "/ns/sub"},
		"/ns/fib/_action/get_result/_service_ev": {Topic, "/ns/fib/_action/get_result/_service_ev"},
	} {
		if c, owner := Classify(name); (Member{c, owner}) != want {
			t.Errorf("%s is %s %s, want %s %s", name, c, owner, want.Class, want.Name)
		}
	}
}

func TestAbsent(t *testing.T) {
	n := NewNames([]string{"a", "/b", "/add/_service_event"}, []string{"/add", "/sub"}, []string{"/fib", "/a"})
	got, want := n.Absent([]string{"/a", "/add/_service_event", "fib/_action/status"}), []Member{{Topic, "/b"}, {Service, "/sub"}, {Action, "/a"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNames(t *testing.T) {
	n := NewNames([]string{"a", "/a", "/add/_service_event"}, []string{"add"}, []string{"/fib", "/none"})
	if want := []string{"/a", "/add/_service_event"}; !slices.Equal(n[Topic], want) {
		t.Errorf("topics %q, want %q", n[Topic], want)
	}
	for full, want := range map[string]bool{"/a": true, "/add": false, "/add/_service_event": true, "/fib/_action/status": true, "/fib": false, "/b": false} {
		if c, owner := Classify(full); n.Has(full, c, owner) != want {
			t.Errorf("%s is named: %v, want %v", full, !want, want)
		}
	}
	if got, want := n.Absent([]string{"a", "/add/_service_event", "/none"}), []Member{{Action, "/fib"}, {Action, "/none"}}; !slices.Equal(got, want) {
		t.Errorf("absent %v, want %v", got, want)
	}
}

func TestExpressions(t *testing.T) {
	x, err := Compile("b", "")
	if err != nil || x.Exclude != nil {
		t.Fatal(x, err)
	}
	for _, c := range []struct {
		f    func() (bool, error)
		want bool
		what string
	}{
		{func() (bool, error) { return FoundIn(x.Include, "a", "abc") }, true, "found in the second"},
		{func() (bool, error) { return MatchesWhole(x.Include, "a", "abc") }, false, "matches neither whole"},
		{func() (bool, error) { return MatchesWhole(x.Include, "a", "b") }, true, "matches the second whole"},
		{func() (bool, error) { return FoundIn(x.Exclude, "a") }, false, "no expression"},
		{func() (bool, error) { return MatchesWhole(x.Exclude, "") }, false, "no expression, no name"},
	} {
		if got, err := c.f(); got != c.want || err != nil {
			t.Errorf("%s: %v %v", c.what, got, err)
		}
	}
	if _, err := Compile("(", "["); err == nil {
		t.Error("compiled")
	}
}
