package ros2

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/internal/netsim"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

func TestInfoIDs(t *testing.T) {
	const other = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
	for _, c := range []struct {
		reader, participant string
		want                int
	}{
		{"", "enclave=/;", 24},
		{"", "enclave=/;\x00", 24},
		{"", "enclave=;", 24},
		{"", "a=b;enclave=/x;", 24},
		{"typehash=" + infoTypeHash + ";", "enclave=/;", 16},
		{"a=b;typehash=" + infoTypeHash + ";\x00", "enclave=/;", 16},
		{"typehash=" + infoTypeHash24 + ";", "enclave=/;", 24},
		// Not certain: nothing is sent.
		{"", "", 0},
		{"", "enclave", 0},
		{"", "securitycontext=/;", 0},
		{"typehash=" + infoTypeHash + ";", "", 0},
		{"typehash=" + other + ";", "enclave=/;", 0},
		{"typehash=" + infoTypeHash[:70] + ";", "enclave=/;", 0},
		{"typehash=;", "enclave=/;", 0},
		{"typehash=RIHS02_" + infoTypeHash[7:] + ";", "enclave=/;", 0},
		{"typehash=" + strings.ToUpper(infoTypeHash) + ";", "enclave=/;", 0},
	} {
		if got := infoIDs([]byte(c.reader), []byte(c.participant)); got != c.want {
			t.Errorf("reader %q, participant %q: ids of %d bytes, want %d", c.reader, c.participant, got, c.want)
		}
	}
}

func TestEncodeInfo(t *testing.T) {
	for name, nodes := range infoCases {
		for _, size := range []int{16, 24} {
			if got, want := encodeInfo(size, guid(9), nodes), appendInfo(le, size, guid(9), nodes); !bytes.Equal(got, want) {
				t.Errorf("%s, %d-byte ids:\n%x, want\n%x", name, size, got, want)
			}
		}
	}
}

// infoReader is another node's reader of ros_discovery_info: it takes every sample by its own rules.
type infoReader struct {
	p  *rtps.Participant
	r  *rtps.Reader
	mu sync.Mutex
	// Samples of each writer, in order.
	samples map[rtps.GUID][][]byte
}

func (s *sim) infoReader(userData, readerData string) *infoReader {
	s.t.Helper()
	i := &infoReader{p: s.peer(userData), samples: map[rtps.GUID][][]byte{}}
	i.r = s.reader(i.p, rtps.ReaderConfig{Topic: infoTopic, Type: infoType, UserData: []byte(readerData),
		QoS: rtps.QoS{Reliability: rtps.Reliable, Durability: rtps.TransientLocal, History: rtps.KeepAll},
		Handler: func(x rtps.Sample) {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.samples[x.Writer] = append(i.samples[x.Writer], bytes.Clone(x.Data))
			x.Release()
		}})
	return i
}

// last is the last sample of a participant, and how many there were.
func (i *infoReader) last(prefix wire.Prefix) (last []byte, n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for w, list := range i.samples {
		if w.Prefix() == prefix {
			last = list[len(list)-1]
			n += len(list)
		}
	}
	return last, n
}

// reads parses a sample as one generation does, which knows ids of one size.
func reads(t *testing.T, sample []byte, size int) (nodes []nodeEntities) {
	t.Helper()
	_, nodes, err := parseInfoIDs(sample, size)
	if err != nil {
		t.Errorf("a sample that is not of %d-byte ids: %v", size, err)
	}
	return nodes
}

// Every generation of ROS 2 gets what it understands and never anything else, in whatever order they appear.
func TestAnnounceByGeneration(t *testing.T) {
	iron := "typehash=" + infoTypeHash + ";"
	for _, loss := range []float64{0, 0.15} {
		for i, order := range permutations([]string{"gobag", "jazzy", "humble", "raw", "strange"}) {
			if testing.Short() && i%10 != 0 {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, netsim.Faults{Seed: uint64(i), Loss: loss, Delay: time.Millisecond})
				defer s.close()
				var n *Node
				var jazzy, humble, raw, strange *infoReader
				for k, who := range order {
					switch who {
					case "gobag":
						n = s.node(Options{NodeName: "/robot/gobag_recorder"})
						if _, err := n.Subscribe(ros.Topic{Name: "/a", Type: "std_msgs/msg/String"}, ros.DefaultQoS(), func(x ros.Sample) { x.Release() }); err != nil {
							t.Fatal(err)
						}
					case "jazzy":
						jazzy = s.infoReader(rosUserData, iron)
					case "humble":
						humble = s.infoReader(rosUserData, "")
					case "raw":
						raw = s.infoReader("-", "")
					case "strange":
						strange = s.infoReader(rosUserData, "typehash=RIHS02_1;")
					}
					time.Sleep(time.Duration((i+k)%3) * 70 * time.Millisecond)
				}
				prefix := n.p.GUID().Prefix()
				time.Sleep(time.Second)
				pub, err := n.Advertise(ros.Topic{Name: "/b", Type: "std_msgs/msg/String"}, ros.DefaultQoS())
				if err != nil {
					t.Fatal(err)
				}
				complete := func(r *infoReader, size int) bool {
					last, _ := r.last(prefix)
					if last == nil {
						return false
					}
					nodes := reads(t, last, size)
					return len(nodes) == 1 && nodes[0].fullName() == "/robot/gobag_recorder" && len(nodes[0].writers) == 1 && len(nodes[0].readers) == 1 &&
						nodes[0].writers[0] == pub.(*Publisher).w.GUID()
				}
				s.until(fmt.Sprintf("%v: both generations know the node", order), 30*time.Second, func() bool {
					return complete(jazzy, 16) && complete(humble, 24)
				})
				time.Sleep(5 * time.Second)
				for _, r := range []*infoReader{raw, strange} {
					if _, got := r.last(prefix); got != 0 {
						t.Errorf("%v: %d samples for a reader of whom nothing is known", order, got)
					}
				}
				// On the wire: every sample is addressed to a reader of its form.
				for _, d := range s.tap.of(prefix, 0) {
					size := map[rtps.GUID]int{jazzy.r.GUID(): 16, humble.r.GUID(): 24}[wire.MakeGUID(d.dest, d.reader)]
					if size == 0 {
						t.Fatalf("%v: a sample to %v of %x", order, d.reader, d.dest)
					}
					reads(t, d.payload, size)
				}
			})
			if t.Failed() {
				return
			}
		}
	}
}

func permutations(list []string) (out [][]string) {
	if len(list) == 0 {
		return [][]string{nil}
	}
	for i, x := range list {
		rest := append(slices.Clone(list[:i]), list[i+1:]...)
		for _, p := range permutations(rest) {
			out = append(out, append([]string{x}, p...))
		}
	}
	return out
}

// infoWriters is what a peer sees of a node's writers of ros_discovery_info.
func infoWriters(p *rtps.Participant, n *Node) (userData []string) {
	for _, e := range p.Endpoints() {
		if e.Writer && e.Topic == infoTopic && e.GUID.Prefix() == n.p.GUID().Prefix() {
			userData = append(userData, string(e.UserData))
		}
	}
	slices.Sort(userData)
	return userData
}

// A form is announced while somebody reads it: Iron and later warn of writers without a type hash.
func TestAnnounceWhatIsRead(t *testing.T) {
	iron := "typehash=" + infoTypeHash + ";"
	for _, c := range []struct {
		form            InfoForm
		name            string
		with16, with24  []string
		withBoth, after []string // after: the Humble node is gone again
	}{
		{InfoAuto, "/n", []string{iron}, []string{""}, []string{"", iron}, []string{iron}},
		{Info16, "/n", []string{iron}, nil, []string{iron}, []string{iron}},
		{Info24, "/n", nil, []string{""}, []string{""}, nil},
		{InfoOff, "/n", nil, nil, nil, nil},
		{InfoAuto, "", nil, nil, nil, nil},
	} {
		t.Run(c.form.String()+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, netsim.Faults{})
				defer s.close()
				n := s.node(Options{NodeName: c.name, NodeInfo: c.form})
				watch := s.peer("-")
				expect := func(when string, want []string) {
					t.Helper()
					time.Sleep(2 * time.Second)
					if got := infoWriters(watch, n); !slices.Equal(got, want) {
						t.Errorf("%s: writers have user data %q, want %q", when, got, want)
					}
				}
				expect("alone", nil)
				jazzy := s.infoReader(rosUserData, iron)
				expect("Jazzy", c.with16)
				jazzy.p.Close()
				expect("Jazzy gone", nil)
				humble := s.infoReader(rosUserData, "")
				expect("Humble", c.with24)
				s.infoReader(rosUserData, iron)
				expect("both", c.withBoth)
				humble.r.Close()
				expect("Humble gone", c.after)
			})
		})
	}
}

// Many changes at once make few samples; each sample is the whole list.
func TestAnnounceTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{Delay: 100 * time.Microsecond})
		defer s.close()
		n := s.node(Options{NodeName: "/gobag_recorder"})
		r := s.infoReader(rosUserData, "typehash="+infoTypeHash+";")
		prefix := n.p.GUID().Prefix()
		s.until("the first sample", 10*time.Second, func() bool { _, got := r.last(prefix); return got > 0 })
		const topics = 300
		var subs []ros.Subscription
		for i := range topics {
			sub, err := n.Subscribe(ros.Topic{Name: fmt.Sprintf("/t%d", i), Type: "std_msgs/msg/String"}, ros.DefaultQoS(), func(x ros.Sample) { x.Release() })
			if err != nil {
				t.Fatal(err)
			}
			subs = append(subs, sub)
			time.Sleep(time.Millisecond)
		}
		var nodes []nodeEntities
		s.until("all readers are listed", 10*time.Second, func() bool {
			last, _ := r.last(prefix)
			nodes = reads(t, last, 16)
			return len(nodes[0].readers) == topics
		})
		if !slices.IsSortedFunc(nodes[0].readers, func(a, b rtps.GUID) int { return bytes.Compare(a[:], b[:]) }) || nodes[0].namespace != "/" || nodes[0].name != "gobag_recorder" {
			t.Errorf("the node is %q %q", nodes[0].namespace, nodes[0].name)
		}
		if _, got := r.last(prefix); got > 12 {
			t.Errorf("%d samples in 300 ms of changes", got)
		}
		for _, sub := range subs {
			if err := sub.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s.until("none is listed", 10*time.Second, func() bool {
			last, _ := r.last(prefix)
			return len(reads(t, last, 16)[0].readers) == 0
		})
		_, before := r.last(prefix)
		time.Sleep(time.Minute)
		if _, got := r.last(prefix); got != before {
			t.Errorf("%d samples in a minute without changes", got-before)
		}
	})
}

// Nodes of gobag know each other by name.
func TestNodesSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		a, b := s.node(Options{NodeName: "/gobag_player"}), s.node(Options{NodeName: "/x/gobag_recorder"})
		if _, err := a.Advertise(ros.Topic{Name: "/a", Type: "std_msgs/msg/String"}, ros.DefaultQoS()); err != nil {
			t.Fatal(err)
		}
		s.until("names", 10*time.Second, func() bool {
			topics := b.Graph().Topics()
			return len(topics) == 1 && topics[0].Publishers[0].Node == "/gobag_player" && len(a.Peers()) == 1 && slices.Equal(a.Peers()[0].Nodes, []string{"/x/gobag_recorder"})
		})
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		s.until("the end", 10*time.Second, func() bool {
			names, _ := b.names.snapshot()
			return len(b.Peers())+len(names) == 0
		})
	})
}

func TestNodeNameIsChecked(t *testing.T) {
	for _, o := range []Options{{NodeName: "gobag"}, {NodeName: "/a b"}, {NodeName: "/"}, {NodeName: "/a", NodeInfo: 9}} {
		o.Domain, o.Range = 233-1, RangeOff
		n, err := New(o)
		if err == nil {
			n.Close()
			t.Errorf("%q, form %v was accepted", o.NodeName, o.NodeInfo)
			continue
		}
		if o.NodeInfo == 0 && !errors.Is(err, ros.ErrName) {
			t.Errorf("%q: %v", o.NodeName, err)
		}
	}
}
