package ros2

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// clientIdle is how long a client stays when nobody uses it: the types of a node are asked for one after the other.
const clientIdle = 5 * time.Second

// serverKey names a service of a participant.
type serverKey struct {
	prefix  wire.Prefix
	service string // "/talker/get_type_description"
	vendor  wire.VendorID
}

// describer keeps the clients of get_type_description services. The zero value is ready.
type describer struct {
	mu      sync.Mutex
	clients map[serverKey]*describeClient
	made    uint32 // clients so far
	closed  bool
	wg      sync.WaitGroup // of clients that are closing

	formOf func(wire.VendorID) serviceForm // nil: the function of that name
}

// describeClient talks to one service.
type describeClient struct {
	key  serverKey
	form serviceForm
	id   uint64 // headerForm: our number in requests
	now  func() int64
	made time.Time
	w    *rtps.Writer
	r    *rtps.Reader

	users int         // guarded by describer.mu
	idle  *time.Timer // guarded by describer.mu; runs while there are no users

	sending sync.Mutex // one request at a time, so that their numbers are those of the wire. Never taken by the handler

	mu      sync.Mutex   // everything below; taken by the handler, so nothing is called while it is held
	self    [2]rtps.GUID // of r and w: servers answer to either
	issued  int64        // number of the last request
	pending map[int64]chan<- describeReply
}

// client returns the client of a service, for one more user: release must follow.
func (d *describer) client(n *Node, key serverKey) (*describeClient, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("node: %w", ros.ErrClosed)
	}
	c := d.clients[key]
	if c == nil {
		var err error
		if c, err = d.newClient(n, key); err != nil {
			return nil, fmt.Errorf("client of %s: %w", key.service, closedError(err))
		}
		if d.clients == nil {
			d.clients = map[serverKey]*describeClient{}
		}
		d.clients[key] = c
	}
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
	c.users++
	return c, nil
}

// newClient makes the endpoints of a client. d.mu is held.
func (d *describer) newClient(n *Node, key serverKey) (*describeClient, error) {
	form := formOf
	if d.formOf != nil {
		form = d.formOf
	}
	c := &describeClient{key: key, form: form(key.vendor), now: n.options.Now, made: time.Now(), pending: map[int64]chan<- describeReply{}}
	if c.now == nil {
		c.now = func() int64 { return time.Now().UnixNano() }
	}
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	c.id = binary.LittleEndian.Uint64(id[:])
	d.made++
	qos := rtps.QoS{Reliability: rtps.Reliable, Durability: rtps.Volatile, History: rtps.KeepLast, Depth: 10} // rmw_qos_profile_services_default
	prefix := n.p.GUID().Prefix()
	var err error
	c.r, err = n.p.NewReader(rtps.ReaderConfig{
		Topic: MangleReply(key.service), Type: describeResponse, QoS: qos, Related: true, Handler: c.take,
		UserData: clientUserData(c.form, prefix, d.made, describeResponseHash),
		Accept:   func(e rtps.Endpoint) bool { return e.GUID.Prefix() == key.prefix },
	})
	if err != nil {
		return nil, err
	}
	c.w, err = n.p.NewWriter(rtps.WriterConfig{
		Topic: MangleRequest(key.service), Type: describeRequest, QoS: qos, Related: true,
		UserData: clientUserData(c.form, prefix, d.made, describeRequestHash),
		Accept: func(e rtps.Endpoint, _ rtps.Peer) bool {
			return e.GUID.Prefix() == key.prefix && e.Vendor == key.vendor // others would not understand the form
		},
	})
	if err != nil {
		return nil, errors.Join(err, c.r.Close())
	}
	c.mu.Lock()
	c.self = [2]rtps.GUID{c.r.GUID(), c.w.GUID()}
	c.mu.Unlock()
	return c, nil
}

// release ends a use of a client.
func (d *describer) release(c *describeClient) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.users--; c.users == 0 && !d.closed {
		c.idle = time.AfterFunc(clientIdle, func() { d.expire(c) })
	}
}

// expire closes a client that nobody has used for a while.
func (d *describer) expire(c *describeClient) {
	d.mu.Lock()
	if d.closed || c.users > 0 || d.clients[c.key] != c {
		d.mu.Unlock()
		return
	}
	delete(d.clients, c.key)
	d.wg.Add(1)
	d.mu.Unlock()
	defer d.wg.Done()
	_ = c.close() // requests that nobody took are of no use to anybody
}

// close ends all clients but for those in use, whose endpoints the participant closes.
func (d *describer) close() {
	d.mu.Lock()
	d.closed = true
	for _, c := range d.clients {
		if c.idle != nil {
			c.idle.Stop()
		}
	}
	d.clients = nil
	d.mu.Unlock()
	d.wg.Wait()
}

func (c *describeClient) close() error { return errors.Join(c.w.Close(), c.r.Close()) }

// known reports whether the server's endpoints and ours have found each other, on both sides as far as can be seen: a
// reply to a reader that the server does not know is lost. After a while it is enough that we know the server's.
func (c *describeClient) known() bool {
	late := time.Since(c.made) >= matchLimit
	w := c.w.Stats()
	if w.Matched == 0 || w.Ready == 0 && !late {
		return false
	}
	for _, x := range c.r.Stats().Writers {
		if x.Matched && (x.Heard || late) {
			return true
		}
	}
	return false
}

// ask sends a request whose replies go to the channel until forget.
func (c *describeClient) ask(typ, hash string, replies chan<- describeReply) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	c.issued++
	id := requestID{client: c.id, seq: c.issued}
	c.pending[id.seq] = replies
	c.mu.Unlock()
	payload := encodeDescribe(c.form, id, typ, hash)
	var seq int64
	var err error
	if c.form == headerForm {
		seq, err = c.w.Write(payload, c.now())
	} else {
		seq, err = c.w.WriteRelated(payload, c.now(), rtps.SampleID{Writer: c.self[0], Seq: rtps.UnknownSeq})
	}
	if err == nil && seq != id.seq {
		err = fmt.Errorf("request %d was sent as %d", id.seq, seq) // cannot be: nobody else writes
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w", c.key.service, err)
	}
	return nil
}

// forget ends the interest in replies; nothing is put into the channel when it has returned.
func (c *describeClient) forget(replies chan<- describeReply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for seq, ch := range c.pending {
		if ch == replies {
			delete(c.pending, seq)
		}
	}
}

// take is the handler of the reader.
func (c *describeClient) take(s rtps.Sample) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seq := int64(0)
	if c.form == headerForm {
		if id, ok := replyID(s.Data); ok && id.client == c.id {
			seq = id.seq
		}
	} else if s.Related != nil && slices.Contains(c.self[:], s.Related.Writer) {
		seq = s.Related.Seq
	}
	if ch := c.pending[seq]; ch != nil {
		select {
		case ch <- describeReply{from: c, sample: s}:
			delete(c.pending, seq)
			return
		default: // more replies than questions
		}
	}
	s.Release()
}
