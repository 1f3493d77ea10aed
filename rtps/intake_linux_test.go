package rtps

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// Whatever comes to any of the sockets is handed over, before and after silence, with and without lulls; the end is quick.
func TestIntake(t *testing.T) {
	for _, lulled := range []bool{false, true} {
		var sockets []*socket
		for range 3 {
			s, err := listenLoopback()
			if err != nil {
				t.Fatal(err)
			}
			sockets = append(sockets, s)
		}
		in, err := newIntake(sockets)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var got [3]int
		done := make(chan error, 1)
		go func() {
			done <- in.receive(4, lulled, func(datagrams [][]byte, stamps []int64) {
				mu.Lock()
				defer mu.Unlock()
				for i, d := range datagrams {
					got[d[0]]++
					if age := time.Now().UnixNano() - stamps[i]; age < 0 || age > int64(10*time.Second) {
						t.Errorf("a stamp %d ns ago", age)
					}
				}
			})
		}()
		total := 0
		for round := range 3 {
			for n := range 50 {
				for i, s := range sockets {
					to := s.LocalAddr().(*net.UDPAddr).AddrPort()
					if err := sockets[(i+n)%3].sendBatch([]outMsg{{dst: to, bufs: [][]byte{{byte(i)}, make([]byte, 100)}}}); err != nil {
						t.Fatal(err)
					}
				}
				total++
				if round == 1 {
					time.Sleep(100 * time.Microsecond) // one by one: lulls
				}
			}
			eventually(t, "datagrams", 5*time.Second, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return got == [3]int{total, total, total}
			})
			time.Sleep(20 * time.Millisecond)
		}
		in.stop()
		in.stop()
		select {
		case err := <-done:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("receive ended with %v", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("receive goes on")
		}
		for _, s := range sockets {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := s.Close(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("closed again: %v", err)
			}
			if err := s.sendBatch([]outMsg{{dst: netip.AddrPortFrom(loopback, 9), bufs: [][]byte{{1}}}}); !errors.Is(err, net.ErrClosed) {
				t.Errorf("send when closed: %v", err)
			}
			if s.recvBuffer() != 0 {
				t.Error("a closed socket has a buffer")
			}
		}
	}
}

// A sender that waits for room is not in the way of closing.
func TestDetachedCloseWhileSending(t *testing.T) {
	s, err := listenLoopback()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.detach(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.raw.Write(func(uintptr) bool { return false }) }()
	time.Sleep(20 * time.Millisecond)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("write ended with %v", err)
	}
}

// Small datagrams that keep coming, for which reading waits again and again, do not keep an intake from ending.
func TestIntakeEndsUnderLoad(t *testing.T) {
	s, err := listenLoopback()
	if err != nil {
		t.Fatal(err)
	}
	in, err := newIntake([]*socket{s})
	if err != nil {
		t.Fatal(err)
	}
	from, err := net.DialUDP("udp4", nil, s.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	var sender sync.WaitGroup
	quit := make(chan struct{})
	sender.Go(func() {
		for {
			select {
			case <-quit:
				return
			case <-time.After(time.Millisecond):
				for range 6 {
					_, _ = from.Write(make([]byte, 100)) // some may be refused
				}
			}
		}
	})
	done := make(chan error, 1)
	go func() { done <- in.receive(32, true, func([][]byte, []int64) {}) }()
	time.Sleep(200 * time.Millisecond)
	in.stop()
	select {
	case err := <-done:
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("receive ended with %v", err)
		}
	case <-time.After(3 * time.Second):
		t.Error("receive goes on")
	}
	close(quit)
	sender.Wait()
	if err := errors.Join(from.Close(), s.Close()); err != nil {
		t.Error(err)
	}
}
