package plainlog

import (
	"fmt"
	"os"
	"testing"

	"github.com/gobag/gobag/plugin/plugintest"
)

// Everything that a format owes, and what must come of a damaged file. The suite closes the storages it damages, so
// every byte of them counts as synced.
func TestConformance(t *testing.T) {
	plugintest.Run(t, Driver{}, plugintest.Options{Damage: []plugintest.Damage{
		{Name: "magic flipped", Break: flip(3), Refused: true},
		{Name: "header cut off", Break: cut(30), Refused: true},
		{Name: "synced flipped", Break: flip(len(magic)), Whole: true},
		{Name: "first message flipped", Break: flip(1000), Offset: true},
		{Name: "flipped half way", Break: flip(1_000_000), Least: 900, Offset: true},
		{Name: "cut within a message", Break: cut(1_500_000), Least: 1400, Offset: true},
		{Name: "cut between two messages", Break: cutMessages(10), Least: plugintest.DamageMessages - 10, Offset: true},
		{Name: "zeros at the end", Break: zeros(-5000), Least: 1990, Offset: true},
		{Name: "length flipped", Break: flipLength, Least: plugintest.DamageMessages - 1, Offset: true},
	}})
}

func BenchmarkStorage(b *testing.B) { plugintest.Bench(b, Driver{}) }

const (
	damageRecord = recordBytes + messageBytes + plugintest.DamageSize
	endRecordLen = recordBytes
)

func change(f func(b []byte) []byte) func(string) error {
	return func(path string) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, f(b), 0o644)
	}
}

func flip(at int) func(string) error {
	return change(func(b []byte) []byte { b[at] ^= 0x10; return b })
}

func cut(at int) func(string) error { return change(func(b []byte) []byte { return b[:at] }) }

func cutMessages(n int) func(string) error {
	return change(func(b []byte) []byte { return b[:len(b)-endRecordLen-n*damageRecord] })
}

func zeros(from int) func(string) error {
	return change(func(b []byte) []byte { clear(b[len(b)+from:]); return b })
}

// flipLength makes the last message a gigabyte long.
func flipLength(path string) error {
	return change(func(b []byte) []byte { b[len(b)-endRecordLen-damageRecord+4] ^= 0x20; return b })(path)
}

// An end that was never synced is left out with a warning that says where; what was synced before it is all there.
func TestTornEnd(t *testing.T) {
	for name, tear := range map[string]func(b []byte) []byte{
		"half a record":  func(b []byte) []byte { return b[:len(b)-7] },
		"half a head":    func(b []byte) []byte { return b[:len(b)-damageless+5] },
		"zeros":          func(b []byte) []byte { clear(b[len(b)-damageless:]); return b },
		"a page of them": func(b []byte) []byte { return append(b[:len(b)-damageless], make([]byte, 4096)...) },
	} {
		t.Run(name, func(t *testing.T) {
			path := tornFile(t)
			if err := change(tear)(path); err != nil {
				t.Fatal(err)
			}
			checkTorn(t, path)
		})
	}
}

// FuzzOpen feeds files of any content to the reader: it may refuse them, and must not panic or take much memory.
func FuzzOpen(f *testing.F) {
	path := tornFile(f)
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range []int{0, 10, headerBytes, headerBytes + 5, len(whole) / 2, len(whole)} {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := fmt.Sprint(t.TempDir(), "/fuzz.plainlog")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		readSome(t, path)
	})
}
