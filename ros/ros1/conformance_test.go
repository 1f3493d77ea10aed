package ros1_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/nodetest"
	"github.com/gobag/gobag/ros/ros1"
	"github.com/gobag/gobag/ros/ros1/mastertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newNode(t *testing.T, o ros1.Options) *ros1.Node {
	t.Helper()
	if o.Poll == 0 {
		o.Poll = 10 * time.Millisecond
	}
	n, err := ros1.New(o)
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

func TestConformance(t *testing.T) {
	t.Parallel()
	nodetest.Run(t, nodetest.Factory{NoQoS: true, NoHash: true, NoStamps: true, OneType: true, OneLink: true, Quiet: 30 * time.Millisecond,
		New: func(t *testing.T, n int) []ros.Node {
			m := mastertest.Start(t)
			nodes := make([]ros.Node, n)
			for i := range nodes {
				nodes[i] = newNode(t, ros1.Options{Master: m.URI(), MaxBlocking: 5 * time.Second})
			}
			return nodes
		}})
}
