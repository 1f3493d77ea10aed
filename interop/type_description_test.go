//go:build linux

package interop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// secret is a topic of a type that no distribution of ROS has.
var secret = lab.Topic{Kind: lab.Reading, Name: "/meter/reading", Hz: 50}

// server is a publisher of secret that serves the type by <node>/get_type_description.
type server struct {
	*lab.Proc
	topics []lab.Topic
	hash   string
}

// serve starts a server of the vendor. It is the node /lab/meter.
func serve(t *testing.T, n *lab.Net, v lab.Vendor, options ...string) *server {
	t.Helper()
	d, err := lab.WriteDefinitions(t.TempDir(), lab.SecretFiles, secret.Kind.Type())
	must(t, err)
	topic := secret
	topic.Hash = d.Hash[topic.Kind.Type()]
	topics := []lab.Topic{topic}
	p := publishAs(t, n, v, topics, append([]string{"--node", "/lab/meter:16", "--definitions", d.Dir}, options...)...)
	return &server{Proc: p, topics: topics, hash: topic.Hash}
}

// eachVendor runs a test with each of the two vendors.
func eachVendor(t *testing.T, test func(t *testing.T, n *lab.Net, v lab.Vendor)) {
	t.Parallel()
	needPeers(t)
	for _, v := range []lab.Vendor{lab.Cyclone, lab.Fast} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			test(t, newNet(t), v)
		})
	}
}

// The client of the graph gets the files of a type from the services of both vendors, and their refusals.
func TestTypeDescriptionService(t *testing.T) {
	eachVendor(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		s := serve(t, n, v)
		e, err := n.Ask(secret.Name)
		must(t, err)
		sources, _ := e["sources"].([]any)
		want := []string{"secret_msgs/msg/Reading", "builtin_interfaces/msg/Time", "secret_msgs/msg/Sample", "std_msgs/msg/Header"}
		if len(sources) != len(want) || e.Text("hash") != s.hash || e.Text("node") != "/lab/meter" {
			t.Fatalf("answer: %v", e)
		}
		for i, v := range sources {
			got := lab.Event(v.(map[string]any))
			text := strings.TrimSuffix(lab.SecretFiles[want[i]+".msg"], "\n")
			if got.Text("Type") != want[i] || got.Text("Encoding") != "msg" || got.Text("Text") != text {
				t.Errorf("source %d: %v, want %s, msg, %q", i, got, want[i], text)
			}
		}
		// rcl looks a type up by its hash alone.
		e, err = n.Ask(secret.Name, "-hash", "RIHS01_"+strings.Repeat("0123", 16))
		must(t, err)
		if !strings.Contains(e.Text("reason"), "Type not currently in use by this node") {
			t.Errorf("an unknown hash: %v", e)
		}
		must(t, s.Stop(patience))
		asked := s.Events("asked")
		if len(asked) < 2 || asked[0].Text("result") != "served" || asked[0].Text("type") != secret.Kind.Type() {
			t.Errorf("the server was asked: %v", asked)
		}
	})
}

// A service that comes after its topic is found; one that never answers or refuses ends in an error; names are not needed.
func TestTypeDescriptionOddServices(t *testing.T) {
	eachVendor(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		for _, c := range []struct {
			name, options, flags, reason string
		}{
			{"late", "--late 2", "", ""},
			{"nameless", "--names 0", "", ""},
			{"refuse", "--refuse 1", "", "Not served today"},
			{"silent", "--silent 1", "-timeout 3s", "deadline"},
			{"none", "--late 100", "-timeout 2s", "deadline"},
		} {
			s := serve(t, n, v, strings.Fields(c.options)...)
			e, err := n.Ask(secret.Name, strings.Fields(c.flags)...)
			must(t, err)
			sources, _ := e["sources"].([]any)
			if reason := e.Text("reason"); (c.reason == "") != (len(sources) == 4) || !strings.Contains(reason, c.reason) {
				t.Errorf("%s: %v", c.name, e)
			}
			must(t, s.Stop(patience))
			time.Sleep(100 * time.Millisecond)
		}
	})
}
