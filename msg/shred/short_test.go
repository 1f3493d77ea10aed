package shred

import (
	"bytes"
	"testing"
)

func TestShort(t *testing.T) {
	for n := range 17 {
		for high := -1; high < 16; high++ {
			src := []byte("abcdefghijklmnop")
			if high >= 0 {
				src[high] = 0x80
			}
			dst := make([]byte, 16)
			if got, want := short(dst, src, n), high < 0 || high >= n; got != want {
				t.Errorf("%d bytes, 0x80 at %d: %v", n, high, got)
			}
			if !bytes.Equal(dst, src) || ascii(src[:n]) != (high < 0 || high >= n) {
				t.Errorf("%d bytes, 0x80 at %d: %q", n, high, dst)
			}
		}
	}
}
