package ros2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/internal/netsim"
	"github.com/gobag/gobag/ros"
)

var adder = ros.Service{Name: "/adder/add", Type: "example_interfaces/srv/AddTwoInts"}

// servePlusOne offers a service that adds one, and counts its calls.
func servePlusOne(t *testing.T, n *Node, calls *atomic.Int64) ros.Server {
	t.Helper()
	v, err := n.Serve(adder, func(request []byte) []byte {
		calls.Add(1)
		d, err := cdr.NewDecoder(request)
		if err != nil {
			return nil
		}
		x := d.Uint64()
		if d.Err() != nil {
			return nil
		}
		e := cdr.NewEncoder(nil, cdr.CDRLE)
		e.Uint64(x + 1)
		return e.Bytes()
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func request(x uint64) []byte {
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	e.Uint64(x)
	return e.Bytes()
}

// A server answers clients in both forms, in order, also when they ask at once and when datagrams are lost.
func TestServices(t *testing.T) {
	for name, f := range map[string]netsim.Faults{"sound": {}, "lossy": {Loss: 0.1, Seed: 5}} {
		t.Run(name, func(t *testing.T) {
			bothForms(t, f, func(t *testing.T, s *sim, form serviceForm) {
				server, client := s.asking(form), s.asking(form)
				var calls atomic.Int64
				v := servePlusOne(t, server, &calls)
				c, err := client.Client(adder)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				for i := range uint64(20) {
					reply, err := c.Call(ctx, request(i))
					if err != nil {
						t.Fatal(err)
					}
					if len(reply) < 12 || !bytes.Equal(reply[:12], request(i + 1)[:12]) {
						t.Fatalf("call %d: reply %x", i, reply)
					}
				}
				if n := calls.Load(); n != 20 {
					t.Errorf("the server was called %d times", n)
				}
				got := make(chan error, 8)
				for i := range uint64(8) {
					go func() {
						reply, err := c.Call(ctx, request(100+i))
						if err == nil && !bytes.Equal(reply[:12], request(101 + i)[:12]) {
							err = fmt.Errorf("reply %x to %d", reply, i)
						}
						got <- err
					}()
				}
				for range 8 {
					if err := <-got; err != nil {
						t.Error(err)
					}
				}
				if err := errors.Join(v.Close(), v.Close(), c.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestServiceErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		n := s.node(Options{})
		if _, err := n.Serve(adder, nil); err == nil {
			t.Error("a service without handler")
		}
		if _, err := n.Serve(ros.Service{Name: "no slash", Type: adder.Type}, func([]byte) []byte { return nil }); !errors.Is(err, ros.ErrName) {
			t.Error(err)
		}
		c, err := n.Client(adder)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := c.Call(ctx, request(1)); !errors.Is(err, context.DeadlineExceeded) || c.Ready() {
			t.Errorf("nobody offers it: %v", err)
		}
		if _, err := c.Call(ctx, nil); err == nil {
			t.Error("an empty request")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A reply that the handler refuses is none, and a handler that panics on nothing: requests that are no CDR never reach it.
func TestServiceOddRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, netsim.Faults{})
		defer s.close()
		server, client := s.node(Options{}), s.node(Options{})
		var calls atomic.Int64
		v := servePlusOne(t, server, &calls)
		defer v.Close()
		c, err := client.Client(adder)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, odd := range [][]byte{{0, 1, 0, 0}, {9, 9, 9, 9, 9}, bytes.Repeat([]byte{0xff}, 1000)} {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			if reply, err := c.Call(ctx, odd); err == nil {
				t.Errorf("%x is answered with %x", odd, reply)
			}
			cancel()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if _, err := c.Call(ctx, request(1)); err != nil {
			t.Error(err)
		}
	})
}
