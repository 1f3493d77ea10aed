package ros1

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/protocommon"
	"github.com/bluenviron/goroslib/v2/pkg/prototcp"

	"github.com/gobag/gobag/ros"
)

// ServiceType is a type of service of ROS 1.
type ServiceType struct{ Name, MD5 string }

// Trigger is std_srvs/Trigger, which every installation of ROS 1 has: an empty request, a bool and a string in return.
var Trigger = ServiceType{"std_srvs/Trigger", "937c9679a518e3a18d831e57125ea522"}

const (
	maxRequest  = 1 << 20          // bytes of a request that is taken
	idleService = 10 * time.Minute // a persistent connection that says nothing for so long is ended
	maxCallers  = 16               // connections of callers of one service
)

// service is a service that the node offers.
type service struct {
	n      *Node
	name   string
	typ    ServiceType
	handle func(request []byte) (reply []byte, err error)
	slots  chan struct{}

	mu    sync.Mutex // one request at a time
	regMu sync.Mutex // guards ended, and orders registrations
	ended bool
	once  sync.Once
}

// Serve offers a service until the closer it returns is closed, or the node. handle gets a request and returns the reply,
// both serialized as ROS 1 does; the text of an error is sent to the caller. It is called for one request at a time.
func (n *Node) Serve(name string, typ ServiceType, handle func(request []byte) (reply []byte, err error)) (io.Closer, error) {
	if err := ros.ValidName(name); err != nil {
		return nil, fmt.Errorf("serve %s: %w", name, err)
	}
	s := &service{n: n, name: name, typ: typ, handle: handle, slots: make(chan struct{}, maxCallers)}
	n.mu.Lock()
	switch {
	case n.closed:
		n.mu.Unlock()
		return nil, fmt.Errorf("serve %s: %w", name, ros.ErrClosed)
	case n.services[name] != nil:
		n.mu.Unlock()
		return nil, fmt.Errorf("serve %s: this node serves it already", name)
	}
	n.services[name] = s
	n.mu.Unlock()
	s.register()
	return s, nil
}

// ServeTrigger offers a service of type Trigger. handle says whether what it does was done, and a text.
func (n *Node) ServeTrigger(name string, handle func() (done bool, text string)) (io.Closer, error) {
	return n.Serve(name, Trigger, func([]byte) ([]byte, error) {
		done, text := handle()
		reply := make([]byte, 1, 5+len(text))
		if done {
			reply[0] = 1
		}
		return append(binary.LittleEndian.AppendUint32(reply, uint32(len(text))), text...), nil
	})
}

// register tells the master, also after that was restarted.
func (s *service) register() {
	s.regMu.Lock()
	defer s.regMu.Unlock()
	if s.ended {
		return
	}
	if err := s.n.master.RegisterService(s.name, s.uri(), s.n.uri); err != nil {
		s.n.o.Logger.Debug("registering a service failed, trying again", "service", s.name, "err", err)
	}
}

func (s *service) uri() string {
	return (&url.URL{Scheme: "rosrpc", Host: net.JoinHostPort(s.n.host, strconv.Itoa(s.n.port))}).String()
}

// Close ends the service. Idempotent.
func (s *service) Close() error {
	s.once.Do(func() {
		s.n.mu.Lock()
		if s.n.services[s.name] == s {
			delete(s.n.services, s.name)
		}
		s.n.mu.Unlock()
		s.regMu.Lock()
		defer s.regMu.Unlock()
		s.ended = true
		if !s.n.down.Load() {
			s.n.unregistered("service", s.name, s.n.master.UnregisterService(s.name, s.uri()))
		}
	})
	return nil
}

// refuses says what is wrong with a caller; "" if nothing is.
func (s *service) refuses(h protocommon.HeaderRaw) string {
	switch {
	case s == nil:
		return fmt.Sprintf("service %.200q is not offered by this node", h["service"])
	case h["md5sum"] != "*" && h["md5sum"] != s.typ.MD5:
		return fmt.Sprintf("service %s has md5sum %s, the caller has %.64s", s.name, s.typ.MD5, h["md5sum"])
	}
	select {
	case s.slots <- struct{}{}:
		return ""
	default:
		return fmt.Sprintf("service %s has %d callers already", s.name, maxCallers)
	}
}

// serveCalls answers the caller at the other end of a connection whose header was h.
func (n *Node) serveCalls(c net.Conn, br *bufio.Reader, h protocommon.HeaderRaw) {
	n.mu.Lock()
	s := n.services[h["service"]]
	n.mu.Unlock()
	if text := s.refuses(h); text != "" {
		_ = protocommon.HeaderEncode(c, &prototcp.HeaderError{Error: text}) // the connection ends in any case
		return
	}
	defer func() { <-s.slots }()
	err := protocommon.HeaderEncode(c, &prototcp.HeaderServiceProvider{Callerid: n.name, Md5sum: s.typ.MD5, Type: s.typ.Name,
		RequestType: s.typ.Name + "Request", ResponseType: s.typ.Name + "Response"})
	if err != nil || h["probe"] == "1" {
		return
	}
	for again := true; again; again = h["persistent"] == "1" {
		if c.SetDeadline(time.Now().Add(idleService)) != nil || s.answer(c, br) != nil {
			return
		}
	}
}

// answer takes one request and sends the reply.
func (s *service) answer(c net.Conn, br *bufio.Reader) error {
	var head [4]byte
	if _, err := io.ReadFull(br, head[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > maxRequest {
		return errors.New("the request is too large")
	}
	request := make([]byte, size)
	if _, err := io.ReadFull(br, request); err != nil {
		return err
	}
	s.mu.Lock()
	reply, err := s.handle(request)
	s.mu.Unlock()
	ok := byte(1)
	if err != nil {
		ok, reply = 0, []byte(err.Error())
	}
	out := append(binary.LittleEndian.AppendUint32([]byte{ok}, uint32(len(reply))), reply...)
	_, err = c.Write(out)
	return err
}
