package rtps

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"
)

func TestUnsegment(t *testing.T) {
	body := payload(10_000, 1)
	got := []byte{}
	for i, m := range unsegment(outMsg{bufs: [][]byte{body[:10], body[10:5000], body[5000:]}, segment: 1500}) {
		if n := m.size(); n != 1500 && i < 6 || n > 1500 {
			t.Fatalf("datagram %d has %d bytes", i, n)
		}
		got = append(got, m.bufs[0]...)
	}
	if !bytes.Equal(got, body) {
		t.Fatal("changed")
	}
}

// Datagrams come with the kernel's stamp, which is of the wall clock.
func TestKernelStamps(t *testing.T) {
	s, err := listenLoopback()
	if err != nil {
		t.Fatal(err)
	}
	type arrival struct{ stamp, at int64 }
	arrived := make(chan arrival, 10)
	done := make(chan error, 1)
	go func() {
		done <- s.receive(4, func(datagrams [][]byte, stamps []int64) {
			for i := range datagrams {
				arrived <- arrival{stamps[i], time.Now().UnixNano()}
			}
		})
	}()
	for i := range 3 {
		time.Sleep(5 * time.Millisecond) // receive has asked for stamps by the second one
		before := time.Now().UnixNano()
		if _, err := s.WriteToUDPAddrPort([]byte("x"), s.LocalAddr().(*net.UDPAddr).AddrPort()); err != nil {
			t.Fatal(err)
		}
		if a := <-arrived; a.stamp != 0 && (a.stamp < before-int64(time.Millisecond) || a.stamp > a.at) {
			t.Errorf("stamp %d, sent after %d, received by %d", a.stamp, before, a.at)
		} else if a.stamp == 0 && i > 0 {
			t.Error("no stamp")
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("receive ended with %v", err)
	}
}
