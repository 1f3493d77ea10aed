package ros2

import (
	"bytes"
	"encoding/binary"
	"sync"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// described is what a node knows about a type.
type described struct {
	refuse  string // unless empty: successful = false for this reason
	sources []ros.TypeSource
}

// appendDescription encodes a GetTypeDescription_Response by hand behind what is in b, whose encapsulation header alignment
// counts from.
func appendDescription(b []byte, d described) []byte {
	align := func(n int) {
		for (len(b)-4)%n != 0 {
			b = append(b, 0)
		}
	}
	u32 := func(n int) { align(4); b = binary.LittleEndian.AppendUint32(b, uint32(n)) }
	u64 := func(n int) { align(8); b = binary.LittleEndian.AppendUint64(b, uint64(n)) }
	str := func(s string) { u32(len(s) + 1); b = append(append(b, s...), 0) }
	individual := func(typ string, fields int) {
		str(typ)
		u32(fields)
		for i := range fields {
			str("field")
			b = append(b, 17)
			u64(i)
			u64(2 * i)
			str("")
			str("default"[:i])
		}
	}
	if d.refuse != "" {
		b = append(b, 0)
	} else {
		b = append(b, 1)
	}
	str(d.refuse)
	individual("a/msg/A", 3)
	u32(2)
	individual("a/msg/B", 0)
	individual("a/msg/Long", 5)
	u32(len(d.sources))
	for _, s := range d.sources {
		str(s.Type)
		str(s.Encoding)
		str(s.Text)
	}
	u32(1)
	str("key")
	str("value")
	return b
}

// describeRequestSeen is a question as a server got it.
type describeRequestSeen struct {
	typ, hash string
	sources   bool
	n         int // it is the n-th, from 1

	header  []byte        // headerForm: the 16 bytes
	related rtps.SampleID // identityForm: what the reply is to refer to
}

// describeServer is a get_type_description service made of a reader and a writer, in one of the forms.
type describeServer struct {
	s    *sim
	form serviceForm
	r    *rtps.Reader
	w    *rtps.Writer

	started chan struct{} // r and w are there

	mu       sync.Mutex
	answer   func(describeRequestSeen)
	requests []describeRequestSeen
}

// describeServer starts a service that answers with what types says.
func (s *sim) describeServer(p *rtps.Participant, form serviceForm, service string, types map[string]described) *describeServer {
	s.t.Helper()
	d := s.newDescribeServer(form)
	d.set(func(q describeRequestSeen) { d.describe(q, types) })
	d.start(p, service)
	return d
}

func (s *sim) newDescribeServer(form serviceForm) *describeServer {
	return &describeServer{s: s, form: form, started: make(chan struct{})}
}

// set changes how requests are answered: by f, on a goroutine for each.
func (d *describeServer) set(f func(describeRequestSeen)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = f
}

// describe answers with what types says.
func (d *describeServer) describe(q describeRequestSeen, types map[string]described) {
	x, ok := types[q.typ]
	if !ok {
		x.refuse = "Type not currently in use by this node"
	}
	d.reply(q, appendDescription(d.head(q), x))
}

func (d *describeServer) start(p *rtps.Participant, service string) {
	d.s.t.Helper()
	qos := rtps.QoS{Reliability: rtps.Reliable, Depth: 10}
	d.w = d.s.writer(p, rtps.WriterConfig{Topic: MangleReply(service), Type: describeResponse, QoS: qos, Related: true})
	d.r = d.s.reader(p, rtps.ReaderConfig{Topic: MangleRequest(service), Type: describeRequest, QoS: qos, Related: true, Handler: d.take})
	close(d.started)
}

func (d *describeServer) close() {
	d.r.Close()
	d.w.Close()
}

func (d *describeServer) take(x rtps.Sample) {
	defer x.Release()
	data := bytes.Clone(x.Data)
	var q describeRequestSeen
	c, err := cdr.NewDecoder(data)
	if err != nil {
		d.s.t.Errorf("request: %v", err)
		return
	}
	if d.form == headerForm {
		q.header = c.Bytes(16)
		if x.Related != nil {
			d.s.t.Errorf("a request with a header is related to %v", x.Related)
		}
	} else if x.Related == nil || x.Related.Writer.Prefix() != x.Writer.Prefix() || x.Related.Writer.Entity()[3] != wire.KindReaderKeyless || x.Related.Seq != rtps.UnknownSeq {
		d.s.t.Errorf("a request is related to %v", x.Related)
	} else {
		q.related = rtps.SampleID{Writer: x.Related.Writer, Seq: x.Seq}
	}
	q.typ, q.hash, q.sources = c.Str(), c.Str(), c.Bool()
	if c.Err() != nil || c.Left() > 3 { // the wire pads
		d.s.t.Errorf("request %x: %v, %d bytes left", data, c.Err(), c.Left())
	}
	d.mu.Lock()
	d.requests = append(d.requests, q)
	q.n = len(d.requests)
	answer := d.answer
	d.mu.Unlock()
	go func() {
		<-d.started
		answer(q)
	}()
}

// head begins a reply: encapsulation and, where the form has it, the header.
func (d *describeServer) head(q describeRequestSeen) []byte {
	return append([]byte{0, 1, 0, 0}, q.header...)
}

// reply sends a reply to a request.
func (d *describeServer) reply(q describeRequestSeen, payload []byte) {
	var err error
	if d.form == headerForm {
		_, err = d.w.Write(payload, time.Now().UnixNano())
	} else {
		_, err = d.w.WriteRelated(payload, time.Now().UnixNano(), q.related)
	}
	if err != nil {
		d.s.t.Logf("reply: %v", err) // the test may be over
	}
}

func (d *describeServer) seen() []describeRequestSeen {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]describeRequestSeen(nil), d.requests...)
}

// forms are both forms by the vendor whose services have them.
var forms = map[string]serviceForm{"header": headerForm, "identity": identityForm}

// asking is a node whose peers' services all have the form.
func (s *sim) asking(form serviceForm) *Node {
	n := s.node(Options{})
	n.asks.mu.Lock()
	n.asks.formOf = func(wire.VendorID) serviceForm { return form }
	n.asks.mu.Unlock()
	return n
}

// talker makes a publisher and waits until the node sees it.
func (s *sim) talker(n *Node, p *rtps.Participant) rtps.GUID {
	s.t.Helper()
	w := s.writer(p, rtps.WriterConfig{Topic: "rt/secret", Type: "secret_msgs::msg::dds_::Reading_", QoS: rtps.QoS{Reliability: rtps.Reliable}})
	s.until("the publisher", 20*time.Second, func() bool {
		for _, e := range n.p.Endpoints() {
			if e.GUID == w.GUID() {
				return true
			}
		}
		return false
	})
	return w.GUID()
}

// credits says on ros_discovery_info that a node has the endpoints.
func (s *sim) credits(p *rtps.Participant, nodes ...nodeEntities) {
	s.t.Helper()
	w := s.writer(p, rtps.WriterConfig{Topic: infoTopic, Type: infoType, UserData: endpointUserData(infoTypeHash),
		QoS: rtps.QoS{Reliability: rtps.Reliable, Durability: rtps.TransientLocal, Depth: 1}})
	if _, err := w.Write(encodeInfo(16, p.GUID(), nodes), 1); err != nil {
		s.t.Fatal(err)
	}
}
