//go:build linux

package lab

import (
	"bytes"
	"slices"
	"testing"

	"github.com/gobag/gobag/rtps/wire"
)

// message is a datagram with a submessage of every kind that BigEndian turns.
func message() []byte {
	b := wire.AppendHeader(nil, wire.Header{Version: wire.Protocol, Vendor: wire.VendorFast})
	b = wire.AppendInfoTS(b, 0x0102030405060708)
	b = wire.AppendInfoDst(b, wire.Prefix{1, 2, 3})
	writer, reader := wire.EntityID{0, 0, 1, 3}, wire.EntityID{0, 0, 1, 4}
	a := wire.AckNack{Reader: reader, Writer: writer, Set: wire.SeqSet{Base: 5}, Count: 9}
	a.Set.Add(6)
	a.Set.Add(70)
	b = wire.AppendAckNack(b, &a)
	n := wire.NackFrag{Reader: reader, Writer: writer, Seq: 3, Set: wire.FragSet{Base: 2}, Count: 4}
	n.Set.Add(40)
	b = wire.AppendNackFrag(b, &n)
	b = wire.AppendHeartbeat(b, &wire.Heartbeat{Reader: reader, Writer: writer, First: 1 << 33, Last: 1<<33 + 4, Count: 8})
	g := wire.Gap{Reader: reader, Writer: writer, Start: 3, Set: wire.SeqSet{Base: 5}}
	g.Set.Add(7)
	b = wire.AppendGap(b, &g)
	return wire.AppendData(b, &wire.Data{Reader: reader, Writer: writer, Seq: 77, Payload: []byte{0, 1, 0, 0, 1, 2, 3, 4},
		InlineQoS: wire.InlineQoS{Status: 3, HasKeyHash: true, KeyHash: wire.GUID{1, 2, 3}}})
}

func collect(t *testing.T, b []byte) []Submessage {
	t.Helper()
	var p Packet
	if err := p.decoder.Decode(b, (*collector)(&p)); err != nil {
		t.Fatal(err)
	}
	return p.Submessage
}

func TestBigEndianSaysTheSame(t *testing.T) {
	b := message()
	turned := Rewrite(b, RawSubmessage.BigEndian)
	_, list, err := SplitMessage(turned)
	if err != nil || len(list) != 7 {
		t.Fatalf("%d submessages, %v", len(list), err)
	}
	for _, s := range list {
		if s.Flags&1 != 0 {
			t.Errorf("submessage %#x is still little-endian", s.ID)
		}
	}
	want, got := collect(t, b), collect(t, turned)
	same := func(a, b Submessage) bool {
		return a.Kind == b.Kind && a.Writer == b.Writer && a.Reader == b.Reader && a.Seq == b.Seq && a.First == b.First &&
			a.Count == b.Count && a.Final == b.Final && a.Size == b.Size && slices.Equal(a.Set, b.Set)
	}
	if len(want) != 5 || !slices.EqualFunc(want, got, same) {
		t.Errorf("turned: %+v\nwant %+v", got, want)
	}
}

func TestSplitAndJoin(t *testing.T) {
	b := message()
	header, list, err := SplitMessage(b)
	if err != nil {
		t.Fatal(err)
	}
	if again := JoinMessage(header, list, false); !bytes.Equal(again, b) {
		t.Error("joined differs")
	}
	open := JoinMessage(header, list, true)
	if _, again, err := SplitMessage(open); err != nil || !bytes.Equal(again[6].Body, list[6].Body) {
		t.Errorf("with an open end: %v", err)
	}
	if got := list[6].Payload(); !bytes.Equal(got, []byte{0, 1, 0, 0, 1, 2, 3, 4}) {
		t.Errorf("payload %x", got)
	}
	if got := list[6].WithPayload([]byte{0, 1, 0, 0, 9}).Payload(); !bytes.Equal(got, []byte{0, 1, 0, 0, 9, 0, 0, 0}) {
		t.Errorf("other payload %x", got)
	}
	for n := range len(b) {
		_, _, _ = SplitMessage(b[:n]) // must not panic
	}
}

func TestParameterLists(t *testing.T) {
	list := []Parameter{{0x000f, []byte{1, 0, 0, 0}}, {0x8123, []byte{1, 2, 3, 4, 5, 6, 7, 8}}}
	b := AppendParameterList(nil, list)
	again, err := ParameterList(b)
	if err != nil || !slices.EqualFunc(list, again, func(a, b Parameter) bool { return a.ID == b.ID && bytes.Equal(a.Value, b.Value) }) {
		t.Errorf("%v, %v", again, err)
	}
	for n := range len(b) - 1 {
		if _, err := ParameterList(b[:n]); err == nil && n < len(b)-4 {
			t.Errorf("%d bytes were taken for whole", n)
		}
	}
}
