//go:build linux

package lab

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func newTestNet(t *testing.T) *Net {
	t.Helper()
	if _, err := Peer("cy_pub"); err != nil {
		if os.Getenv("GOBAG_INTEROP") == "required" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	n, err := NewNet()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// The bytes that the peers serialize are those that Body computes from the layout.
func TestPeersAgreeWithBody(t *testing.T) {
	n := newTestNet(t)
	topics := []Topic{
		{Kind: String, Name: "/varying", Hz: 100, Count: 40},
		{Kind: String, Name: "/fixed", Hz: 100, Count: 3, Size: 100},
		{Kind: Imu, Name: "/imu", Hz: 100, Count: 20},
		{Kind: Image, Name: "/image", Hz: 20, Count: 3, Size: 1 << 20},
		{Kind: Image, Name: "/odd", Hz: 20, Count: 3, Size: 1345},
		{Kind: Blob, Name: "/load", Instances: 3, Hz: 50, Count: 5, Size: 1001},
		{Kind: String, Name: "/latched", Count: 5, TransientLocal: true, Depth: 10, Early: true},
	}
	log := filepath.Join(t.TempDir(), "arrivals")
	sub, err := n.Subscribe(topics, "--log", log, "--expect", "89", "--seconds", "20")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Kill()
	pub, err := n.Publish(topics, "--wait", "1")
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Kill()
	for _, p := range []*Proc{pub, sub} {
		if err := p.Wait(30 * time.Second); err != nil {
			t.Fatal(err)
		}
	}
	arrivals, err := ReadArrivals(log)
	if err != nil {
		t.Fatal(err)
	}
	checkers := map[string]*Checker{}
	numbers := map[string][]int64{}
	for _, topic := range topics {
		for i, name := range topic.Names() {
			checkers[name] = &Checker{Topic: topic, Instance: i}
		}
	}
	for _, a := range arrivals {
		if err := checkers[a.Topic].CheckHash(a); err != nil {
			t.Error(err)
		}
		numbers[a.Topic] = append(numbers[a.Topic], a.Number)
	}
	for name, sent := range SentBy(pub) {
		if r := Sequence(numbers[name]); r != (Run{First: 0, Last: sent.Count - 1}) {
			t.Errorf("%s: %d sent, received %+v", name, sent.Count, r)
		}
	}
	if len(arrivals) != 89 {
		t.Errorf("%d arrivals, want 89", len(arrivals))
	}
}

func TestCheckerBites(t *testing.T) {
	for _, topic := range []Topic{{Kind: String, Name: "/s"}, {Kind: Imu, Name: "/i"}, {Kind: Image, Name: "/m", Size: 2000},
		{Kind: Blob, Name: "/b", Size: 30, Hz: 10}} {
		c := &Checker{Topic: topic}
		good := topic.Body([]byte{0, 1, 0, 0}, 7, 0)
		if n, err := c.Check(good); n != 7 || err != nil {
			t.Fatalf("%s: %d, %v", topic.Kind, n, err)
		}
		if _, err := c.Check(append(good[:len(good):len(good)], 0, 0, 0)); err != nil {
			t.Errorf("%s with three zero bytes behind: %v", topic.Kind, err)
		}
		bad := map[string][]byte{
			"four bytes more":       append(good[:len(good):len(good)], 0, 0, 0, 0),
			"a byte short":          good[:len(good)-1],
			"a byte behind, not 0":  append(good[:len(good):len(good)], 1),
			"big-endian id":         append([]byte{0, 0, 0, 0}, good[4:]...),
			"last byte of the data": append(append([]byte{}, good[:len(good)-2]...), good[len(good)-2]+1, good[len(good)-1]),
			"empty":                 {},
		}
		for name, payload := range bad {
			if _, err := c.Check(payload); err == nil {
				t.Errorf("%s, %s: no error", topic.Kind, name)
			}
		}
		arrival := Arrival{Topic: topic.Name, Number: 7, Header: "00010000", Length: len(good), Hash: FNV1a(good[4:])}
		if err := c.CheckHash(arrival); err != nil {
			t.Error(err)
		}
		arrival.Hash++
		if err := c.CheckHash(arrival); err == nil {
			t.Errorf("%s: wrong hash accepted", topic.Kind)
		}
	}
}

func TestSequence(t *testing.T) {
	for _, tc := range []struct {
		in   []int64
		want Run
	}{
		{nil, Run{First: -1, Last: -1}},
		{[]int64{3, 4, 5}, Run{First: 3, Last: 5}},
		{[]int64{0, 2, 5}, Run{First: 0, Last: 5, Missing: 3}},
		{[]int64{0, 1, 1, 0, 2}, Run{First: 0, Last: 2, Disorder: 2}},
	} {
		if got := Sequence(tc.in); got != tc.want {
			t.Errorf("%v: %+v, want %+v", tc.in, got, tc.want)
		}
	}
}
