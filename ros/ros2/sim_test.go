package ros2

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/internal/netsim"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// sim is a simulated network for nodes and for participants that play other nodes. Its time is that of a synctest bubble.
type sim struct {
	t     *testing.T
	net   *netsim.Network
	hosts byte
	tap   simTap
	ends  []func()
}

func newSim(t *testing.T, f netsim.Faults) *sim {
	s := &sim{t: t}
	f.Tap = s.tap.see
	s.net = netsim.New(f)
	return s
}

func (s *sim) close() {
	for i := len(s.ends) - 1; i >= 0; i-- {
		s.ends[i]()
	}
	s.net.Close()
}

func (s *sim) transport() (rtps.Transport, netip.Addr) {
	s.hosts++
	a := netip.AddrFrom4([4]byte{10, 0, 0, s.hosts})
	return s.net.Host(a), a
}

func (s *sim) node(o Options) *Node {
	s.t.Helper()
	o.Transport, _ = s.transport()
	n, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.ends = append(s.ends, func() {
		if err := n.Close(); err != nil {
			s.t.Errorf("close: %v", err)
		}
	})
	return n
}

// rosUserData is what every ROS 2 node's participant has.
const rosUserData = "enclave=/;"

// peer joins with a participant that is no node of ours.
func (s *sim) peer(userData string) *rtps.Participant {
	s.t.Helper()
	t, _ := s.transport()
	p, err := rtps.NewParticipant(rtps.Config{Transport: t, UserData: []byte(userData)})
	if err != nil {
		s.t.Fatal(err)
	}
	s.ends = append(s.ends, func() { p.Close() })
	return p
}

func (s *sim) reader(p *rtps.Participant, c rtps.ReaderConfig) *rtps.Reader {
	s.t.Helper()
	r, err := p.NewReader(c)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *sim) writer(p *rtps.Participant, c rtps.WriterConfig) *rtps.Writer {
	s.t.Helper()
	w, err := p.NewWriter(c)
	if err != nil {
		s.t.Fatal(err)
	}
	return w
}

// until waits in simulated time.
func (s *sim) until(what string, limit time.Duration, ok func() bool) {
	s.t.Helper()
	for began := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(began) > limit {
			s.t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// seenData is a sample of a user writer as it went over the network.
type seenData struct {
	writer  rtps.GUID
	dest    wire.Prefix // zero: anyone
	reader  wire.EntityID
	payload []byte
	message []byte // the whole datagram
}

// simTap collects samples of user writers.
type simTap struct {
	mu   sync.Mutex
	list []seenData
	at   []byte // the datagram at hand
	dec  wire.Decoder
}

func (x *simTap) see(d *netsim.Datagram, _ bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at = d.Bytes
	_ = x.dec.Decode(d.Bytes, x)
}

// of returns what the writers of a participant sent, from the n-th on.
func (x *simTap) of(prefix wire.Prefix, n int) (out []seenData) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, d := range x.list {
		if d.writer.Prefix() == prefix {
			if n--; n < 0 {
				out = append(out, d)
			}
		}
	}
	return out
}

func (x *simTap) Data(ctx *wire.Context, d *wire.Data) {
	if !d.Writer.Builtin() {
		x.list = append(x.list, seenData{writer: wire.MakeGUID(ctx.Source, d.Writer), dest: ctx.Dest, reader: d.Reader,
			payload: append([]byte(nil), d.Payload...), message: append([]byte(nil), x.at...)})
	}
}
func (x *simTap) DataFrag(ctx *wire.Context, d *wire.DataFrag) {
	x.Data(ctx, &wire.Data{Reader: d.Reader, Writer: d.Writer})
}
func (*simTap) AckNack(*wire.Context, *wire.AckNack)             {}
func (*simTap) NackFrag(*wire.Context, *wire.NackFrag)           {}
func (*simTap) Heartbeat(*wire.Context, *wire.Heartbeat)         {}
func (*simTap) HeartbeatFrag(*wire.Context, *wire.HeartbeatFrag) {}
func (*simTap) Gap(*wire.Context, *wire.Gap)                     {}
