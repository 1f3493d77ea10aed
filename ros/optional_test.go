package ros_test

import (
	"testing"

	"github.com/gobag/gobag/ros"
)

// plainNode remembers how it was asked.
type plainNode struct {
	ros.Node
	asked string
}

func (n *plainNode) Advertise(ros.Topic, ros.QoS) (ros.Publisher, error) {
	n.asked = "plain"
	return nil, nil
}

type encodedNode struct{ plainNode }

func (n *encodedNode) AdvertiseAs(ros.Topic, ros.QoS, []byte) (ros.Publisher, error) {
	n.asked = "encoded"
	return nil, nil
}

func TestAdvertiseAs(t *testing.T) {
	plain, encoded := new(plainNode), new(encodedNode)
	for _, n := range []ros.Node{plain, encoded} {
		if _, err := ros.AdvertiseAs(n, ros.Topic{}, ros.QoS{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if plain.asked != "plain" || encoded.asked != "encoded" {
		t.Errorf("the nodes were asked %q and %q", plain.asked, encoded.asked)
	}
}

// A released sample is given back once, with its data, and holds nothing any more.
func TestSampleRelease(t *testing.T) {
	var o owner
	s := ros.Sample{Data: []byte("x"), Owner: &o}
	s.Release()
	s.Release() // of a sample without owner: nothing
	if o.released != 1 || o.data != "x" || s.Data != nil || s.Owner != nil {
		t.Errorf("released %d times with %q, left %+v", o.released, o.data, s)
	}
}

type owner struct {
	released int
	data     string
}

func (o *owner) Release(data []byte) { o.released, o.data = o.released+1, string(data) }
