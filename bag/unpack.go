package bag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// unpackMode says what is done to payloads.
type unpackMode int

const (
	unpackNone unpackMode = iota
	unpackAll             // compression mode MESSAGE
	unpackAuto            // nothing is known: undo what cannot be CDR
)

// Bounds of undone compression.
const (
	maxMessage   = 1 << 30   // bytes of one payload
	keepFree     = 256 << 20 // bytes left free where files are unpacked
	unpackStep   = 16 << 20  // bytes between two looks at the free space
	zstdMaxBlock = 128 << 10
	zstdMinBlock = 4 // bytes that a block takes at least
)

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// zstdDecoder is shared by all readers: DecodeAll is safe for concurrent use and keeps no goroutine.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithDecoderMaxMemory(maxMessage))
})

// unpackMessage appends the payload that data holds in compressed form to dst. Data that is not a zstd frame is returned
// as it is.
func unpackMessage(dst, data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, zstdMagic) {
		return data, nil
	}
	var h zstd.Header
	if err := h.Decode(data); err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	// A frame says how large its content is before it has shown any of it.
	if most := uint64(len(data)/zstdMinBlock+1) * zstdMaxBlock; h.HasFCS && h.FrameContentSize > min(most, maxMessage) {
		return nil, fmt.Errorf("zstd: %d bytes cannot hold the %d they claim", len(data), h.FrameContentSize)
	}
	dec, err := zstdDecoder()
	if err != nil {
		return nil, err
	}
	out, err := dec.DecodeAll(data, dst)
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return out, nil
}

// unpackFile undoes the compression of a whole storage and returns the plain file, which lies in the reader's temporary
// directory.
func (r *Reader) unpackFile(f *readerFile) (_ string, err error) {
	in, err := os.Open(f.path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := r.tempFile(f.name)
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			_ = os.Remove(out.Name()) // what stays goes with the temporary directory
		}
	}()
	dec, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxMessage))
	if err != nil {
		return "", err
	}
	defer dec.Close()
	for {
		if free, _, err := fsx.Free(out.Name()); err == nil && free < keepFree {
			return "", fmt.Errorf("unpack: %s has only %d MB left; set TMPDIR to a directory with more room", filepath.Dir(out.Name()), free>>20)
		}
		_, err := io.CopyN(out, dec, unpackStep)
		if errors.Is(err, io.EOF) {
			return out.Name(), nil
		}
		if err != nil {
			return "", &plugin.CorruptError{Path: f.path, Offset: -1, Err: fmt.Errorf("zstd: %w", err)}
		}
	}
}
