package perf

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

// collector subscribes topics and keeps copies of what comes.
type collector struct {
	mu  sync.Mutex
	got map[string][][]byte
}

func collect(t *testing.T, node ros.Node, topics ...ros.Topic) *collector {
	t.Helper()
	c := &collector{got: map[string][][]byte{}}
	for _, topic := range topics {
		_, err := node.Subscribe(topic, ros.BestAvailableQoS(), func(s ros.Sample) {
			c.mu.Lock()
			c.got[topic.Name] = append(c.got[topic.Name], append([]byte(nil), s.Data...))
			c.mu.Unlock()
			s.Release()
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// of returns what has come on a topic.
func (c *collector) of(topic string) [][]byte {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[topic]
}

func TestRobot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{})
		robotNode, other := net.Node("robot"), net.Node("other")
		defer robotNode.Close()
		defer other.Close()
		streams := DemoStreams(someStamp)
		r, err := NewRobot(robotNode, streams)
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.WaitMatched(short); err == nil || !strings.Contains(err.Error(), "0 of 5 topics") {
			t.Errorf("nobody subscribes: %v", err)
		}
		var topics []ros.Topic
		for _, s := range streams {
			topics = append(topics, s.Topic)
		}
		c := collect(t, other, topics...)
		if err := r.WaitMatched(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Run(t.Context(), 2*time.Second); err != nil {
			t.Fatal(err)
		}
		for i, s := range streams {
			want := uint64(1)
			if s.Period > 0 {
				want = uint64(2 * time.Second / s.Period)
			}
			got := c.of(s.Topic.Name)
			if r.Sent()[i] != want || uint64(len(got)) != want {
				t.Errorf("%s: sent %d, received %d, want %d", s.Topic.Name, r.Sent()[i], len(got), want)
			}
			for n, m := range got {
				if ok, _ := s.Matches(nil, uint64(n), m); !ok {
					t.Errorf("%s: message %d differs", s.Topic.Name, n)
					break
				}
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Error("second Close:", err)
		}
	})
}

func TestPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{})
		pub, sub := net.Node("pub"), net.Node("sub")
		defer pub.Close()
		defer sub.Close()
		l := Load{Groups: []Group{{Name: "t", Instances: 20, Frequency: 50, Size: 100}}, Duration: 2 * time.Second, Seed: 3}
		c := collect(t, sub, l.Topics()...)
		res, err := Publish(t.Context(), pub, l)
		if err != nil {
			t.Fatal(err)
		}
		if res.Expected != 2000 || res.Sent != 2000 || len(res.PerTopic) != 20 || !res.Acked || res.Dropped != 0 {
			t.Errorf("%+v", res)
		}
		if res.LateMax > 50*time.Millisecond || res.Seconds < 1.9 || res.Seconds > 2.5 {
			t.Errorf("late %v, took %v s", res.LateMax, res.Seconds)
		}
		for i, topic := range l.Topics() {
			for k, m := range c.of(topic.Name) {
				d, err := cdr.NewDecoder(m)
				if err != nil {
					t.Fatal(err)
				}
				data := d.ByteSeq()
				if len(data) != 100 || binary.LittleEndian.Uint64(data) != uint64(i) || binary.LittleEndian.Uint64(data[8:]) != uint64(k) {
					t.Fatalf("%s message %d: % x", topic.Name, k, data[:min(16, len(data))])
				}
			}
			if len(c.of(topic.Name)) != 100 || res.PerTopic[i] != 100 {
				t.Errorf("%s: %d received, %d sent", topic.Name, len(c.of(topic.Name)), res.PerTopic[i])
			}
		}
	})
}

// TestPublishStall: a subscription that stalls shows in the lateness of everything that was due meanwhile, not in one
// call only.
func TestPublishStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{QueueBytes: 1000, MaxBlocking: 400 * time.Millisecond})
		pub, sub := net.Node("pub"), net.Node("sub")
		defer pub.Close()
		defer sub.Close()
		l := Load{Groups: []Group{{Name: "t", Instances: 1, Frequency: 100, Size: 200}}, Duration: time.Second}
		n := 0
		_, err := sub.Subscribe(l.Topics()[0], ros.BestAvailableQoS(), func(s ros.Sample) {
			if n++; n == 20 {
				time.Sleep(300 * time.Millisecond)
			}
			s.Release()
		})
		if err != nil {
			t.Fatal(err)
		}
		res, err := Publish(t.Context(), pub, l)
		if err != nil {
			t.Fatal(err)
		}
		if res.Sent != 100 || res.CallMax < 200*time.Millisecond || res.LateMax < res.CallMax*9/10 {
			t.Errorf("%+v", res)
		}
		if res.LateP50 < time.Millisecond && res.LateP99 < 200*time.Millisecond {
			t.Errorf("the stall is hidden: %+v", res)
		}
	})
}

func TestPublishStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{})
		pub, sub := net.Node("pub"), net.Node("sub")
		defer pub.Close()
		defer sub.Close()
		l := Load{Groups: []Group{{Name: "t", Instances: 2, Frequency: 10, Size: 24}}, Duration: time.Hour}
		collect(t, sub, l.Topics()...)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		res, err := Publish(ctx, pub, l)
		if err != nil || res.Sent < 50 || res.Sent > 70 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func TestLoadValidate(t *testing.T) {
	good := Load{Groups: []Group{{Name: "t", Instances: 1, Frequency: 0.1, Size: 24}, {Name: "big_one", Instances: 2, Frequency: 5, Size: 100, Count: 7, Depth: 3, Reliability: "best_effort", Durability: "transient_local"}}, Duration: 1}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if good.Expected() != 1+14 || len(good.Topics()) != 3 || good.Topics()[2].Name != "/perf/big_one0001" || good.Span() != 10*time.Second {
		t.Errorf("expected %d, topics %v, span %v", good.Expected(), good.Topics(), good.Span())
	}
	err := Load{Groups: []Group{{Name: "t", Instances: 0, Frequency: -1, Size: 15, Reliability: "system_default"}, {Name: "t", Count: -1}, {Name: "a1", Durability: "granite"}, {}}}.Validate()
	for _, want := range []string{"instances 0", "frequency -1", "size 15", "duration 0s", `two groups have the name "t"`, "count and depth", `name "a1"`, `name ""`, "neither reliable", "granite"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err := (Load{Groups: []Group{{Name: "a", Instances: 9000, Frequency: 1, Size: 24}, {Name: "b", Instances: 9000, Frequency: 1, Size: 24}}, Duration: 1}).Validate(); err == nil || !strings.Contains(err.Error(), "18000 topics") {
		t.Error(err)
	}
}

// TestPublishGroups: groups of different rates and counts each keep their own time.
func TestPublishGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := rostest.NewNetwork(rostest.Options{})
		pub, sub := net.Node("pub"), net.Node("sub")
		defer pub.Close()
		defer sub.Close()
		l := Load{Groups: []Group{{Name: "slow", Instances: 1, Frequency: 2, Size: 1000, Compressible: 0.5}, {Name: "fast", Instances: 3, Frequency: 200, Size: 24, Count: 300}}, Duration: 2 * time.Second, Seed: 5}
		c := collect(t, sub, l.Topics()...)
		res, err := Publish(t.Context(), pub, l)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(res.PerTopic) != "[4 300 300 300]" || res.Seconds < 1.4 || res.Seconds > 2.1 || res.Start == 0 || len(res.LateOverTime) == 0 {
			t.Errorf("%+v", res)
		}
		for i, topic := range l.Topics() {
			want := l.groupData(min(i, 1))
			for k, m := range c.of(topic.Name) {
				s, err := (&countedTopic{typ: loadType, number: i}).stamp(m, want, l.Seed, res.Start)
				if err != nil || s.number != int64(k) {
					t.Fatalf("%s message %d: %+v, %v", topic.Name, k, s, err)
				}
				if k > 0 && i > 0 && s.due < res.Start+int64(k)*5e6 {
					t.Fatalf("%s message %d: due %d ns after the start", topic.Name, k, s.due-res.Start)
				}
			}
		}
	})
}

// TestCompressible: the share that is to compress does, the rest does not, also not by what was in earlier messages.
func TestCompressible(t *testing.T) {
	for share, want := range map[float64]int{0: 200_000, 0.5: 100_000, 1: 0} {
		l := Load{Groups: []Group{{Size: 20_003, Compressible: share}}, Seed: 1}
		group := l.groupData(0)
		var zip bytes.Buffer
		w, err := flate.NewWriter(&zip, 9)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, len(group))
		for k := range uint64(10) {
			key := messageKey(l.Seed, 0, k)
			fillMessage(data, group, key)
			if !isMessage(data, group, key) || isMessage(data, group, key+1) || isMessage(data[1:], group, key) {
				t.Fatal("message", k)
			}
			w.Write(data)
			data[len(data)-1] ^= 1
			if isMessage(data, group, key) {
				t.Fatal("the last byte does not count")
			}
		}
		w.Close()
		if zip.Len() < want*9/10 || zip.Len() > want*11/10+5000 {
			t.Errorf("10 × 20,003 bytes, %g compressible: %d, want about %d", share, zip.Len(), want)
		}
	}
}
