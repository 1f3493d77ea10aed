package rtps

import (
	"bytes"
	"testing"
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
