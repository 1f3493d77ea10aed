package ros2

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// serviceQoS is rmw_qos_profile_services_default.
var serviceQoS = rtps.QoS{Reliability: rtps.Reliable, Durability: rtps.Volatile, History: rtps.KeepLast, Depth: 10}

const (
	maxWaiting   = 16                     // requests that wait for the handler; later ones are dropped
	clientPeriod = 300 * time.Millisecond // how long a reply waits for the client's reader to be known
)

// serviceServer is a service being offered to clients of every vendor. Requests come to one reader, which tells the two forms
// apart by what they carry; replies go out by a writer for each form, since readers of the one cannot read the other.
type serviceServer struct {
	n        *Node
	reply    string // topic
	handle   func([]byte) []byte
	r        *rtps.Reader
	w        [2]*rtps.Writer // by serviceForm
	requests chan rtps.Sample
	stop     chan struct{}
	done     sync.WaitGroup
	once     sync.Once
	err      error // of Close
}

// Serve implements ros.Services.
func (n *Node) Serve(s ros.Service, handle func([]byte) []byte) (ros.Server, error) {
	if handle == nil {
		return nil, fmt.Errorf("serve %s: no handler", s.Name)
	}
	if _, err := n.endpointNames("serve", ros.Topic{Name: s.Name, Type: s.Type}, ros.QoS{}); err != nil {
		return nil, err
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, fmt.Errorf("serve %s: %w", s.Name, err)
	}
	v := &serviceServer{n: n, reply: MangleReply(s.Name), handle: handle, requests: make(chan rtps.Sample, maxWaiting), stop: make(chan struct{})}
	if err := v.open(s, serviceIDs("serviceid", id)); err != nil {
		return nil, errors.Join(fmt.Errorf("serve %s: %w", s.Name, closedError(err)), v.Close())
	}
	v.done.Go(v.run)
	return v, nil
}

// forms returns what tells the form of a vendor's services.
func (d *describer) forms() func(wire.VendorID) serviceForm {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.formOf != nil {
		return d.formOf
	}
	return formOf
}

// serviceIDs is how the endpoints of a server or client of rmw_cyclonedds say that they belong together.
func serviceIDs(key string, id [16]byte) string {
	parts := make([]string, len(id))
	for i, b := range id {
		parts[i] = strconv.FormatUint(uint64(b), 16)
	}
	return key + "=" + strings.Join(parts, ".") + ";"
}

func (v *serviceServer) open(s ros.Service, ids string) (err error) {
	formOf := v.n.asks.forms()
	userData := func(hash string) []byte { return append([]byte(ids), endpointUserData(hash)...) }
	for _, form := range []serviceForm{identityForm, headerForm} {
		v.w[form], err = v.n.p.NewWriter(rtps.WriterConfig{Topic: v.reply, Type: MangleType(s.Type + "_Response"), QoS: serviceQoS,
			Related: form == identityForm, UserData: userData(s.ResponseHash),
			Accept: func(e rtps.Endpoint, _ rtps.Peer) bool { return formOf(e.Vendor) == form }})
		if err != nil {
			return err
		}
	}
	v.r, err = v.n.p.NewReader(rtps.ReaderConfig{Topic: MangleRequest(s.Name), Type: MangleType(s.Type + "_Request"), QoS: serviceQoS,
		Related: true, UserData: userData(s.RequestHash), Handler: v.take})
	return err
}

// take runs on a receive goroutine.
func (v *serviceServer) take(x rtps.Sample) {
	select {
	case v.requests <- x:
	default:
		x.Release()
	}
}

func (v *serviceServer) run() {
	for {
		select {
		case x := <-v.requests:
			v.answer(x)
		case <-v.stop:
			return
		}
	}
}

// answer hands a request to the handler and sends the reply.
func (v *serviceServer) answer(x rtps.Sample) {
	defer x.Release()
	form, request, header := identityForm, x.Data, []byte(nil)
	if x.Related == nil {
		form = headerForm
		if len(x.Data) < 20 {
			return
		}
		header = x.Data[4:20]
		request = append(append(make([]byte, 0, len(x.Data)-16), x.Data[:4]...), x.Data[20:]...)
	}
	if _, _, _, err := cdr.Split(request); err != nil {
		return
	}
	reply := v.handle(request)
	if len(reply) < 4 {
		return
	}
	v.awaitClient(x.Writer.Prefix())
	var err error
	if form == headerForm {
		out := append(make([]byte, 0, len(reply)+16), reply[:4]...)
		_, err = v.w[form].Write(append(append(out, header...), reply[4:]...), time.Now().UnixNano())
	} else {
		_, err = v.w[form].WriteRelated(reply, time.Now().UnixNano(), rtps.SampleID{Writer: x.Related.Writer, Seq: x.Seq})
	}
	if err != nil && !errors.Is(err, rtps.ErrClosed) {
		v.n.log.Warn("a reply could not be sent", "topic", v.reply, "err", err)
	}
}

// awaitClient waits, not for long, until the client's reader is known: a reply sent before is lost.
func (v *serviceServer) awaitClient(client wire.Prefix) {
	for end := time.Now().Add(clientPeriod); time.Now().Before(end); {
		if len(v.n.p.Select(func(e *rtps.Endpoint) bool {
			return !e.Writer && !e.Local && e.GUID.Prefix() == client && e.Topic == v.reply
		})) > 0 {
			return
		}
		select {
		case <-time.After(matchTick):
		case <-v.stop:
			return
		}
	}
}

// Close implements ros.Server.
func (v *serviceServer) Close() error {
	v.once.Do(func() {
		close(v.stop)
		if v.r != nil {
			v.err = v.r.Close()
		}
		v.done.Wait()
		for _, w := range v.w {
			if w != nil {
				v.err = errors.Join(v.err, w.Close())
			}
		}
		for {
			select {
			case x := <-v.requests:
				x.Release()
				continue
			default:
			}
			break
		}
	})
	return v.err
}
