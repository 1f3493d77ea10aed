package control

import (
	"errors"
	"io"
	"slices"
	"testing"
)

type triggerNode struct {
	offered map[string]func() (bool, string)
	refuse  string
}

type trigger struct {
	n    *triggerNode
	name string
}

func (t trigger) Close() error { delete(t.n.offered, t.name); return nil }

func (n *triggerNode) ServeTrigger(name string, handle func() (bool, string)) (io.Closer, error) {
	if name == n.refuse {
		return nil, errors.New("refused")
	}
	n.offered[name] = handle
	return trigger{n, name}, nil
}

func TestTriggers(t *testing.T) {
	ran := []string{}
	commands := Commands{
		"pause":          {Run: func(a []string) (any, error) { ran = append(ran, "pause"); return paused(true), nil }},
		"snapshot":       {Args: 2, Run: func(a []string) (any, error) { return nil, errors.New("no memory") }},
		"stop":           {Run: func(a []string) (any, error) { return nil, nil }},
		"stop-discovery": {Run: func(a []string) (any, error) { return nil, nil }},
	}
	for remote, want := range map[Remote][]string{RemoteOff: nil, RemoteLimited: {"/rec/pause", "/rec/snapshot"},
		RemoteFull: {"/rec/pause", "/rec/snapshot", "/rec/stop", "/rec/stop_discovery"}} {
		n := &triggerNode{offered: map[string]func() (bool, string){}}
		s, err := ServeTriggers(n, "/rec", commands, remote, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for name := range n.offered {
			got = append(got, name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v", remote, got)
		}
		if remote == RemoteFull {
			for name, want := range map[string]struct {
				ok   bool
				text string
			}{"/rec/pause": {true, `{"paused":true}`}, "/rec/snapshot": {false, "no memory"}, "/rec/stop": {true, ""}} {
				if ok, text := n.offered[name](); ok != want.ok || text != want.text {
					t.Errorf("%s: %v %q", name, ok, text)
				}
			}
		}
		if err := s.Close(); err != nil || len(n.offered) > 0 {
			t.Error(err, n.offered)
		}
	}
	n := &triggerNode{offered: map[string]func() (bool, string){}, refuse: "/rec/stop"}
	if _, err := ServeTriggers(n, "/rec", commands, RemoteFull, nil); err == nil || len(n.offered) > 0 {
		t.Error(err, n.offered)
	}
	if len(ran) != 1 {
		t.Error(ran)
	}
}
