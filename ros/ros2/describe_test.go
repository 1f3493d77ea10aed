package ros2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/internal/netsim"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
)

const (
	readingType = "secret_msgs/msg/Reading"
	readingText = "secret_msgs/Sample[] samples\nstring who 'nobody'\n"
	sampleText  = "# one value\nfloat64 value\nuint8 KIND_A=1\nuint8 kind\n"
	service     = "/talker" + describeSuffix
)

var readingSources = []ros.TypeSource{{Type: readingType, Encoding: "msg", Text: readingText}, {Type: "secret_msgs/msg/Sample", Encoding: "msg", Text: sampleText}}

var readingTypes = map[string]described{readingType: {sources: readingSources}}

// bothForms runs a test in simulated time for each form of services.
func bothForms(t *testing.T, f netsim.Faults, test func(t *testing.T, s *sim, form serviceForm)) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, f)
				defer s.close()
				test(t, s, form)
			})
		})
	}
}

// ask asks with a time limit.
func ask(n *Node, publisher rtps.GUID, typ string, limit time.Duration) ([]ros.TypeSource, time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	began := time.Now()
	got, err := n.DescribeType(ctx, ros.EndpointID(publisher), typ, "RIHS01_00")
	return got, time.Since(began), err
}

// serviceEndpoints is how many endpoints of the node on the service's topics a peer sees.
func serviceEndpoints(p *rtps.Participant, n *Node) (list []rtps.Endpoint) {
	for _, e := range p.Endpoints() {
		if e.GUID.Prefix() == n.p.GUID().Prefix() && strings.Contains(e.Topic, describeSuffix) {
			list = append(list, e)
		}
	}
	return list
}

func TestDescribeType(t *testing.T) {
	bothForms(t, netsim.Faults{Delay: 500 * time.Microsecond}, func(t *testing.T, s *sim, form serviceForm) {
		p := s.peer(rosUserData)
		d := s.describeServer(p, form, service, readingTypes)
		n := s.asking(form)
		publisher := s.talker(n, p)
		s.credits(p, nodeEntities{namespace: "/", name: "talker", writers: []rtps.GUID{publisher}})
		got, took, err := ask(n, publisher, readingType, time.Minute)
		if err != nil || !reflect.DeepEqual(got, readingSources) {
			t.Fatalf("%v %v", got, err)
		}
		if took > 500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		if seen := d.seen(); len(seen) != 1 || seen[0].typ != readingType || seen[0].hash != "RIHS01_00" || !seen[0].sources {
			t.Errorf("the server was asked %+v", seen)
		}
		// The sources are what package msg makes a definition of.
		def, err := msg.Define(readingType, "", func(name string) ([]byte, error) {
			for _, x := range got {
				if x.Type+"."+x.Encoding == name {
					return []byte(x.Text), nil
				}
			}
			return nil, fs.ErrNotExist
		})
		if err != nil || !strings.Contains(def.Text, "MSG: secret_msgs/Sample") || !strings.HasPrefix(def.Text, readingText) {
			t.Errorf("definition %q, %v", def.Text, err)
		}

		// The next question goes over the same endpoints, which are given up after a while.
		ends := serviceEndpoints(p, n)
		if len(ends) != 2 {
			t.Fatalf("endpoints %+v", ends)
		}
		for _, e := range ends {
			id, hash := string(userValue(e.UserData, "clientid")), string(userValue(e.UserData, "typehash"))
			if want := map[bool]string{true: describeRequestHash, false: describeResponseHash}[e.Writer]; hash != want {
				t.Errorf("%s has the hash %q, want %q", e.Topic, hash, want)
			}
			if other := string(userValue(ends[0].UserData, "clientid")); id != other || (id != "") != (form == headerForm) {
				t.Errorf("%s is of client %q, the other end of %q", e.Topic, id, other)
			}
			if e.QoS.Reliability != rtps.Reliable || e.QoS.Durability != rtps.Volatile || e.QoS.History != rtps.KeepLast || e.QoS.Depth != 10 {
				t.Errorf("%s has QoS %+v", e.Topic, e.QoS)
			}
		}
		time.Sleep(3 * time.Second)
		if _, took, err := ask(n, publisher, "secret_msgs/msg/Other", time.Minute); err == nil || !errors.Is(err, errRefused) || took > 100*time.Millisecond ||
			!strings.Contains(err.Error(), "Type not currently in use by this node") || !strings.Contains(err.Error(), service) || !strings.Contains(err.Error(), "secret_msgs/msg/Other") {
			t.Errorf("after %v: %v", took, err)
		}
		time.Sleep(3 * time.Second)
		if again := serviceEndpoints(p, n); len(again) != 2 || again[0].GUID != ends[0].GUID && again[0].GUID != ends[1].GUID {
			t.Errorf("endpoints are now %+v", again)
		}
		time.Sleep(3 * time.Second)
		if left := serviceEndpoints(p, n); len(left) != 0 {
			t.Errorf("endpoints that nobody needs any more: %+v", left)
		}
		if got, _, err := ask(n, publisher, readingType, time.Minute); err != nil || len(got) != 2 {
			t.Errorf("anew: %v %v", got, err)
		}
		if seen := d.seen(); len(seen) != 3 {
			t.Errorf("%d requests", len(seen))
		}
	})
}

func TestDescribeTypeUnderLoss(t *testing.T) {
	big := []ros.TypeSource{{Type: readingType, Encoding: "msg", Text: strings.Repeat("# a comment\n", 20_000) + readingText}, readingSources[1]}
	for seed := range uint64(5) {
		bothForms(t, netsim.Faults{Seed: seed, Loss: 0.25, Duplicate: 0.1, Reorder: 0.1, Delay: time.Millisecond}, func(t *testing.T, s *sim, form serviceForm) {
			p := s.peer(rosUserData)
			s.describeServer(p, form, service, map[string]described{readingType: {sources: big}})
			n := s.asking(form)
			got, _, err := ask(n, s.talker(n, p), readingType, time.Minute)
			if err != nil || !reflect.DeepEqual(got, big) {
				t.Errorf("%d sources, %v", len(got), err)
			}
		})
	}
}

// A reply that comes long after the question counts, and a question that is not answered is asked again.
func TestDescribeTypeLate(t *testing.T) {
	bothForms(t, netsim.Faults{}, func(t *testing.T, s *sim, form serviceForm) {
		p := s.peer(rosUserData)
		d := s.describeServer(p, form, service, readingTypes)
		d.set(func(q describeRequestSeen) {
			if q.n == 1 {
				time.Sleep(5 * time.Second)
				d.describe(q, readingTypes)
			} // later ones are ignored
		})
		n := s.asking(form)
		publisher := s.talker(n, p)
		got, took, err := ask(n, publisher, readingType, time.Minute)
		if err != nil || len(got) != 2 || took < 5*time.Second || took > 6*time.Second {
			t.Errorf("a reply after 5 s: %d sources after %v, %v", len(got), took, err)
		}
		if seen := d.seen(); len(seen) != 3 { // at 0, 1 and 3 s
			t.Errorf("asked %d times", len(seen))
		}
		d.set(func(q describeRequestSeen) {
			if q.n == 6 {
				d.describe(q, readingTypes)
			}
		})
		if got, took, err := ask(n, publisher, readingType, time.Minute); err != nil || len(got) != 2 || took < 3*time.Second || took > 4*time.Second {
			t.Errorf("the third try: %d sources after %v, %v", len(got), took, err)
		}
	})
}

// A service that comes after the question is asked when it is there; so it is when it has moved to other endpoints.
func TestDescribeTypeServiceComesLater(t *testing.T) {
	bothForms(t, netsim.Faults{}, func(t *testing.T, s *sim, form serviceForm) {
		p := s.peer(rosUserData)
		n := s.asking(form)
		publisher := s.talker(n, p)
		go func() {
			time.Sleep(3 * time.Second)
			d := s.newDescribeServer(form)
			d.set(func(describeRequestSeen) { // it dies of the first question
				d.close()
				time.Sleep(2 * time.Second)
				s.describeServer(p, form, service, readingTypes)
			})
			d.start(p, service)
		}()
		got, took, err := ask(n, publisher, readingType, time.Minute)
		if err != nil || len(got) != 2 || took < 5*time.Second || took > 7*time.Second {
			t.Errorf("%d sources after %v, %v", len(got), took, err)
		}
	})
}

// Who is asked: the publisher's node if it is known, else every node of its participant, and nobody else in any case.
func TestDescribeTypeAsksTheOwner(t *testing.T) {
	bothForms(t, netsim.Faults{}, func(t *testing.T, s *sim, form serviceForm) {
		p, stranger := s.peer(rosUserData), s.peer(rosUserData)
		knows := s.describeServer(p, form, "/ns/knows"+describeSuffix, readingTypes)
		other := s.describeServer(p, form, "/ns/other"+describeSuffix, nil)
		namesake := s.describeServer(stranger, form, "/ns/knows"+describeSuffix, readingTypes)
		foreign := s.describeServer(stranger, form, "/else"+describeSuffix, readingTypes)
		n := s.asking(form)
		publisher := s.talker(n, p)
		asked := func(d *describeServer) int { return len(d.seen()) }
		if got, _, err := ask(n, publisher, readingType, time.Minute); err != nil || len(got) != 2 || asked(knows) != 1 || asked(other) > 1 {
			t.Errorf("while the node is not known: %d sources, %v", len(got), err)
		}
		before := asked(other) // 0 if the answer was faster
		_, _, err := ask(n, publisher, "secret_msgs/msg/Unknown", time.Minute)
		if !errors.Is(err, errRefused) || !strings.Contains(err.Error(), "/ns/knows"+describeSuffix) || !strings.Contains(err.Error(), "/ns/other"+describeSuffix) ||
			strings.Contains(err.Error(), "\n") || asked(knows) != 2 || asked(other) != before+1 {
			t.Errorf("neither knows: %v, asked %d and %d times", err, asked(knows), asked(other))
		}
		s.credits(p, nodeEntities{namespace: "/ns", name: "knows", writers: []rtps.GUID{publisher}}, nodeEntities{namespace: "/ns", name: "other"})
		s.until("the node is known", 10*time.Second, func() bool { return n.names.owner(publisher) != "" })
		if got, _, err := ask(n, publisher, readingType, time.Minute); err != nil || len(got) != 2 || asked(knows) != 3 || asked(other) != before+1 {
			t.Errorf("the node is known: %d sources, %v, asked %d and %d times", len(got), err, asked(knows), asked(other))
		}
		if asked(namesake)+asked(foreign) != 0 {
			t.Errorf("another participant was asked %d and %d times", asked(namesake), asked(foreign))
		}
		// Its topic is that of the namesake, too, which gets nothing on the wire either.
		for _, d := range s.tap.of(n.p.GUID().Prefix(), 0) {
			if d.dest != p.GUID().Prefix() {
				t.Errorf("a sample went to %v", d.dest)
			}
		}
	})
}

func TestDescribeTypeFails(t *testing.T) {
	bothForms(t, netsim.Faults{}, func(t *testing.T, s *sim, form serviceForm) {
		p := s.peer(rosUserData)
		n := s.asking(form)
		publisher := s.talker(n, p)
		fails := func(what string, publisher rtps.GUID, limit, least time.Duration, want ...string) {
			t.Helper()
			got, took, err := ask(n, publisher, readingType, limit)
			if err == nil || took < least || took > limit || errors.Is(err, context.DeadlineExceeded) != (least == limit) {
				t.Errorf("%s: %v, %v after %v", what, got, err, took)
				return
			}
			for _, w := range append(want, "describe "+readingType) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%s: %q does not say %q", what, err, w)
				}
			}
		}
		fails("no such publisher", rtps.GUID{1}, time.Second, 0, "publisher", "is not there")
		fails("no service", publisher, 2*time.Second, 2*time.Second, "has no service get_type_description")
		s.credits(p, nodeEntities{namespace: "/", name: "talker", writers: []rtps.GUID{publisher}})
		time.Sleep(time.Second)
		fails("no service of the node", publisher, 2*time.Second, 2*time.Second, "node /talker has no service get_type_description")
		half := s.reader(p, rtps.ReaderConfig{Topic: MangleRequest(service), Type: describeRequest, Handler: func(x rtps.Sample) { x.Release() }})
		fails("half a service", publisher, 5*time.Second, 5*time.Second, service+" is not connected")
		half.Close()
		d := s.describeServer(p, form, service, nil)
		d.set(func(describeRequestSeen) {})
		fails("a silent service", publisher, 10*time.Second, 10*time.Second, service+" did not answer, asked 4 times")
		for what, answer := range map[string]func(describeRequestSeen){
			"without reason: service " + service + ": the node refuses: it gives no reason": func(q describeRequestSeen) {
				b := appendDescription(d.head(q), described{})
				b[4+len(q.header)] = 0
				d.reply(q, b)
			},
			"without the type: it is not among the 1 sources": func(q describeRequestSeen) {
				d.reply(q, appendDescription(d.head(q), described{sources: readingSources[1:]}))
			},
			"empty: it is not among the 0 sources": func(q describeRequestSeen) { d.reply(q, appendDescription(d.head(q), described{})) },
			"too long: at most 8388608": func(q describeRequestSeen) {
				d.reply(q, appendDescription(d.head(q), described{sources: []ros.TypeSource{{Text: strings.Repeat("x", maxReply)}}}))
			},
			"too many: at most 4096": func(q describeRequestSeen) {
				d.reply(q, appendDescription(d.head(q), described{sources: make([]ros.TypeSource, maxSources+1)}))
			},
			"cut: bytes left": func(q describeRequestSeen) {
				b := appendDescription(d.head(q), described{sources: readingSources})
				d.reply(q, b[:len(b)-9])
			},
			"longer: bytes too many": func(q describeRequestSeen) {
				d.reply(q, append(appendDescription(d.head(q), described{sources: readingSources}), 0, 0, 0, 0))
			},
			"garbage: bytes left": func(q describeRequestSeen) { d.reply(q, append(d.head(q), bytes.Repeat([]byte{0xff}, 100)...)) },
		} {
			d.set(answer)
			name, want, _ := strings.Cut(what, ": ")
			fails(name, publisher, time.Minute, 0, want)
		}
		// Replies that are for nobody, or for others, harm nobody.
		d.set(func(q describeRequestSeen) {
			good := appendDescription(d.head(q), described{sources: readingSources})
			for i := range 2000 {
				wrong := q
				wrong.header = slices.Clone(q.header)
				b := slices.Clone(good)
				switch i % 4 {
				case 0:
					wrong.related.Seq += int64(i + 1)
					if form == headerForm {
						b[12]++
					}
				case 1:
					wrong.related.Writer[15]++
					if form == headerForm {
						b[4]++
					}
				case 2:
					if b = b[:i%32+4]; form == identityForm {
						wrong.related.Seq = -1
					}
					if form == headerForm && len(b) >= 20 {
						b = b[:19]
					}
				case 3:
					d.w.Write([]byte{0, 1, 0, 0, 1}, 1) // without any relation
				}
				d.reply(wrong, b)
			}
			for range 100 {
				d.reply(q, good)
			}
		})
		if got, _, err := ask(n, publisher, readingType, time.Minute); err != nil || len(got) != 2 {
			t.Errorf("among wrong replies: %d sources, %v", len(got), err)
		}
		time.Sleep(time.Second)
		n.asks.mu.Lock()
		for _, c := range n.asks.clients {
			c.mu.Lock()
			if len(c.pending) > 0 {
				t.Errorf("requests that nobody waits for are kept: %v", c.pending)
			}
			c.mu.Unlock()
		}
		n.asks.mu.Unlock()
	})
}

// Many questions at once, of several nodes; the end of the context and of the node.
func TestDescribeTypeTogether(t *testing.T) {
	bothForms(t, netsim.Faults{Loss: 0.05, Delay: time.Millisecond}, func(t *testing.T, s *sim, form serviceForm) {
		n := s.asking(form)
		const nodes, types = 3, 20
		var wg sync.WaitGroup
		for i := range nodes {
			p := s.peer(rosUserData)
			known := map[string]described{}
			for k := range types {
				typ := fmt.Sprintf("n%d/msg/T%d", i, k)
				known[typ] = described{sources: []ros.TypeSource{{Type: typ, Encoding: "msg", Text: typ}}}
			}
			s.describeServer(p, form, service, known)
			publisher := s.talker(n, p)
			for typ := range known {
				for range 2 {
					wg.Go(func() {
						if got, _, err := ask(n, publisher, typ, time.Minute); err != nil || len(got) != 1 || got[0].Text != typ {
							t.Errorf("%s: %v, %v", typ, got, err)
						}
					})
				}
			}
		}
		wg.Wait()
		p := s.peer(rosUserData)
		d := s.describeServer(p, form, service, nil)
		d.set(func(describeRequestSeen) {})
		publisher := s.talker(n, p)
		ctx, cancel := context.WithCancel(context.Background())
		wg.Go(func() {
			if _, err := n.DescribeType(ctx, ros.EndpointID(publisher), readingType, ""); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
		})
		wg.Go(func() {
			if _, _, err := ask(n, publisher, readingType, time.Minute); !errors.Is(err, ros.ErrClosed) {
				t.Errorf("closed: %v", err)
			}
		})
		time.Sleep(3 * time.Second)
		cancel()
		time.Sleep(time.Second)
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		wg.Wait()
		if _, _, err := ask(n, publisher, readingType, time.Second); err == nil {
			t.Error("a closed node asks")
		}
		if _, err := n.DescribeType(context.Background(), ros.EndpointID(publisher), "no type", ""); !errors.Is(err, ros.ErrName) {
			t.Errorf("%v", err)
		}
	})
}
