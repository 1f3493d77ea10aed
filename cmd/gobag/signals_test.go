//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

func TestStopper(t *testing.T) {
	var got []int
	s := newStopper(t.Context(), func(_ os.Signal, n int) { got = append(got, n) })
	defer s.Close()
	send := func(sig syscall.Signal) {
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGTERM)
	<-s.ctx.Done()
	send(syscall.SIGINT) // a wrapper's second copy
	select {
	case <-s.hurry.Done():
		t.Fatal("a copy of the first signal counts as the second")
	case <-time.After(sameSignal):
	}
	send(syscall.SIGINT)
	select {
	case <-s.hurry.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the second signal does not hurry")
	}
	s.Close()
	if len(got) != 2 || got[0] != 1 || got[1] != 2 {
		t.Errorf("%v", got)
	}
}
