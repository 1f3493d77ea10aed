package mcap

import (
	"bytes"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever is copied, lent and settled in whatever order: the records are what was appended, and their checksum fits.
func TestRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	var r records
	for round := range 300 {
		var want []byte
		for range rng.IntN(40) {
			data := noise[rng.IntN(1000):][:rng.IntN([]int{10, 5000, 150_000}[rng.IntN(3)])]
			switch rng.IntN(4) {
			case 0:
				r.add(data)
			case 1:
				r.lend(data)
			case 2:
				r.buf = append(r.buf, data...) // a head
			case 3:
				r.settle()
				if r.bytes != 0 || len(r.lent) != 0 {
					t.Fatal("something is still lent")
				}
				continue
			}
			want = append(want, data...)
		}
		if r.len() != len(want) {
			t.Fatalf("round %d: %d bytes, want %d", round, r.len(), len(want))
		}
		if got := slices.Concat(r.all()...); !bytes.Equal(got, want) {
			t.Fatalf("round %d: %d other bytes than the %d appended", round, len(got), len(want))
		}
		if r.checksum() != crc32.ChecksumIEEE(want) {
			t.Fatalf("round %d: checksum %08x", round, r.sum)
		}
		r.reset()
	}
}
