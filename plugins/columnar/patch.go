package columnar

import (
	"encoding/binary"
	"errors"
)

// A patch turns the payload that columns give into the one that was recorded: the length of that one, then runs of
// bytes: how many to leave, how many to put, and those. Numbers are uvarints. Before runs are put the payload is cut, or
// filled with zeros, to its length. An empty patch changes nothing.

var errNoPatch = errors.New("patch as large as the payload")

// appendPatch appends the patch from a to b.
func appendPatch(p, a, b []byte) []byte {
	p = binary.AppendUvarint(p, uint64(len(b)))
	at := func(i int) byte {
		if i < len(a) {
			return a[i]
		}
		return 0
	}
	last := 0
	for i := 0; i < len(b); {
		if b[i] == at(i) {
			i++
			continue
		}
		j := i + 1
		for k := j; k < len(b) && k < j+3; k++ { // runs closer than that are one
			if b[k] != at(k) {
				j = k + 1
			}
		}
		p = binary.AppendUvarint(binary.AppendUvarint(p, uint64(i-last)), uint64(j-i))
		p = append(p, b[i:j]...)
		i, last = j, j
	}
	return p
}

// patchable says whether applyPatch takes a patch, of size bytes, that makes b of a: not where b goes on and on in zeros.
func patchable(a, b []byte, size int) bool { return len(b) <= len(a)+max(size, 3) }

// applyPatch changes the payload that begins at from in b, which ends with it. It is known to have room bytes at most where
// it grows by more than the patch has.
func applyPatch(b []byte, from int, patch []byte, room int64) ([]byte, error) {
	if len(patch) == 0 {
		return b, nil
	}
	f := fields{b: patch}
	n := f.uvarint()
	if f.bad || n > maxMessage || n > uint64(len(b)-from)+uint64(max(len(patch), 3)) && n > uint64(max(room, 0)) {
		return b, errDamaged
	}
	if uint64(len(b)-from) > n {
		b = b[:from+int(n)]
	}
	for len(b)-from < int(n) {
		b = append(b, 0)
	}
	for at := from; len(f.b) > 0; {
		skip, put := f.uvarint(), f.uvarint()
		if f.bad || skip > uint64(len(b)-at) || put > uint64(len(b)-at)-skip || put > uint64(len(f.b)) {
			return b, errDamaged
		}
		at += int(skip)
		copy(b[at:], f.b[:put])
		at += int(put)
		f.b = f.b[put:]
	}
	return b, nil
}
