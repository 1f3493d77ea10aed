package ros2

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobag/gobag/internal/netsim"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

func TestServiceForms(t *testing.T) {
	for vendor, want := range map[wire.VendorID]serviceForm{wire.VendorCyclone: headerForm, wire.VendorFast: identityForm, wire.VendorGobag: identityForm} {
		if got := formOf(vendor); got != want {
			t.Errorf("%v: form %d, want %d", vendor, got, want)
		}
	}
}

// The bytes of a request in both forms, as rmw_cyclonedds and rmw_fastrtps send them.
func TestEncodeDescribe(t *testing.T) {
	const body = "\x06\x00\x00\x00a/b/C\x00\x00\x00" + "\x08\x00\x00\x00RIHS01_\x00" + "\x01"
	id := requestID{client: 0x1122334455667788, seq: 0x0102}
	if got, want := encodeDescribe(headerForm, id, "a/b/C", "RIHS01_"), "\x00\x01\x00\x00\x88\x77\x66\x55\x44\x33\x22\x11\x02\x01\x00\x00\x00\x00\x00\x00"+body; string(got) != want {
		t.Errorf("header:\n%x, want\n%x", got, want)
	}
	if got, want := encodeDescribe(identityForm, id, "a/b/C", "RIHS01_"), "\x00\x01\x00\x00"+body; string(got) != want {
		t.Errorf("identity:\n%x, want\n%x", got, want)
	}
}

// The request as a whole on the wire.
func TestDescribeOnTheWire(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, netsim.Faults{})
				defer s.close()
				p := s.peer(rosUserData)
				d := s.describeServer(p, form, service, readingTypes)
				n := s.asking(form)
				if _, _, err := ask(n, s.talker(n, p), readingType, time.Minute); err != nil {
					t.Fatal(err)
				}
				sent := s.tap.of(n.p.GUID().Prefix(), 0)
				if len(sent) != 1 {
					t.Fatalf("%d samples", len(sent))
				}
				m := sent[0].message
				at := bytes.Index(m, append(sent[0].payload[:4:4], sent[0].payload[4:]...))
				head := m[:at]
				// DATA with its flags: data, and with inline QoS in one of the forms.
				flags := byte(0x05)
				tail := "\x00\x00\x10\x00" + string(entity(d.r.GUID())) + string(entity(sent[0].writer)) + "\x00\x00\x00\x00\x01\x00\x00\x00"
				if form == identityForm {
					flags |= 2
					var reader rtps.GUID
					for _, e := range serviceEndpoints(p, n) {
						if !e.Writer {
							reader = e.GUID
						}
					}
					tail += "\x0f\x80\x18\x00" + string(reader[:]) + "\xff\xff\xff\xff\x00\x00\x00\x00" +
						"\x83\x00\x18\x00" + string(reader[:]) + "\xff\xff\xff\xff\x00\x00\x00\x00" + "\x01\x00\x00\x00"
				}
				size := len(m) - at + len(tail)
				if beat := bytes.Index(m[at:], []byte("\x07\x01\x1c\x00")); beat >= 0 { // a HEARTBEAT rides along
					size = beat + len(tail)
				}
				tail = string([]byte{0x15, flags, byte(size), byte(size >> 8)}) + tail
				if !strings.HasSuffix(string(head), tail) {
					t.Errorf("the request begins with\n%x, want\n%x", head, tail)
				}
				n.asks.mu.Lock()
				defer n.asks.mu.Unlock()
				for _, c := range n.asks.clients {
					want := encodeDescribe(form, requestID{c.id, 1}, readingType, "RIHS01_00")
					if rest, ok := bytes.CutPrefix(sent[0].payload, want); !ok || len(rest) > 3 {
						t.Errorf("the request is\n%x, want\n%x", sent[0].payload, want)
					}
				}
			})
		})
	}
}

func entity(g rtps.GUID) []byte { return g[12:] }

func TestClientUserData(t *testing.T) {
	prefix := wire.Prefix{1, 0x10, 0, 0xff, 5, 6, 7, 8, 9, 10, 11, 12}
	if got, want := string(clientUserData(headerForm, prefix, 0x102, infoTypeHash)), "clientid=1.10.0.ff.5.6.7.8.9.a.b.c.0.0.1.2;typehash="+infoTypeHash+";"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := string(clientUserData(identityForm, prefix, 0x102, infoTypeHash)), "typehash="+infoTypeHash+";"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a node answers, written by hand.
func TestParseDescription(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			head := []byte{0, 1, 0, 0}
			if form == headerForm {
				head = append(head, make([]byte, 16)...)
			}
			good := appendDescription(head, described{sources: readingSources})
			for pad := range 4 {
				got, err := parseDescription(form, append(good[:len(good):len(good)], make([]byte, pad)...))
				if err != nil || !reflect.DeepEqual(got, readingSources) {
					t.Errorf("padding %d: %v, %v", pad, got, err)
				}
			}
			for n := range len(good) {
				if got, err := parseDescription(form, good[:n]); err == nil || got != nil {
					t.Fatalf("cut to %d of %d bytes: %v", n, len(good), got)
				}
			}
			if _, err := parseDescription(form, append(good[:len(good):len(good)], 0, 0, 0, 0)); err == nil {
				t.Error("4 bytes too many were accepted")
			}
			// Any count that is too large is an error before anything is made of it.
			for i := len(head); i+4 <= len(good); i += 4 {
				b := bytes.Clone(good)
				binary.LittleEndian.PutUint32(b[i:], 0xfffffff0)
				_, _ = parseDescription(form, b)
			}
			refusal := appendDescription(head, described{refuse: "no \x1b[31m such " + strings.Repeat("x", 1000)})
			_, err := parseDescription(form, refusal)
			if !errors.Is(err, errRefused) || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 500 {
				t.Errorf("a refusal is %v", err)
			}
			if _, err := parseDescription(form, make([]byte, maxReply+1)); err == nil {
				t.Error("a reply that is too long was accepted")
			}
		})
	}
}

func TestReplyID(t *testing.T) {
	little := []byte("\x00\x01\x00\x00\x88\x77\x66\x55\x44\x33\x22\x11\x02\x01\x00\x00\x00\x00\x00\x00\x01")
	big := []byte("\x00\x00\x00\x00\x11\x22\x33\x44\x55\x66\x77\x88\x00\x00\x00\x00\x00\x00\x01\x02\x01")
	for _, b := range [][]byte{little, big} {
		if id, ok := replyID(b); !ok || id != (requestID{0x1122334455667788, 0x0102}) {
			t.Errorf("%x: %+v", b, id)
		}
		for n := range 20 {
			if _, ok := replyID(b[:n]); ok {
				t.Errorf("accepted when cut to %d bytes", n)
			}
		}
	}
}

func FuzzParseDescription(f *testing.F) {
	f.Add(false, appendDescription([]byte{0, 1, 0, 0}, described{sources: readingSources}))
	f.Add(true, appendDescription(append([]byte{0, 1, 0, 0}, make([]byte, 16)...), described{refuse: "no"}))
	f.Fuzz(func(t *testing.T, header bool, b []byte) {
		form := identityForm
		if header {
			form = headerForm
		}
		sources, err := parseDescription(form, b)
		if err != nil && sources != nil {
			t.Error("an error and sources")
		}
		total := 0
		for _, s := range sources {
			total += len(s.Type) + len(s.Encoding) + len(s.Text)
		}
		if total > len(b) {
			t.Errorf("%d bytes of sources out of %d", total, len(b))
		}
		_, _ = replyID(b)
	})
}

var _ ros.TypeDescriber = (*Node)(nil)
