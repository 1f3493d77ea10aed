package parquet

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// packedBits packs as the specification says it: bit after bit, lowest first.
func packedBits(v []uint32, n, width int) []byte {
	b := make([]byte, (n*width+7)/8)
	for i, x := range v {
		for k := range width {
			if bit := i*width + k; x>>k&1 != 0 {
				b[bit/8] |= 1 << (bit % 8)
			}
		}
	}
	return b
}

func TestPacked(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	dirty := bytes.Repeat([]byte{0xff}, 4096)
	for width := 1; width <= 32; width++ {
		for _, count := range []int{1, 3, 7, 8, 9, 15, 16, 31, 64, 100} {
			v := make([]uint32, count)
			for i := range v {
				v[i] = rng.Uint32() & (1<<width - 1)
			}
			n := (count + 7) / 8 * 8
			want := packedBits(v, n, width)
			got := appendPacked(dirty[:3], v, n, width)
			if !bytes.Equal(got[:3], dirty[:3]) || !bytes.Equal(got[3:], want) {
				t.Fatalf("%d values of %d bits: % x, want % x", count, width, got[3:], want)
			}
			if width > 8 {
				continue
			}
			small := make([]uint8, count)
			for i := range v {
				small[i] = uint8(v[i])
			}
			if got := appendPacked(nil, small, n, width); !bytes.Equal(got, want) {
				t.Fatalf("%d bytes of %d bits: % x, want % x", count, width, got, want)
			}
		}
	}
}

func TestRope(t *testing.T) {
	c := &Compressor{}
	var r rope
	for round := range 3 {
		var want []byte
		for i := range 300 {
			b := bytes.Repeat([]byte{byte(i + round)}, i*7)
			r.append(b, c)
			want = append(want, b...)
		}
		if got := bytes.Join(r.pieces, nil); r.n != len(want) || !bytes.Equal(got, want) {
			t.Fatalf("round %d: %d bytes of %d differ", round, r.n, len(want))
		}
		r.reset(c)
		if r.n != 0 || len(bytes.Join(r.pieces, nil)) != 0 {
			t.Fatal("not empty after reset")
		}
		if len(c.spare) == 0 || len(c.spare) > maxSpare {
			t.Fatalf("%d pieces are kept", len(c.spare))
		}
	}
}
