package main

import (
	"net"
	"runtime"
	"testing"
	"time"
)

// listenUnixgram receives datagrams at a Unix socket, each by a call of what it returns; "" when none comes.
func listenUnixgram(t *testing.T, path string) func() string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no such sockets")
	}
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return func() string {
		b := make([]byte, 100)
		if err := c.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(b)
		if err != nil {
			return ""
		}
		return string(b[:n])
	}
}
