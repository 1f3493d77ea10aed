package mcap

// crcCombine returns the CRC-32 (IEEE) of two pieces one after the other, from the CRC of each and the length of the
// second: the first is multiplied by x^(8·n) modulo the polynomial. With it the checksum over the whole file needs no
// second look at the chunks.
func crcCombine(a, b uint32, n int64) uint32 {
	p := uint32(1) << 31 // x^0, lowest power in the highest bit
	s := uint32(1) << 23 // x^8
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			p = gfMul(s, p)
		}
		s = gfMul(s, s)
	}
	return gfMul(p, a) ^ b
}

// gfMul multiplies two polynomials modulo the one of CRC-32.
func gfMul(a, b uint32) uint32 {
	var p uint32
	for m := uint32(1) << 31; m != 0; m >>= 1 {
		if a&m != 0 {
			p ^= b
		}
		if b&1 != 0 {
			b = b>>1 ^ 0xedb88320
		} else {
			b >>= 1
		}
	}
	return p
}
