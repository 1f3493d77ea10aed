package ros2_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/nodetest"
	"github.com/gobag/gobag/ros/ros2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// local are options for nodes that see each other on loopback only.
func local(domain int) ros2.Options {
	return ros2.Options{Domain: domain, Range: ros2.RangeLocalhost, Interfaces: []string{"127.0.0.1"}}
}

func newNode(t *testing.T, o ros2.Options) *ros2.Node {
	t.Helper()
	n, err := ros2.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n
}

// Every test has a domain of its own, so that nobody hears the nodes of another; other packages' tests use lower ones.
func TestConformance(t *testing.T) {
	const first, last = 215, 223
	domain := last
	nodetest.Run(t, nodetest.Factory{Patience: 30 * time.Second, Quiet: 200 * time.Millisecond, New: func(t *testing.T, n int) []ros.Node {
		if domain++; domain > last {
			domain = first
		}
		nodes := make([]ros.Node, n)
		for i := range nodes {
			nodes[i] = newNode(t, local(domain))
		}
		return nodes
	}})
}
