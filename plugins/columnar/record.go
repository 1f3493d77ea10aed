package columnar

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/gobag/gobag/plugin"
)

// The log is a sequence of frames, each with a checksum:
//
//	"GBL1", length of the records (u32), CRC-32C of what follows (u32), file number (u32), synced (u64), records
//
// synced says up to which byte the file was durable when the frame was made. Records are aligned to nothing:
//
//	kind (u8), then
//	message, carried: topic (u32), received (i64), sent (i64), sequence (u64), order (u64), source (u32), length (u32), payload
//	topic, publication: length (u32), content
const (
	frameMagic = "GBL1"
	frameHead  = 24

	recordMessage     = 1
	recordCarried     = 2 // a message again, so that an older file of the log can go
	recordTopic       = 3
	recordPublication = 4

	messageHead = 1 + 44
	recordHead  = 1 + 4

	maxFrame = maxMessage + messageHead
)

// block is memory for frames, of which the last is being made.
type block struct {
	b      []byte
	start  int  // of the frame that is being made
	handed bool // a frame of it is on its way to the sealer, or was
}

// piece is whole frames of a block on their way to be taken apart.
type piece struct {
	k       *block
	from    int // of b in the block
	b       []byte
	segment uint64
	last    bool // the block has no more to come: it is free after this
}

// spareBlocks are blocks that are done with. A garbage collection takes none of them, as it would of a sync.Pool.
var spareBlocks = make(chan *block, maxInFlight/blockSize)

func newBlock() *block {
	select {
	case k := <-spareBlocks:
		return k
	default:
		return &block{b: make([]byte, frameHead, blockSize)}
	}
}

// free gives a block back, unless it has grown.
func (k *block) free() {
	if cap(k.b) > 2*blockSize {
		return
	}
	k.b, k.start, k.handed = k.b[:frameHead], 0, false
	select {
	case spareBlocks <- k:
	default:
	}
}

// empty says that the frame has no record yet.
func (k *block) empty() bool { return len(k.b) == k.start+frameHead }

// next begins another frame behind the one that was sealed.
func (k *block) next() {
	k.start = len(k.b)
	k.b = append(k.b, make([]byte, frameHead)...)
}

// message appends a message, for which there is room.
func (k *block) message(kind byte, m *plugin.Message, order uint64) {
	at := len(k.b)
	k.b = k.b[:at+messageHead+len(m.Data)]
	h := k.b[at : at+messageHead : at+messageHead]
	h[0] = kind
	le.PutUint32(h[1:], uint32(m.Topic))
	le.PutUint64(h[5:], uint64(m.RecvTime))
	le.PutUint64(h[13:], uint64(m.SendTime))
	le.PutUint64(h[21:], m.Seq)
	le.PutUint64(h[29:], order)
	le.PutUint32(h[37:], m.Source)
	le.PutUint32(h[41:], uint32(len(m.Data)))
	copy(k.b[at+messageHead:], m.Data)
}

func (k *block) record(kind byte, content []byte) {
	k.b = append(le.AppendUint32(append(k.b, kind), uint32(len(content))), content...)
}

// seal completes the frame's head.
func (k *block) seal(segment uint64, synced int64) {
	b := k.b[k.start:]
	copy(b, frameMagic)
	le.PutUint32(b[4:], uint32(len(b)-frameHead))
	le.PutUint32(b[12:], uint32(segment))
	le.PutUint64(b[16:], uint64(synced))
	le.PutUint32(b[8:], crc32.Checksum(b[12:], castagnoli))
}

// frame is the head of a frame.
type frame struct {
	length  int
	crc     uint32
	segment uint32
	synced  int64
}

func parseFrame(b []byte) (frame, bool) {
	if len(b) < frameHead || string(b[:4]) != frameMagic {
		return frame{}, false
	}
	f := frame{int(le.Uint32(b[4:])), le.Uint32(b[8:]), le.Uint32(b[12:]), int64(le.Uint64(b[16:]))}
	return f, f.length <= maxFrame
}

// whole says whether the frame that b begins with, and is long enough for, is unharmed.
func (f *frame) whole(b []byte) bool {
	return crc32.Checksum(b[12:frameHead+f.length], castagnoli) == f.crc
}

// records calls message for every message of a frame and other for every other record. at is the offset of a payload in b;
// m is valid until the next call.
func records(b []byte, message func(kind byte, m *plugin.Message, at int) error, other func(kind byte, content []byte) error) error {
	m := new(plugin.Message) // one for all
	for at := 0; at < len(b); {
		switch kind := b[at]; kind {
		case recordMessage, recordCarried:
			if len(b)-at < messageHead {
				return errDamaged
			}
			h := b[at:]
			n := int(le.Uint32(h[41:]))
			at += messageHead
			if n > len(b)-at {
				return errDamaged
			}
			*m = plugin.Message{Topic: plugin.TopicID(le.Uint32(h[1:])), RecvTime: int64(le.Uint64(h[5:])), SendTime: int64(le.Uint64(h[13:])),
				Seq: le.Uint64(h[21:]), Order: le.Uint64(h[29:]), Source: le.Uint32(h[37:]), Data: b[at : at+n : at+n]}
			if err := message(kind, m, at); err != nil {
				return err
			}
			at += n
		case recordTopic, recordPublication:
			if len(b)-at < recordHead {
				return errDamaged
			}
			n := int(le.Uint32(b[at+1:]))
			at += recordHead
			if n > len(b)-at {
				return errDamaged
			}
			if err := other(kind, b[at:at+n]); err != nil {
				return err
			}
			at += n
		default:
			return fmt.Errorf("record of unknown kind %d", kind)
		}
	}
	return nil
}

// apply brings the state forward by a record that is no message.
func (s *state) apply(kind byte, content []byte) error {
	f := fields{b: content}
	if kind == recordTopic {
		t := f.topic()
		if f.bad {
			return errDamaged
		}
		return s.setTopic(t)
	}
	p := f.publication()
	if f.bad {
		return errDamaged
	}
	return s.publish(&p)
}

var errUnknownTopic = errors.New("message of a topic that the log does not describe")
