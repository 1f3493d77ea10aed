package nodetest

import (
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
)

// Factory makes the nodes under test and says what the transport cannot do.
type Factory struct {
	// New returns n nodes that see each other and nothing else. They are fresh for every test; the suite closes them.
	New func(t *testing.T, n int) []ros.Node

	Patience time.Duration // how long something may take before it counts as failed; 0 = 20 s
	Quiet    time.Duration // how long nothing must happen where nothing should; 0 = 100 ms

	NoQoS  bool // no reliability, durability and mismatches
	NoHash bool // no type hashes

	NoStamps bool // neither source stamps nor sequence numbers travel
	OneType  bool // a topic has one type
	OneLink  bool // the subscriptions of a node to one topic count as one
}

// suite is one run for one factory.
type suite struct{ Factory }

// Run runs the suite.
func Run(t *testing.T, f Factory) {
	if f.Patience == 0 {
		f.Patience = 20 * time.Second
	}
	if f.Quiet == 0 {
		f.Quiet = 100 * time.Millisecond
	}
	s := suite{f}
	tests := []struct {
		name string
		skip bool
		run  func(*testing.T)
	}{
		{"PublisherFirst", false, s.publisherFirst},
		{"SubscriptionFirst", false, s.subscriptionFirst},
		{"Sizes", false, s.sizes},
		{"SeveralTopics", false, s.severalTopics},
		{"OwnPublishers", false, s.ownPublishers},
		{"TwoSubscriptions", false, s.twoSubscriptions},
		{"SampleOwnership", false, s.sampleOwnership},
		{"Latched", f.NoQoS, s.latched},
		{"LatchedAfterSubscribe", f.NoQoS, s.latchedAfterSubscribe},
		{"LatchedDepth", f.NoQoS, s.latchedDepth},
		{"MixedQoS", f.NoQoS, s.mixedQoS},
		{"PublishersComeAndGo", false, s.comeAndGo},
		{"Mismatch", f.NoQoS, s.mismatch},
		{"TypeConflict", f.OneType, s.typeConflict},
		{"GraphShowsEndpoints", false, s.graphEndpoints},
		{"GraphQoS", f.NoQoS, s.graphQoS},
		{"HashEcho", f.NoHash, s.hashEcho},
		{"Changed", false, s.changed},
		{"CloseSubscription", false, s.closeSubscription},
		{"ClosePublisher", false, s.closePublisher},
		{"CloseNode", false, s.closeNode},
		{"StatsOutliveClose", false, s.statsOutliveClose},
		{"BadRequests", false, s.badRequests},
		{"ConcurrentUse", false, s.concurrentUse},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.skip {
				t.Skip("not a feature of this transport")
			}
			test.run(t)
		})
	}
}

// nodes returns n fresh nodes that are closed at the end of the test.
func (s suite) nodes(t *testing.T, n int) []ros.Node {
	t.Helper()
	nodes := s.New(t, n)
	t.Cleanup(func() {
		for _, node := range nodes {
			if err := node.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
	return nodes
}

// eventually waits until ok returns "", and fails with what it last returned.
func (s suite) eventually(t *testing.T, what string, ok func() (problem string)) {
	t.Helper()
	deadline := time.Now().Add(s.Patience)
	for {
		problem := ok()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v: %s", what, s.Patience, problem)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
