package netsim

import (
	"bytes"
	"net/netip"
)

// Transport is rtps.Transport.
type Transport interface {
	Start(receive func(datagrams [][]byte)) error
	Locators(dst netip.Addr) (discovery, data []netip.AddrPort)
	Send(dst netip.AddrPort, datagram []byte) error
	Announce(build func(discovery, data []netip.AddrPort) []byte) error
	Local(a netip.Addr) bool
	Close() error
}

// Wrapped is a Transport with faults around it, in both directions, so that a test with a foreign peer over real
// sockets sees loss too. Rules see datagrams that arrive with a zero From, since a Transport does not tell it, and the
// announcements it sends pass untouched.
type Wrapped struct {
	Transport
	judge   judge
	in, out *queue
}

// Wrap puts faults around a transport.
func Wrap(t Transport, f Faults) *Wrapped {
	w := &Wrapped{Transport: t, in: newQueue(), out: newQueue()}
	w.judge.set(f)
	w.out.start(nil)
	return w
}

// SetFaults replaces the faults from now on.
func (w *Wrapped) SetFaults(f Faults) { w.judge.set(f) }

// Stats counts datagrams of both directions.
func (w *Wrapped) Stats() Stats { return w.judge.count() }

// Start begins delivery.
func (w *Wrapped) Start(receive func(datagrams [][]byte)) error {
	w.in.start(receive)
	_, data := w.Locators(netip.Addr{})
	var self netip.AddrPort
	if len(data) > 0 {
		self = data[0]
	}
	return w.Transport.Start(func(datagrams [][]byte) {
		for _, b := range datagrams {
			late, copies := w.judge.decide(netip.AddrPort{}, self, false, b)
			for i := range copies {
				if !w.in.add(late[i], bytes.Clone(b), nil) {
					w.judge.overflow(1)
				}
			}
		}
	})
}

// Send sends through the faults. Its error is nil unless the transport is asked at once and refuses: what is delayed has
// no one to tell.
func (w *Wrapped) Send(dst netip.AddrPort, datagram []byte) error {
	_, data := w.Locators(dst.Addr())
	var self netip.AddrPort
	if len(data) > 0 {
		self = data[0]
	}
	late, copies := w.judge.decide(self, dst, false, datagram)
	for i := range copies {
		if late[i] == 0 {
			if err := w.Transport.Send(dst, datagram); err != nil {
				return err
			}
			continue
		}
		if !w.out.add(late[i], bytes.Clone(datagram), func(b []byte) { _ = w.Transport.Send(dst, b) }) {
			w.judge.overflow(1)
		}
	}
	return nil
}

// Close closes the transport and forgets what is on its way.
func (w *Wrapped) Close() error {
	w.out.close()
	err := w.Transport.Close()
	w.in.close()
	return err
}
