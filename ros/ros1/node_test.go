package ros1_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros1"
	"github.com/gobag/gobag/ros/ros1/mastertest"
)

// sink keeps what arrives.
type sink struct {
	mu   sync.Mutex
	data [][]byte
}

func (s *sink) take(x ros.Sample) {
	s.mu.Lock()
	s.data = append(s.data, bytes.Clone(x.Data))
	s.mu.Unlock()
	x.Release()
}

func (s *sink) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.data)
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after 20 s", what)
		}
	}
}

func advertise(t *testing.T, n *ros1.Node, topic ros.Topic, q ros.QoS) ros.Publisher {
	t.Helper()
	p, err := n.Advertise(topic, q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func subscribe(t *testing.T, n *ros1.Node, topic ros.Topic) (ros.Subscription, *sink) {
	t.Helper()
	s := new(sink)
	sub, err := n.Subscribe(topic, ros.BestAvailableQoS(), s.take)
	if err != nil {
		t.Fatal(err)
	}
	return sub, s
}

func publish(t *testing.T, p ros.Publisher, data ...[]byte) {
	t.Helper()
	for _, d := range data {
		if err := p.Publish(d, 0); err != nil {
			t.Fatal(err)
		}
	}
}

func matched(p ros.Publisher, n int) func() bool {
	return func() bool { return p.Stats().Matched == n }
}

var latching = ros.QoS{Reliability: ros.Reliable, Durability: ros.TransientLocal, History: ros.KeepLast, Depth: 1}

const stringMD5 = "992ce8a1687cec8c8bd883ec73ca41d1"

// A latching publisher gives its last message to who comes later, and is seen as one.
func TestLatching(t *testing.T) {
	t.Parallel()
	m := mastertest.Start(t)
	a, b := newNode(t, ros1.Options{Master: m.URI()}), newNode(t, ros1.Options{Master: m.URI()})
	topic := ros.Topic{Name: "/map", Type: "std_msgs/String"}
	p := advertise(t, a, topic, latching)
	publish(t, p, []byte("first"), []byte("last"))
	_, s := subscribe(t, b, topic)
	eventually(t, "latched message", func() bool { return s.len() == 1 })
	if string(s.data[0]) != "last" {
		t.Errorf("got %q", s.data[0])
	}
	eventually(t, "graph", func() bool {
		for _, info := range b.Graph().Topics() {
			if info.Name == "/map" && len(info.Publishers) == 1 && info.Publishers[0].QoS.Durability == ros.TransientLocal {
				return info.Publishers[0].Topic.TypeHash == stringMD5
			}
		}
		return false
	})
}

// Definitions come with the connection.
func TestDefinition(t *testing.T) {
	m := mastertest.Start(t)
	a, b := newNode(t, ros1.Options{Master: m.URI()}), newNode(t, ros1.Options{Master: m.URI()})
	const text = "# mine\nuint8 x\n"
	md5, err := a.Define("my_msgs/Thing", text)
	if err != nil {
		t.Fatal(err)
	}
	topic := ros.Topic{Name: "/thing", Type: "my_msgs/Thing", TypeHash: md5}
	p := advertise(t, a, topic, ros.DefaultQoS())
	if _, ok := b.Definition("my_msgs/Thing", md5); ok {
		t.Error("the definition is known before anybody gave it")
	}
	sub, s := subscribe(t, b, ros.Topic{Name: "/thing", Type: "my_msgs/Thing"})
	eventually(t, "match", matched(p, 1))
	publish(t, p, []byte{1})
	eventually(t, "message", func() bool { return s.len() == 1 })
	if got, ok := b.Definition("my_msgs/Thing", md5); !ok || got != text {
		t.Errorf("the definition is %q", got)
	}
	if sub.Topic().TypeHash != md5 {
		t.Errorf("the subscription has md5sum %s", sub.Topic().TypeHash)
	}
	if _, err := a.Define("my_msgs/Other", "Missing x\n"); err == nil {
		t.Error("a definition that refers to nothing was accepted")
	}
}

// Two publishers with different definitions are not mixed: the second is named as a mismatch.
func TestDefinitionsDiffer(t *testing.T) {
	m := mastertest.Start(t)
	a, b, c := newNode(t, ros1.Options{Master: m.URI()}), newNode(t, ros1.Options{Master: m.URI()}), newNode(t, ros1.Options{Master: m.URI()})
	topic := ros.Topic{Name: "/thing", Type: "my_msgs/Thing"}
	first, second := topic, topic
	var err error
	if first.TypeHash, err = a.Define(topic.Type, "uint8 x\n"); err != nil {
		t.Fatal(err)
	}
	if second.TypeHash, err = b.Define(topic.Type, "uint16 x\n"); err != nil {
		t.Fatal(err)
	}
	p := advertise(t, a, first, ros.DefaultQoS())
	sub, s := subscribe(t, c, topic)
	eventually(t, "match", matched(p, 1))
	q := advertise(t, b, second, ros.DefaultQoS())
	eventually(t, "mismatch", func() bool { return len(sub.Stats().Mismatches) == 1 })
	publish(t, q, []byte{1, 2})
	publish(t, p, []byte{1})
	eventually(t, "message", func() bool { return s.len() == 1 })
	if len(s.data[0]) != 1 {
		t.Error("the other definition came through")
	}
	if _, err := a.Advertise(ros.Topic{Name: "/thing", Type: "std_msgs/String"}, ros.DefaultQoS()); err == nil {
		t.Error("one topic was advertised with two types")
	}
}

// After a restart of the master, which forgets everybody, what is connected goes on and what is new is found.
func TestMasterRestart(t *testing.T) {
	t.Parallel()
	m := mastertest.Start(t)
	a, b := newNode(t, ros1.Options{Master: m.URI()}), newNode(t, ros1.Options{Master: m.URI()})
	topic := ros.Topic{Name: "/chatter", Type: "std_msgs/String"}
	_, s := subscribe(t, b, topic)
	p := advertise(t, a, topic, ros.DefaultQoS())
	eventually(t, "match", matched(p, 1))
	m.Stop()
	publish(t, p, []byte("without a master"))
	eventually(t, "message while the master is gone", func() bool { return s.len() == 1 })
	_, late := subscribe(t, b, ros.Topic{Name: "/late", Type: "std_msgs/String"}) // cannot be registered yet
	m.Start()
	q := advertise(t, a, ros.Topic{Name: "/late", Type: "std_msgs/String"}, ros.DefaultQoS())
	eventually(t, "match after the restart", matched(q, 1))
	publish(t, q, []byte("after"))
	publish(t, p, []byte("after"))
	eventually(t, "messages after the restart", func() bool { return late.len() == 1 && s.len() == 2 })
	eventually(t, "graph after the restart", func() bool {
		n := 0
		for _, info := range b.Graph().Topics() {
			n += len(info.Publishers) + len(info.Subscriptions)
		}
		return n == 4
	})
	if p.Stats().Matched != 1 {
		t.Error("the connection was opened twice")
	}
}

// A publisher that dies and comes back is another writer.
func TestPublisherRestart(t *testing.T) {
	t.Parallel()
	m := mastertest.Start(t)
	b := newNode(t, ros1.Options{Master: m.URI()})
	topic := ros.Topic{Name: "/chatter", Type: "std_msgs/String"}
	sub, s := subscribe(t, b, topic)
	for life := range 3 {
		a, err := ros1.New(ros1.Options{Master: m.URI(), Poll: 10 * time.Millisecond, Name: fmt.Sprintf("life%d", life)})
		if err != nil {
			t.Fatal(err)
		}
		p := advertise(t, a, topic, ros.DefaultQoS())
		eventually(t, "match", matched(p, 1))
		publish(t, p, []byte{byte(life)})
		eventually(t, "message", func() bool { return s.len() == life+1 })
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if st := sub.Stats(); st.Received != 3 || len(st.Writers) != 3 || st.Lost != 0 {
		t.Errorf("stats are %+v", st)
	}
}

// Messages beyond 16 MiB pass; one that is larger than what is taken is counted as lost, and the next ones come.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	m := mastertest.Start(t)
	const limit = 18 << 20
	a, b := newNode(t, ros1.Options{Master: m.URI(), MaxBlocking: 10 * time.Second}), newNode(t, ros1.Options{Master: m.URI(), MaxMessage: limit})
	topic := ros.Topic{Name: "/image", Type: "std_msgs/String"}
	sub, s := subscribe(t, b, topic)
	p := advertise(t, a, topic, ros.DefaultQoS())
	eventually(t, "match", matched(p, 1))
	big := make([]byte, 17<<20)
	for i := 0; i < len(big); i += 1000 {
		big[i] = byte(i >> 10)
	}
	publish(t, p, big, make([]byte, limit+1), []byte("small"))
	eventually(t, "messages", func() bool { return s.len() == 2 })
	if !bytes.Equal(s.data[0], big) || string(s.data[1]) != "small" {
		t.Error("payloads differ")
	}
	if st := sub.Stats(); st.Received != 2 || st.Lost != 1 || st.Writers[0].Lost != 1 {
		t.Errorf("stats are %+v", st)
	}
}

// A subscriber that does not read costs messages, which are counted, and time only as long as was allowed.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	m := mastertest.Start(t)
	a, b := newNode(t, ros1.Options{Master: m.URI(), Window: 1 << 20, MaxBlocking: time.Millisecond}), newNode(t, ros1.Options{Master: m.URI()})
	topic := ros.Topic{Name: "/flood", Type: "std_msgs/String"}
	p := advertise(t, a, topic, ros.DefaultQoS())
	release := make(chan struct{})
	var once sync.Once
	var got sync.WaitGroup
	got.Add(1)
	if _, err := b.Subscribe(topic, ros.DefaultQoS(), func(x ros.Sample) {
		once.Do(got.Done)
		<-release
		x.Release()
	}); err != nil {
		t.Fatal(err)
	}
	defer close(release)
	eventually(t, "match", matched(p, 1))
	data := make([]byte, 512<<10)
	publish(t, p, data)
	got.Wait()
	for range 100 {
		publish(t, p, data)
	}
	st := p.Stats()
	if st.Dropped == 0 || st.Dropped > 100 || st.Sent != 101 {
		t.Errorf("stats are %+v", st)
	}
}

func TestOptions(t *testing.T) {
	env := func(kv map[string]string) func(string) string { return func(k string) string { return kv[k] } }
	o, warnings, err := ros1.OptionsFromEnv(env(map[string]string{"ROS_MASTER_URI": "http://robot:11311", "ROS_IP": "10.0.0.1", "ROS_HOSTNAME": "robot.local", "ROS_NAMESPACE": "/x"}))
	if err != nil || o.Master != "http://robot:11311" || o.Host != "robot.local" || len(warnings) != 1 {
		t.Errorf("%+v, %q, %v", o, warnings, err)
	}
	if o, _, _ := ros1.OptionsFromEnv(env(map[string]string{"ROS_MASTER_URI": "http://robot", "ROS_IP": "10.0.0.1"})); o.Host != "10.0.0.1" {
		t.Errorf("host is %q", o.Host)
	}
	for _, uri := range []string{"", "robot:11311", "https://robot:11311", "http://"} {
		if _, _, err := ros1.OptionsFromEnv(env(map[string]string{"ROS_MASTER_URI": uri})); err == nil {
			t.Errorf("ROS_MASTER_URI=%s was accepted", uri)
		}
	}
	if _, err := ros1.New(ros1.Options{Master: "http://127.0.0.1:1"}); err == nil {
		t.Error("joined without a master")
	}
	m := mastertest.Start(t)
	if _, err := ros1.New(ros1.Options{Master: m.URI(), Name: "not a name"}); err == nil {
		t.Error("a node name with blanks was accepted")
	}
	n := newNode(t, ros1.Options{Master: m.URI(), Name: "rec"})
	if o := newNode(t, ros1.Options{Master: m.URI(), Name: "rec"}); o.Name() == n.Name() {
		t.Error("two nodes have one name")
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Subscribe(ros.Topic{Name: "/x", Type: "std_msgs/String"}, ros.DefaultQoS(), func(ros.Sample) {}); !errors.Is(err, ros.ErrClosed) {
		t.Error(err)
	}
}

// Receiving allocates nothing per message.
func TestAllocations(t *testing.T) {
	m := mastertest.Start(t)
	a, b := newNode(t, ros1.Options{Master: m.URI(), Poll: time.Hour, MaxBlocking: time.Second}), newNode(t, ros1.Options{Master: m.URI(), Poll: time.Hour})
	topic := ros.Topic{Name: "/n", Type: "std_msgs/String"}
	got := make(chan struct{}, 1)
	if _, err := b.Subscribe(topic, ros.DefaultQoS(), func(x ros.Sample) {
		x.Release()
		got <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	p := advertise(t, a, topic, ros.DefaultQoS())
	eventually(t, "match", matched(p, 1))
	data := make([]byte, 1000)
	n := testing.AllocsPerRun(2000, func() {
		if err := p.Publish(data, 0); err != nil {
			t.Fatal(err)
		}
		<-got
	})
	if n > 4 { // those of sending
		t.Errorf("%v allocations a message", n)
	}
}
