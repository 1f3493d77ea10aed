package rostest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/nodetest"
	"github.com/gobag/gobag/ros/rostest"
)

func factory(o rostest.Options) nodetest.Factory {
	return nodetest.Factory{Quiet: 20 * time.Millisecond, New: func(t *testing.T, n int) []ros.Node {
		net := rostest.NewNetwork(o)
		t.Cleanup(func() { // runs after the suite has closed the nodes
			if out := net.Outstanding(); out != 0 {
				t.Errorf("%d samples were not released", out)
			}
		})
		nodes := make([]ros.Node, n)
		for i := range nodes {
			nodes[i] = net.Node(fmt.Sprintf("n%d", i))
		}
		return nodes
	}}
}

func TestConformance(t *testing.T) { nodetest.Run(t, factory(rostest.Options{})) }

func TestConformanceWithDelay(t *testing.T) {
	nodetest.Run(t, factory(rostest.Options{Link: rostest.Link{Delay: 3 * time.Millisecond}}))
}
