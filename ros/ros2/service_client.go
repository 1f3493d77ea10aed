package ros2

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
)

// serviceClient calls a service, whoever offers it. It has a writer and a reader for each form; which one is used is decided by
// the vendor of the server that is there.
type serviceClient struct {
	n       *Node
	service string
	id      uint64 // headerForm: our number in requests
	w       [2]*rtps.Writer
	r       [2]*rtps.Reader

	sending sync.Mutex // so that the numbers of requests are those of the wire

	mu      sync.Mutex // never held while anything is called
	pending map[clientCall]chan []byte
	self    [2][]rtps.GUID // of the form's reader and writer
	issued  [2]int64
}

type clientCall struct {
	form serviceForm
	seq  int64
}

// Client implements ros.Services.
func (n *Node) Client(s ros.Service) (ros.Client, error) {
	if _, err := n.endpointNames("client of", ros.Topic{Name: s.Name, Type: s.Type}, ros.QoS{}); err != nil {
		return nil, err
	}
	c := &serviceClient{n: n, service: s.Name, pending: map[clientCall]chan []byte{}}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("client of %s: %w", s.Name, err)
	}
	c.id = binary.LittleEndian.Uint64(id[:])
	if err := c.open(s, serviceIDs("clientid", id)); err != nil {
		return nil, errors.Join(fmt.Errorf("client of %s: %w", s.Name, closedError(err)), c.Close())
	}
	return c, nil
}

func (c *serviceClient) open(s ros.Service, ids string) (err error) {
	formOf := c.n.asks.forms()
	for _, form := range []serviceForm{identityForm, headerForm} {
		userData := func(hash string) []byte {
			if form == headerForm {
				return append([]byte(ids), endpointUserData(hash)...)
			}
			return endpointUserData(hash)
		}
		c.r[form], err = c.n.p.NewReader(rtps.ReaderConfig{Topic: MangleReply(s.Name), Type: MangleType(s.Type + "_Response"), QoS: serviceQoS,
			Related: true, UserData: userData(s.ResponseHash), Handler: func(x rtps.Sample) { c.take(form, x) },
			Accept: func(e rtps.Endpoint) bool { return formOf(e.Vendor) == form }})
		if err != nil {
			return err
		}
		c.w[form], err = c.n.p.NewWriter(rtps.WriterConfig{Topic: MangleRequest(s.Name), Type: MangleType(s.Type + "_Request"), QoS: serviceQoS,
			Related: true, UserData: userData(s.RequestHash),
			Accept: func(e rtps.Endpoint, _ rtps.Peer) bool { return formOf(e.Vendor) == form }})
		if err != nil {
			return err
		}
		c.mu.Lock()
		c.self[form] = []rtps.GUID{c.r[form].GUID(), c.w[form].GUID()}
		c.mu.Unlock()
	}
	return nil
}

// form returns that of a server that knows us.
func (c *serviceClient) form() (serviceForm, bool) {
	for _, form := range []serviceForm{identityForm, headerForm} {
		if w := c.w[form].Stats(); w.Ready == 0 {
			continue
		}
		for _, x := range c.r[form].Stats().Writers {
			if x.Matched && x.Heard {
				return form, true
			}
		}
	}
	return 0, false
}

// Ready implements ros.Client.
func (c *serviceClient) Ready() bool { _, ok := c.form(); return ok }

// Call implements ros.Client. It waits until a server is there.
func (c *serviceClient) Call(ctx context.Context, request []byte) ([]byte, error) {
	if len(request) < 4 {
		return nil, fmt.Errorf("call %s: request of %d bytes", c.service, len(request))
	}
	form, ok := c.form()
	for ; !ok; form, ok = c.form() {
		select {
		case <-time.After(matchTick):
		case <-c.n.stop:
			return nil, fmt.Errorf("call %s: node: %w", c.service, ros.ErrClosed)
		case <-ctx.Done():
			return nil, fmt.Errorf("call %s: nobody offers it: %w", c.service, ctx.Err())
		}
	}
	reply := make(chan []byte, 1)
	call, err := c.send(form, request, reply)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", c.service, closedError(err))
	}
	defer func() {
		c.mu.Lock()
		delete(c.pending, call)
		c.mu.Unlock()
	}()
	select {
	case data := <-reply:
		return data, nil
	case <-c.n.stop:
		return nil, fmt.Errorf("call %s: node: %w", c.service, ros.ErrClosed)
	case <-ctx.Done():
		return nil, fmt.Errorf("call %s: no reply: %w", c.service, ctx.Err())
	}
}

func (c *serviceClient) send(form serviceForm, request []byte, reply chan []byte) (call clientCall, err error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	c.mu.Lock()
	c.issued[form]++
	call = clientCall{form, c.issued[form]}
	c.pending[call] = reply
	self := c.self[form][0]
	c.mu.Unlock()
	now := time.Now().UnixNano()
	if form == headerForm {
		out := append(make([]byte, 0, len(request)+16), request[:4]...)
		order := binary.ByteOrder(binary.LittleEndian)
		if request[1]&1 == 0 { // big-endian CDR
			order = binary.BigEndian
		}
		out = append(out, make([]byte, 16)...)
		order.PutUint64(out[4:], c.id)
		order.PutUint64(out[12:], uint64(call.seq))
		_, err = c.w[form].Write(append(out, request[4:]...), now)
	} else {
		_, err = c.w[form].WriteRelated(request, now, rtps.SampleID{Writer: self, Seq: rtps.UnknownSeq})
	}
	return call, err
}

// take runs on a receive goroutine.
func (c *serviceClient) take(form serviceForm, x rtps.Sample) {
	defer x.Release()
	c.mu.Lock()
	defer c.mu.Unlock()
	call := clientCall{form: form}
	data := x.Data
	if form == headerForm {
		id, ok := replyID(data)
		if !ok || id.client != c.id || len(data) < 20 {
			return
		}
		call.seq = id.seq
		data = append(append(make([]byte, 0, len(data)-16), data[:4]...), data[20:]...)
	} else {
		if x.Related == nil || !slices.Contains(c.self[form], x.Related.Writer) {
			return
		}
		call.seq = x.Related.Seq
		data = slices.Clone(data)
	}
	if ch := c.pending[call]; ch != nil {
		select {
		case ch <- data:
		default: // a second reply
		}
	}
}

// Close implements ros.Client.
func (c *serviceClient) Close() error {
	var errs []error
	for _, w := range c.w {
		if w != nil {
			errs = append(errs, w.Close())
		}
	}
	for _, r := range c.r {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}
