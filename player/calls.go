package player

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	defs "github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
)

const (
	maxCalls    = 16              // requests of a service that wait for replies to earlier ones
	callTimeout = 5 * time.Second // for a reply
)

// Kinds of service events that carry a request (service_msgs/msg/ServiceEventInfo).
const (
	requestSent     = 0 // seen by the client
	requestReceived = 1 // seen by the server
)

// calls says whether a topic's messages are turned into calls of the service whose events they are, and whether it is left
// out, since they are of an action that is called.
func (o Options) callsOf(name string) (call, leave bool) {
	if ros.ActionOf(name) != "" {
		return o.ActionsAsClient && ros.ServiceOf(name) != "", o.ActionsAsClient && ros.ServiceOf(name) == ""
	}
	return o.CallServices && ros.ServiceOf(name) != "", false
}

// caller is a ros.Publisher that calls a service with the requests in the events that it is given.
type caller struct {
	p       *Player
	topic   ros.Topic
	service string
	client  ros.Client
	kind    uint8             // of the events that count
	event   *defs.Description // of the event type
	request *defs.Message

	queue chan []byte
	stop  context.CancelFunc
	wg    sync.WaitGroup
	once  sync.Once
	err   error

	sent, failed, unread atomic.Uint64
}

// newCaller makes the client of the service whose events a topic carries.
func (p *Player) newCaller(pub *publication) (ros.Publisher, error) {
	event, err := describeEvent(pub)
	if err != nil {
		return nil, err
	}
	c := &caller{p: p, topic: pub.Topic, service: ros.ServiceOf(pub.Name), kind: requestReceived, event: event, queue: make(chan []byte, maxCalls)}
	if p.o.FromClient {
		c.kind = requestSent
	}
	typ := pub.Type[:len(pub.Type)-len(eventSuffix)]
	for i := range event.Referenced {
		if event.Referenced[i].Name == typ+"_Request" {
			c.request = &event.Referenced[i]
		}
	}
	if c.request == nil {
		return nil, fmt.Errorf("%s has no request of type %s_Request", pub.Type, typ)
	}
	c.client, err = p.o.Node.(ros.Services).Client(ros.Service{Name: c.service, Type: typ})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.wg.Go(func() { c.run(ctx) })
	return c, nil
}

const eventSuffix = "_Event"

// describeEvent finds the definition of a service's event type: in the bag, else on this machine.
func describeEvent(pub *publication) (*defs.Description, error) {
	if len(pub.Type) <= len(eventSuffix) || pub.Type[len(pub.Type)-len(eventSuffix):] != eventSuffix {
		return nil, fmt.Errorf("%s is no type of service events", pub.Type)
	}
	d, err := defs.DescribeText(pub.Type, pub.definition.Encoding, pub.definition.Text)
	if err == nil {
		return &d, nil
	}
	found, ferr := defs.NewFinder(defs.Options{Dirs: defs.SearchDirs(nil)}).Find(pub.Type, pub.TypeHash)
	if ferr != nil {
		return nil, fmt.Errorf("its requests cannot be read: %w", errors.Join(err, ferr))
	}
	if d, err = defs.DescribeText(pub.Type, found.Encoding, found.Text); err != nil {
		return nil, fmt.Errorf("its requests cannot be read: %w", err)
	}
	return &d, nil
}

// Topic implements ros.Publisher.
func (c *caller) Topic() ros.Topic { return c.topic }

// Publish implements ros.Publisher: it calls the service when data holds a request. It does not wait for the reply.
func (c *caller) Publish(data []byte, _ int64) error {
	request, err := c.requestOf(data)
	if err != nil {
		if c.unread.Add(1) == 1 {
			c.p.emit(EventOther, slog.LevelWarn, c.topic.Name, fmt.Sprintf("service '%s': an event cannot be read: %v", c.service, err))
		}
		return nil
	}
	if request == nil {
		return nil
	}
	select {
	case c.queue <- request:
	default:
		c.fail(fmt.Errorf("%d requests wait for replies", maxCalls))
	}
	return nil
}

func (c *caller) fail(err error) {
	if c.failed.Add(1) == 1 {
		c.p.emit(EventOther, slog.LevelWarn, c.topic.Name, fmt.Sprintf("service '%s' is not called: %v; said once", c.service, err))
	}
}

func (c *caller) run(ctx context.Context) {
	for {
		select {
		case request := <-c.queue:
			one, cancel := context.WithTimeout(ctx, callTimeout)
			_, err := c.client.Call(one, request)
			cancel()
			if err != nil && ctx.Err() == nil {
				c.fail(err)
			} else {
				c.sent.Add(1)
			}
		case <-ctx.Done():
			return
		}
	}
}

// Stats implements ros.Publisher. What waits for a reply counts as not acknowledged.
func (c *caller) Stats() ros.PublisherStats {
	st := ros.PublisherStats{Sent: c.sent.Load(), Dropped: c.failed.Load(), Unacked: len(c.queue)}
	if c.client.Ready() {
		st.Matched, st.Reliable = 1, 1
	}
	return st
}

// Close implements ros.Publisher. Requests that still wait are given up.
func (c *caller) Close() error {
	c.once.Do(func() {
		c.stop()
		c.wg.Wait()
		c.err = c.client.Close()
	})
	return c.err
}

// requestOf returns the request in an event as a message of its own; nil where there is none of the kind that counts. Within
// the event its values are aligned otherwise, so it is copied value by value.
func (c *caller) requestOf(event []byte) ([]byte, error) {
	d, err := cdr.NewDecoder(event)
	if err != nil {
		return nil, err
	}
	kind := d.Uint8()
	d.Int32() // stamp
	d.Uint32()
	d.Skip(16) // client
	d.Int64()  // sequence number
	n := d.Len(1)
	if err := d.Err(); err != nil || n == 0 || kind != c.kind {
		return nil, err
	}
	var e cdr.Encoder
	e.Reset(nil, d.Kind())
	if err := (&realigner{c.event, d, &e}).message(c.request, 0); err != nil {
		return nil, err
	}
	return e.Bytes(), nil
}

// realigner copies values from one place in a payload to another.
type realigner struct {
	types *defs.Description
	d     *cdr.Decoder
	e     *cdr.Encoder
}

// maxNesting is far above what interfaces have.
const maxNesting = 50

func (r *realigner) message(m *defs.Message, depth int) error {
	if depth > maxNesting {
		return errors.New("types are nested too deeply")
	}
	if len(m.Fields) == 0 { // a structure has at least one member
		r.e.Uint8(r.d.Uint8())
	}
	for i := range m.Fields {
		if err := r.field(&m.Fields[i].Type, depth); err != nil {
			return err
		}
	}
	return r.d.Err()
}

func (r *realigner) field(t *defs.Type, depth int) error {
	n := 1
	switch t.Array {
	case defs.Fixed:
		n = int(min(t.Capacity, 1<<31))
	case defs.Bounded, defs.Unbounded:
		n = r.d.Len(1)
		r.e.SeqLen(n)
	}
	if err := r.d.Err(); err != nil {
		return err
	}
	var nested *defs.Message
	if t.Base == defs.Nested {
		for i := range r.types.Referenced {
			if r.types.Referenced[i].Name == t.Name {
				nested = &r.types.Referenced[i]
			}
		}
		if nested == nil {
			return fmt.Errorf("type %s is not known", t.Name)
		}
	}
	for range n {
		if nested != nil {
			if err := r.message(nested, depth+1); err != nil {
				return err
			}
			continue
		}
		if err := r.value(t.Base); err != nil {
			return err
		}
		if err := r.d.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (r *realigner) value(b defs.Base) error {
	switch b {
	case defs.Int8, defs.UInt8, defs.Char, defs.Bool, defs.Byte:
		r.e.Uint8(r.d.Uint8())
	case defs.Int16, defs.UInt16, defs.WChar:
		r.e.Uint16(r.d.Uint16())
	case defs.Int32, defs.UInt32, defs.Float:
		r.e.Uint32(r.d.Uint32())
	case defs.Int64, defs.UInt64, defs.Double:
		r.e.Uint64(r.d.Uint64())
	case defs.String, defs.BoundedString:
		r.e.Str(r.d.Str())
	case defs.WString, defs.BoundedWString:
		r.e.WStr(r.d.WStr())
	default:
		return fmt.Errorf("values of kind %d cannot be copied", b)
	}
	return nil
}

// prepareCalls marks the publication of a topic whose events become calls; false leaves the topic out.
func (p *Player) prepareCalls(pub *publication, t *bag.TopicInfo) bool {
	call, leave := p.o.callsOf(pub.Name)
	pub.call, pub.definition = call, t.Definition
	return !leave
}
