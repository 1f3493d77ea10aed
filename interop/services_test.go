//go:build linux

package interop_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// The topics of a service with introspection, /add, and of an action, /fib; and two plain ones, one of them hidden. What the
// samples hold is no matter to a recorder.
var (
	serviceTopics = []lab.Topic{
		{Kind: lab.Blob, Name: "/add/_service_event", As: "example_interfaces::srv::dds_::AddTwoInts_Event_", Hz: 20, Size: 40},
	}
	actionTopics = []lab.Topic{
		{Kind: lab.Blob, Name: "/fib/_action/feedback", As: "example_interfaces::action::dds_::Fibonacci_FeedbackMessage_", Hz: 20, Size: 40},
		{Kind: lab.Blob, Name: "/fib/_action/status", As: "action_msgs::msg::dds_::GoalStatusArray_", Hz: 5, TransientLocal: true},
		{Kind: lab.Blob, Name: "/fib/_action/send_goal/_service_event", As: "example_interfaces::action::dds_::Fibonacci_SendGoal_Event_", Hz: 5},
		{Kind: lab.Blob, Name: "/fib/_action/get_result/_service_event", As: "example_interfaces::action::dds_::Fibonacci_GetResult_Event_", Hz: 5},
		{Kind: lab.Blob, Name: "/fib/_action/cancel_goal/_service_event", As: "action_msgs::srv::dds_::CancelGoal_Event_", Hz: 5},
	}
	plainTopics  = []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 50}}
	hiddenTopics = []lab.Topic{{Kind: lab.Imu, Name: "/_hidden/imu", Hz: 50}}
)

// Services and actions are recorded as the topics that they are, by -a and by their names, and nothing else with them; and
// what is played of them reaches subscribers of both vendors.
func TestServicesAndActions(t *testing.T) {
	eachVendor(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		all := slices.Concat(serviceTopics, actionTopics, plainTopics)
		recordings := []struct {
			flags  []string
			topics []lab.Topic
			*lab.Recording
		}{
			{flags: []string{"-a"}}, // all, and that of the server
			{flags: []string{"--services", "/add"}, topics: serviceTopics},
			{flags: []string{"--actions", "/fib"}, topics: actionTopics},
		}
		for i := range recordings {
			r := &recordings[i]
			var err error
			r.Recording, err = gobag.RecordWith(n, filepath.Join(t.TempDir(), "bag"), append(r.flags, "-s", "sqlite3", "--remote-control", "off")...)
			must(t, err)
			t.Cleanup(r.Kill)
		}
		// A server beside them: its requests and replies are not recorded. It waits for -a.
		served := serve(t, n, v, "--wait", "1")
		publishAs(t, n, v, hiddenTopics)
		// Each is heard by -a and, but for the plain topic, by its kind.
		pub := publishAs(t, n, v, all[:len(all)-1], "--seconds", "2", "--wait", "2")
		plain := publishAs(t, n, v, plainTopics, "--seconds", "2", "--wait", "1")
		must(t, pub.Wait(patience))
		must(t, plain.Wait(patience))
		must(t, served.Stop(patience))
		sent := lab.SentBy(pub)
		for _, p := range []*lab.Proc{plain, served.Proc} {
			for name, s := range lab.SentBy(p) {
				sent[name] = s
			}
		}
		for i := range recordings {
			r := &recordings[i]
			must(t, r.Stop(patience))
			if i == 0 {
				r.topics = slices.Concat(all, served.topics)
			}
			whole(t, r.Dir, r.topics, sent)
		}

		cySub, cyLog := subscribeAs(t, n, lab.Cyclone, all)
		faSub, faLog := subscribeAs(t, n, lab.Fast, all)
		play, err := gobag.Play(n, recordings[0].Dir, "-d", "1", "--wait-for-all-acked", "5000")
		must(t, err)
		t.Cleanup(play.Kill)
		must(t, play.Wait(patience))
		time.Sleep(300 * time.Millisecond)
		must(t, cySub.Stop(patience))
		must(t, faSub.Stop(patience))
		for _, log := range []string{cyLog, faLog} {
			numbers := numbersOf(t, log, all)
			for _, topic := range all {
				if seq := lab.Sequence(numbers[topic.Name]); seq != (lab.Run{First: 0, Last: sent[topic.Name].Count - 1}) {
					t.Errorf("played %s: %+v, want 0 to %d", topic.Name, seq, sent[topic.Name].Count-1)
				}
			}
		}
	})
}
