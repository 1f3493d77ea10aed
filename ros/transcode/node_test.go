package transcode

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

// ros1Node is a node in memory that carries ROS 1's payloads and knows one definition.
type ros1Node struct {
	ros.Node
	typ, md5, text string
}

func (n *ros1Node) Definition(typ, md5 string) (string, bool) {
	return n.text, typ == n.typ && md5 == n.md5
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after 10 s", what)
		}
	}
}

// A network of ROS 1 is seen as one of ROS 2, its messages come as CDR, and what cannot be turned is counted.
func TestNode(t *testing.T) {
	net := rostest.NewNetwork(rostest.Options{})
	def, err := msg.BuiltinROS1("std_msgs/String")
	if err != nil {
		t.Fatal(err)
	}
	talker := net.Node("talker")
	var log bytes.Buffer
	n := NewNode(&ros1Node{net.Node("recorder"), "std_msgs/String", def.MD5(), def.Text()}, New(msg.Options{}), slog.New(slog.NewTextHandler(&log, nil)))
	defer talker.Close()
	defer n.Close()
	topic := ros.Topic{Name: "/chatter", Type: "std_msgs/String", TypeHash: def.MD5()}
	pub, err := talker.Advertise(topic, ros.DefaultQoS())
	if err != nil {
		t.Fatal(err)
	}
	seen := func() ros.Topic {
		for _, info := range n.Graph().Topics() {
			if info.Name == "/chatter" && len(info.Publishers) == 1 {
				return info.Publishers[0].Topic
			}
		}
		return ros.Topic{}
	}
	eventually(t, "graph", func() bool { return seen().Type == "std_msgs/msg/String" })
	if seen().TypeHash != "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18" {
		t.Errorf("the hash is %s", seen().TypeHash)
	}
	if encoding, text, ok := n.Define(seen().Type, seen().TypeHash); !ok || encoding != "ros2msg" || text != "string data\n" {
		t.Errorf("the definition is %s %q", encoding, text)
	}
	var mu sync.Mutex
	var got [][]byte
	sub, err := n.Subscribe(seen(), ros.BestAvailableQoS(), func(s ros.Sample) {
		mu.Lock()
		got = append(got, bytes.Clone(s.Data))
		mu.Unlock()
		if s.Cost < len(s.Data) {
			t.Errorf("cost %d of %d bytes", s.Cost, len(s.Data))
		}
		s.Release()
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "match", func() bool { return pub.Stats().Matched == 1 })
	for _, payload := range []string{"\x03\x00\x00\x00abc", "\x03\x00\x00\x00a\x00c", "\x01\x00\x00\x00d"} {
		if err := pub.Publish([]byte(payload), 1); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "messages", func() bool { return sub.Stats().Received == 2 && sub.Stats().Lost == 1 })
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || string(got[0]) != "\x00\x01\x00\x00\x04\x00\x00\x00abc\x00" || string(got[1]) != "\x00\x01\x00\x00\x02\x00\x00\x00d\x00" {
		t.Errorf("got %q", got)
	}
	if m := sub.Stats().Mismatches; len(m) != 1 || !strings.Contains(m[0].Reason, "NUL") {
		t.Errorf("mismatches are %+v", m)
	}
	if !strings.Contains(log.String(), "NUL") {
		t.Errorf("the log says %q", log.String())
	}
	if _, err := n.Advertise(seen(), ros.DefaultQoS()); err == nil {
		t.Error("it advertises")
	}
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
}
