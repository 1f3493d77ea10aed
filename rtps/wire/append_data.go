package wire

import (
	"github.com/gobag/gobag/cdr"
)

// AppendData appends a whole DATA, padded with zeros so that its length is a multiple of 4. A Payload of nil or without
// bytes makes a DATA without payload.
func AppendData(b []byte, d *Data) []byte {
	b, pad := AppendDataHead(b, d, len(d.Payload))
	b = append(b, d.Payload...)
	return append(b, zeros[:pad]...)
}

// AppendDataHead appends a DATA up to its payload: the caller sends payloadLen bytes of payload and pad (0..3) zeros
// behind it, without copying them. d.Payload is not looked at.
func AppendDataHead(b []byte, d *Data, payloadLen int) (out []byte, pad int) {
	pad = -payloadLen & 3
	q := d.InlineQoS.size()
	flags := flagIf(q > 0, flagInlineQoS)
	if payloadLen > 0 {
		flags |= flagData
		if d.Key {
			flags ^= flagData | flagKey
		}
	}
	b = appendSubmessage(b, idData, flags, 20+q+payloadLen+pad)
	b = append(b, 0, 0, 16, 0) // extra flags, octets to inline QoS
	b = appendEntities(b, d.Reader, d.Writer)
	b = appendSeq(b, d.Seq)
	return d.InlineQoS.append(b), pad
}

// AppendDataFrag appends a whole DATA_FRAG, padded with zeros so that its length is a multiple of 4.
func AppendDataFrag(b []byte, d *DataFrag) []byte {
	b, pad := AppendDataFragHead(b, d, len(d.Payload))
	b = append(b, d.Payload...)
	return append(b, zeros[:pad]...)
}

// AppendDataFragHead appends a DATA_FRAG up to its fragments; see AppendDataHead.
func AppendDataFragHead(b []byte, d *DataFrag, payloadLen int) (out []byte, pad int) {
	pad = -payloadLen & 3
	q := d.InlineQoS.size()
	b = appendSubmessage(b, idDataFrag, flagIf(q > 0, flagInlineQoS)|flagIf(d.Key, flagFragKey), 32+q+payloadLen+pad)
	b = append(b, 0, 0, 28, 0)
	b = appendEntities(b, d.Reader, d.Writer)
	b = appendSeq(b, d.Seq)
	b = le.AppendUint32(b, d.First)
	b = le.AppendUint16(b, d.Count)
	b = le.AppendUint16(b, d.Size)
	b = le.AppendUint32(b, d.SampleSize)
	return d.InlineQoS.append(b), pad
}

var zeros [4]byte

// size is the number of bytes of append; 0 if there is nothing to say.
func (q *InlineQoS) size() int {
	n := 0
	if q.HasRelated {
		n += 2 * (4 + relatedIdentityBytes)
	}
	if q.HasKeyHash {
		n += 4 + 16
	}
	if q.Status != 0 {
		n += 4 + 4
	}
	if n > 0 || q.Present {
		n += 4
	}
	return n
}

// append appends the parameter list. The related identity goes out under both of its ids.
func (q *InlineQoS) append(b []byte) []byte {
	if q.size() == 0 {
		return b
	}
	if q.HasRelated {
		for _, id := range [...]uint16{pidRelatedIdentityF, pidRelatedIdentity} {
			b = appendParam(b, id, relatedIdentityBytes)
			b = append(b, q.RelatedGUID[:]...)
			b = appendSeq(b, q.RelatedSeq)
		}
	}
	if q.HasKeyHash {
		b = appendParam(b, pidKeyHash, 16)
		b = append(b, q.KeyHash[:]...)
	}
	if q.Status != 0 {
		b = appendParam(b, pidStatusInfo, 4)
		b = append(b, 0, 0, 0, byte(q.Status&3))
	}
	return appendParam(b, cdr.PIDSentinel, 0)
}

// appendParam appends the head of a parameter.
func appendParam(b []byte, id uint16, n int) []byte {
	b = le.AppendUint16(b, id)
	return le.AppendUint16(b, uint16(n))
}
