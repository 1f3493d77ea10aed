//go:build linux

package lab

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
)

// encapsulation is the length of the header in front of every serialized sample.
const encapsulation = 4

// Body appends to b what a peer serializes for running number n of the topic, in CDR little-endian, without the
// encapsulation header. It is written from the layout of the messages, not from the peers' code.
func (t Topic) Body(b []byte, n uint32, instance int) []byte {
	w := cdrWriter{b: b, base: len(b)}
	switch t.Kind {
	case String:
		w.text(t.stringText(n))
	case Imu:
		w.header(n, "imu_link")
		w.imu(n)
	case Image:
		w.header(n, "camera")
		w.u32(uint32(t.Size / 1024))
		w.u32(1024)
		w.text("mono8")
		w.b = append(w.b, 0)
		w.u32(1024)
		w.pattern(t.Size, n)
	case Blob:
		w.u32(uint32(instance))
		w.u32(n)
		w.align(8)
		w.b = binary.LittleEndian.AppendUint64(w.b, uint64(n)*t.period())
		w.pattern(t.Size+t.Grow*int(n), n)
	case Keyed:
		w.u32(n % 3)
		w.u32(n)
	case Reading:
		w.reading(n)
	}
	return w.b
}

// period is the peers' tick in ns.
func (t Topic) period() uint64 {
	if t.Hz <= 0 {
		return 0
	}
	return uint64(1e9 / t.Hz)
}

func (t Topic) stringText(n uint32) string {
	const shortest, spread = 11, 37
	size := t.Size
	if size <= shortest {
		size = shortest + int(n%spread)
	}
	s := fmt.Appendf(nil, "%010d ", n)
	for i := shortest; i < size; i++ {
		s = append(s, byte('a'+(uint64(n)+uint64(i))%26))
	}
	return string(s)
}

// cdrWriter writes XCDR1 little-endian; alignment counts from base.
type cdrWriter struct {
	b    []byte
	base int
}

func (w *cdrWriter) align(n int) {
	for (len(w.b)-w.base)%n != 0 {
		w.b = append(w.b, 0)
	}
}

func (w *cdrWriter) u32(v uint32) {
	w.align(4)
	w.b = binary.LittleEndian.AppendUint32(w.b, v)
}

func (w *cdrWriter) f64(v float64) {
	w.align(8)
	w.b = binary.LittleEndian.AppendUint64(w.b, math.Float64bits(v))
}

func (w *cdrWriter) text(s string) {
	w.u32(uint32(len(s) + 1))
	w.b = append(append(w.b, s...), 0)
}

func (w *cdrWriter) header(n uint32, frame string) {
	w.u32(n)
	w.u32(n % 1000 * 1000000)
	w.text(frame)
}

func (w *cdrWriter) imu(n uint32) {
	v := float64(n)
	nine := func(f func(i float64) float64) {
		for i := range 9 {
			w.f64(f(float64(i)))
		}
	}
	for _, f := range []float64{v * 0.5, v * -0.25, v * 0.125, 1} {
		w.f64(f)
	}
	nine(func(i float64) float64 { return v + i })
	for _, f := range []float64{v * 2, v * 4, v * -8} {
		w.f64(f)
	}
	nine(func(i float64) float64 { return v - i })
	for _, f := range []float64{v * 0.0625, v * 0.03125, v * -0.015625} {
		w.f64(f)
	}
	nine(func(i float64) float64 { return v * (i + 1) })
}

// pattern is a sequence of octets in which every 32-bit word depends on n.
func (w *cdrWriter) pattern(size int, n uint32) {
	w.u32(uint32(size))
	word := n*2654435761 + 12345
	for i := 0; i+4 <= size; i += 4 {
		w.b = binary.LittleEndian.AppendUint32(w.b, word)
		word += 0x9e3779b1
	}
	for i := size &^ 3; i < size; i++ {
		w.b = append(w.b, byte(n+uint32(i)))
	}
}

// encapsulation is the id in front of a sample: CDR little-endian, or plain CDR2. The types that are sent as CDR2 (string)
// have the same layout in both.
func (t Topic) encapsulation() [2]byte {
	if t.XCDR2 {
		return [2]byte{0, 7}
	}
	return [2]byte{0, 1}
}

// Number reads the running number out of a serialized sample (header included).
func (t Topic) Number(payload []byte) (uint32, error) {
	at := encapsulation
	switch t.Kind {
	case String:
		if len(payload) < 18 {
			return 0, fmt.Errorf("%s: sample of %d bytes", t.Name, len(payload))
		}
		v, err := strconv.ParseUint(string(payload[8:18]), 10, 32)
		return uint32(v), err
	case Blob, Keyed:
		at += 4
	}
	if len(payload) < at+4 {
		return 0, fmt.Errorf("%s: sample of %d bytes", t.Name, len(payload))
	}
	return binary.LittleEndian.Uint32(payload[at:]), nil
}

// Checker compares payloads of a topic with what they must be. It keeps a buffer: use one a goroutine.
type Checker struct {
	Topic    Topic
	Instance int
	want     []byte
}

// Check returns the running number of a payload, or an error where any byte differs from what the publisher wrote. Up
// to three zero bytes may follow the value.
func (c *Checker) Check(payload []byte) (uint32, error) {
	n, err := c.Topic.Number(payload)
	if err != nil {
		return 0, err
	}
	if want := c.Topic.encapsulation(); !bytes.Equal(payload[:2], want[:]) {
		return n, fmt.Errorf("%s %d: encapsulation %x, want %x", c.Topic.Name, n, payload[:2], want)
	}
	c.want = c.Topic.Body(c.want[:0], n, c.Instance)
	got := payload[encapsulation:]
	if len(got) < len(c.want) || len(got) > len(c.want)+3 {
		return n, fmt.Errorf("%s %d: %d bytes, want %d and at most 3 more", c.Topic.Name, n, len(got), len(c.want))
	}
	if !bytes.Equal(got[:len(c.want)], c.want) {
		at := 0
		for got[at] == c.want[at] {
			at++
		}
		return n, fmt.Errorf("%s %d: byte %d of %d is %#02x, want %#02x", c.Topic.Name, n, at, len(c.want), got[at], c.want[at])
	}
	if len(bytes.Trim(got[len(c.want):], "\x00")) != 0 {
		return n, fmt.Errorf("%s %d: bytes after the value: %x", c.Topic.Name, n, got[len(c.want):])
	}
	return n, nil
}

// CheckHash is Check for an arrival in a peer's log, which holds a hash instead of the bytes.
func (c *Checker) CheckHash(a Arrival) error {
	if a.Number < 0 {
		return fmt.Errorf("%s: sample without a number", c.Topic.Name)
	}
	if want := c.Topic.encapsulation(); a.Header[:4] != hex.EncodeToString(want[:]) {
		return fmt.Errorf("%s %d: encapsulation %s, want %x", c.Topic.Name, a.Number, a.Header, want)
	}
	c.want = c.Topic.Body(c.want[:0], uint32(a.Number), c.Instance)
	h := FNV1a(c.want)
	for extra := a.Length - encapsulation - len(c.want); extra > 0 && extra <= 3; extra-- {
		h *= fnvPrime // a zero byte more
	}
	if extra := a.Length - encapsulation - len(c.want); extra < 0 || extra > 3 || h != a.Hash {
		return fmt.Errorf("%s %d: %d bytes with hash %016x, want %d with %016x", c.Topic.Name, a.Number,
			a.Length-encapsulation, a.Hash, len(c.want), h)
	}
	return nil
}

const fnvPrime = 1099511628211

// FNV1a is the 64-bit FNV-1a hash.
func FNV1a(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}
