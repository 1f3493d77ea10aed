package rtps

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/internal/netsim"
)

func TestCompatible(t *testing.T) {
	s := time.Second
	for _, c := range []struct {
		offered, requested QoS
		want               string
	}{
		{QoS{}, QoS{}, ""},
		{QoS{Reliability: Reliable}, QoS{}, ""},
		{QoS{}, QoS{Reliability: Reliable}, "reliability: offered best effort, requested reliable"},
		{QoS{Durability: Persistent}, QoS{Durability: TransientLocal}, ""},
		{QoS{}, QoS{Durability: TransientLocal}, "durability: offered volatile, requested transient local"},
		{QoS{Deadline: s}, QoS{Deadline: s}, ""},
		{QoS{Deadline: s}, QoS{}, ""},
		{QoS{}, QoS{Deadline: s}, "deadline: offered infinite, requested 1s"},
		{QoS{LatencyBudget: s}, QoS{}, "latency budget: offered 1s, requested 0s"},
		{QoS{LatencyBudget: s}, QoS{LatencyBudget: s}, ""},
		{QoS{Liveliness: ManualByTopic}, QoS{}, ""},
		{QoS{}, QoS{Liveliness: ManualByTopic}, "liveliness: offered automatic, requested manual by topic"},
		{QoS{}, QoS{LeaseDuration: s}, "liveliness lease: offered infinite, requested 1s"},
		{QoS{LeaseDuration: s}, QoS{LeaseDuration: 2 * s}, ""},
		{QoS{Ownership: 1}, QoS{}, "ownership: offered exclusive, requested shared"},
		{QoS{DestinationOrder: 1}, QoS{}, ""},
		{QoS{}, QoS{DestinationOrder: 1}, "destination order: offered by reception, requested by source"},
		{QoS{}, QoS{Presentation: Presentation{Coherent: true}}, "presentation: offered instance, requested instance, coherent"},
		{QoS{Presentation: Presentation{Scope: 1, Ordered: true}}, QoS{}, ""},
		{QoS{Partition: []string{"a", "b"}}, QoS{Partition: []string{"b"}}, ""},
		{QoS{Partition: []string{"a*"}}, QoS{Partition: []string{"abc/d"}}, ""},
		{QoS{Partition: []string{"abc"}}, QoS{Partition: []string{"[!x]b?"}}, ""},
		{QoS{Partition: []string{"a*"}}, QoS{Partition: []string{"*"}}, `partition: offered ["a*"], requested ["*"]`},
		{QoS{Partition: []string{""}}, QoS{}, ""},
		{QoS{Partition: []string{"*"}}, QoS{}, ""},
		{QoS{Partition: []string{"a"}}, QoS{}, `partition: offered ["a"], requested []`},
		{QoS{Partition: []string{"["}}, QoS{Partition: []string{"a"}}, `partition: offered ["["], requested ["a"]`},
		{QoS{Representation: []int16{0, 2}}, QoS{}, ""},
		{QoS{Representation: []int16{2}}, QoS{Representation: []int16{0, 2}}, ""},
		{QoS{Representation: []int16{2, 0}}, QoS{}, "data representation: offered XCDR2, requested XCDR1"},
		{QoS{}, QoS{Representation: []int16{2, 1}}, "data representation: offered XCDR1, requested XCDR2 or XML"},
		{QoS{History: KeepAll, Lifespan: s}, QoS{Depth: 3}, ""},
	} {
		reason, ok := Compatible(c.offered, c.requested)
		if reason != c.want || ok != (c.want == "") {
			t.Errorf("offered %+v requested %+v: %q, %v; want %q", c.offered, c.requested, reason, ok, c.want)
		}
	}
}

func TestMismatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		c := newCollector()
		r := s.reader(s.a, reliable(TransientLocal, 1), c)
		weak := s.writer(s.b, QoS{Durability: TransientLocal})
		other, err := s.b.NewWriter(WriterConfig{Topic: topic, Type: "other::Type_", QoS: reliable(TransientLocal, 1)})
		if err != nil {
			t.Fatal(err)
		}
		good := s.writer(s.b, reliable(TransientLocal, 1))
		until(t, "match", time.Second, func() bool { return good.Stats().Matched == 1 && len(r.Stats().Mismatches) == 2 })
		got := map[GUID]string{}
		for _, m := range r.Stats().Mismatches {
			got[m.GUID] = m.Reason
		}
		if got[weak.GUID()] != "reliability: offered best effort, requested reliable" || got[other.GUID()] != "type: other::Type_ there, "+typ+" here" {
			t.Fatalf("%v", got)
		}
		if m := weak.Stats().Mismatches; len(m) != 1 || m[0].GUID != r.GUID() || !strings.HasPrefix(m[0].Reason, "reliability") {
			t.Fatalf("%v", m)
		}
		weak.Write(payload(10, 1), 1)
		other.Write(payload(10, 1), 1)
		good.Write(payload(10, 1), 1)
		time.Sleep(time.Second)
		if c.len() != 1 {
			t.Fatalf("%d samples", c.len())
		}
	})
}

// A writer that the reader's Accept refuses is not blocked by us and delivers nothing.
func TestAcceptRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		bad := s.writer(s.b, reliable(Volatile, 0))
		good := s.writer(s.b, reliable(Volatile, 0))
		c := newCollector()
		r, err := s.a.NewReader(ReaderConfig{Topic: topic, Type: typ, QoS: reliable(Volatile, 0), Handler: c.handle,
			Accept: func(e Endpoint) bool { return e.GUID != bad.GUID() }})
		if err != nil {
			t.Fatal(err)
		}
		until(t, "match", time.Second, func() bool { return bad.Stats().Matched == 1 && good.Stats().Matched == 1 })
		for i := range 200 {
			bad.Write(payload(100_000, i), 1)
			good.Write(payload(10, i), 1)
		}
		until(t, "both are acknowledged", time.Second, func() bool { return bad.Stats().Unacked == 0 && good.Stats().Unacked == 0 })
		time.Sleep(100 * time.Millisecond)
		if c.len() != 200 || bad.Stats().Dropped != 0 {
			t.Fatalf("%d samples, %+v", c.len(), bad.Stats())
		}
		if ws := r.Stats().Writers; len(ws) != 1 || ws[0].GUID != good.GUID() {
			t.Fatalf("%+v", ws)
		}
	})
}

// Several readers and writers of several participants on one topic.
func TestManyToMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{Seed: 1, Loss: 0.05})
		defer s.close()
		third := s.join("10.0.0.1", Config{})
		defer third.Close()
		var cs []*collector
		var qs []QoS
		for _, p := range []*Participant{s.a, third, s.b} {
			for _, q := range []QoS{reliable(Volatile, 0), {}, reliable(TransientLocal, 0)} {
				c := newCollector()
				s.reader(p, q, c)
				cs, qs = append(cs, c), append(qs, q)
			}
		}
		w := s.writer(s.b, reliable(TransientLocal, 0)) // its own participant's readers are not served
		w2 := s.writer(s.a, reliable(TransientLocal, 0))
		until(t, "match", 5*time.Second, func() bool { return w.Stats().Matched == 6 && w2.Stats().Matched == 6 })
		time.Sleep(time.Second)
		for i := range 100 {
			w.Write(payload(3000, i), 1)
			w2.Write(payload(3000, i), 1)
			time.Sleep(time.Millisecond)
		}
		until(t, "acknowledgements", 10*time.Second, func() bool { return w.Stats().Unacked == 0 && w2.Stats().Unacked == 0 })
		time.Sleep(time.Second)
		for i, c := range cs {
			want := 100
			if i/3 == 1 {
				want = 200
			}
			if n := c.len(); qs[i].Reliability == Reliable && n != want || n < want*6/10 || n > want {
				t.Errorf("reader %d received %d, %d expected", i, n, want)
			}
		}
	})
}

// An endpoint that changes its offer is matched anew.
func TestEndpointChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		c := newCollector()
		r := s.reader(s.a, reliable(Volatile, 0), c)
		w := s.writer(s.b, reliable(Volatile, 0))
		until(t, "match", time.Second, func() bool { return len(r.Stats().Writers) == 1 })
		announce := func(partition ...string) {
			s.b.lock()
			w.cfg.QoS.Partition = partition
			s.b.publish(w.endpoint(), true)
			s.b.unlock()
			time.Sleep(100 * time.Millisecond)
		}
		announce("elsewhere")
		if st := r.Stats(); st.Writers[0].Matched || len(st.Mismatches) != 1 {
			t.Fatalf("%+v", st)
		}
		announce()
		if st := r.Stats(); len(st.Writers) != 2 || len(st.Mismatches) != 0 {
			t.Fatalf("%+v", st)
		}
	})
}

func TestConfigValidate(t *testing.T) {
	err := Config{Domain: 233, Range: 9, Peers: []string{"ok", "10.0.0.1:7400", "bad host", "h:0", "::1"}, Lease: time.Millisecond,
		UserData: make([]byte, 9000), MaxReassembly: -1}.Validate()
	for _, want := range []string{"domain 233", "range 9", `"bad host"`, `"h:0"`, `"::1"`, "lease 1ms", "user data of 9000", "negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Error(err)
	}
	if _, err := NewParticipant(Config{Domain: 900}); err == nil || !strings.Contains(fmt.Sprint(err), "domain 900") {
		t.Error(err)
	}
	if _, err := NewParticipant(Config{Domain: 30, Interfaces: []string{"nosuchif0"}}); err == nil || !strings.Contains(err.Error(), "nosuchif0") {
		t.Error(err)
	}
}
