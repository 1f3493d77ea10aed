package fsx

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestWritePieces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	var many [][]byte
	for i := range 600 { // more than one call takes, empty ones among them
		many = append(many, bytes.Repeat([]byte{byte(i)}, i%3*10_000))
	}
	for _, pieces := range [][][]byte{nil, {nil}, {[]byte("one")}, {nil, []byte("two"), {}, []byte("three")}, many} {
		total := 0
		for _, p := range pieces {
			want = append(want, p...)
			total += len(p)
		}
		if n, err := WritePieces(f, pieces); n != int64(total) || err != nil {
			t.Errorf("%d pieces: %d bytes, want %d, %v", len(pieces), n, total, err)
		}
	}
	if _, err := f.WriteString("end"); err != nil { // the offset has moved on
		t.Fatal(err)
	}
	if got := read(t, path); got != string(want)+"end" {
		t.Errorf("%d bytes, want %d", len(got), len(want)+3)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := WritePieces(f, [][]byte{[]byte("x")}); err == nil {
		t.Error("no error for a closed file")
	}
}
