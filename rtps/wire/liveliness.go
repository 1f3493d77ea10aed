package wire

import (
	"fmt"

	"github.com/gobag/gobag/cdr"
)

// Kinds of LivelinessMessage (RTPS 2.5 §8.4.13.5), in the order of the bytes.
const (
	LivelinessAutomatic uint32 = 1
	LivelinessManual    uint32 = 2 // manual by participant
)

// maxLivelinessData is how much a LivelinessMessage may carry; the specification promises 128 bytes.
const maxLivelinessData = 1024

// LivelinessMessage asserts that the writers of a participant with a liveliness kind are alive. It is the payload of
// the participant message writer.
type LivelinessMessage struct {
	Prefix Prefix
	Kind   uint32 // LivelinessAutomatic or LivelinessManual; others have no meaning for us
	Data   []byte // aliases the payload; of no meaning for these kinds
}

// ParseLiveliness reads a LivelinessMessage. Fast DDS labels it a parameter list, which it is not.
func ParseLiveliness(payload []byte) (m LivelinessMessage, err error) {
	kind, _, body, err := cdr.Split(payload)
	if err != nil {
		return m, fmt.Errorf("parse liveliness message: %w", err)
	}
	if kind.Version() == 0 {
		return m, fmt.Errorf("parse liveliness message: unsupported %s", kind)
	}
	var d cdr.Decoder
	d.ResetBody(body, kind)
	copy(m.Prefix[:], d.Bytes(12))
	for _, b := range d.Bytes(4) { // four octets, not a number
		m.Kind = m.Kind<<8 | uint32(b)
	}
	m.Data = d.ByteSeq()
	if len(m.Data) > maxLivelinessData {
		d.Fail(fmt.Sprintf("%d bytes of data, %d at most", len(m.Data), maxLivelinessData))
	}
	if err := d.Err(); err != nil {
		return LivelinessMessage{}, fmt.Errorf("parse liveliness message: %w", err)
	}
	return m, nil
}

// Append appends the payload, encapsulation header included.
func (m *LivelinessMessage) Append(b []byte) []byte {
	var e cdr.Encoder
	e.Reset(b, cdr.CDRLE)
	e.Raw(m.Prefix[:])
	e.Raw([]byte{byte(m.Kind >> 24), byte(m.Kind >> 16), byte(m.Kind >> 8), byte(m.Kind)})
	e.ByteSeq(m.Data)
	e.Align(4)
	return e.Bytes()
}

// Key is the key of the message's instance: prefix and kind. (Its key hash is these 16 bytes.)
func (m *LivelinessMessage) Key() (g GUID) {
	copy(g[:12], m.Prefix[:])
	copy(g[12:], []byte{byte(m.Kind >> 24), byte(m.Kind >> 16), byte(m.Kind >> 8), byte(m.Kind)})
	return g
}
