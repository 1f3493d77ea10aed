package columnar

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// The suite's storage has a part of payloads for each of three topics; this is that of the second.
var damagedPart = filepath.Join("topic=%2Fb", "raw-00001.parquet")

var damageTable = []plugintest.Damage{
	{Name: "byte flipped in the middle", Break: flip(damagedPart, 300_000), Offset: true},
	{Name: "byte flipped in the first page", Break: flip(damagedPart, 40), Offset: true},
	{Name: "magic number", Break: flip(damagedPart, 1), Offset: true},
	{Name: "magic number at the end", Break: flip(damagedPart, -1), Offset: true},
	{Name: "length of the footer", Break: flip(damagedPart, -7), Offset: true},
	{Name: "footer", Break: flip(damagedPart, -200), Offset: true},
	{Name: "zeros in the footer", Break: zero(damagedPart, -300, 40), Offset: true},
	{Name: "part cut off", Break: cut(damagedPart, -100), Offset: true},
	{Name: "part cut in the middle", Break: cut(damagedPart, 300_000), Offset: true},
	{Name: "part empty", Break: cut(damagedPart, 0), Offset: true},
	{Name: "part missing", Break: missing(damagedPart), Offset: true},
	{Name: "bytes behind a part", Break: grown(damagedPart), Whole: true},
	{Name: "part of another topic in its place", Break: exchange(damagedPart, filepath.Join("topic=%2Fa", "raw-00000.parquet")), Offset: true},
	{Name: "state flipped", Break: flip(stateName, 60), Refused: true},
	{Name: "state's magic number", Break: flip(stateName, 3), Refused: true},
	{Name: "state's length", Break: flip(stateName, len(stateMagic)+1), Refused: true},
	{Name: "state cut off", Break: cut(stateName, -20), Refused: true},
	{Name: "state empty", Break: cut(stateName, 0), Refused: true},
	{Name: "state missing", Break: missing(stateName), Refused: true},
	{Name: "bytes behind the state", Break: grown(stateName), Whole: true},
}

func edit(name string, f func([]byte) []byte) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, f(b), 0o644)
	}
}

// at counts from the end where it is negative.
func at(b []byte, off int) int {
	if off < 0 {
		return len(b) + off
	}
	return off
}

func flip(name string, off int) func(string) error {
	return edit(name, func(b []byte) []byte { b[at(b, off)] ^= 0x10; return b })
}

func zero(name string, off, n int) func(string) error {
	return edit(name, func(b []byte) []byte { clear(b[at(b, off) : at(b, off)+n]); return b })
}

func cut(name string, n int) func(string) error {
	return edit(name, func(b []byte) []byte { return b[:at(b, n)] })
}

func grown(name string) func(string) error {
	return edit(name, func(b []byte) []byte { return append(b, make([]byte, 5000)...) })
}

func missing(name string) func(string) error {
	return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
}

func exchange(a, b string) func(string) error {
	return func(dir string) error {
		one, err := os.ReadFile(filepath.Join(dir, a))
		if err != nil {
			return err
		}
		two, err := os.ReadFile(filepath.Join(dir, b))
		if err != nil {
			return err
		}
		n := min(len(one), len(two)) // ours are of one length
		return errors.Join(os.WriteFile(filepath.Join(dir, a), two[:n], 0o644), os.WriteFile(filepath.Join(dir, b), one[:n], 0o644))
	}
}

// Every byte of a small storage, closed and as a crash leaves it, is flipped in turn: what is read is right, or there is
// an error that says where.
func TestFlipEveryByte(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	mustTopic(t, w, reading)
	ms := readings(30)
	ms[7].Data[len(ms[7].Data)-9] = 1 // not what its values give
	ms[9].Data = []byte("nothing")
	mustWrite(t, w, ms...)
	if err := w.Sync(); err != nil {
		t.Fatal(err)
	}
	live := copyDir(t, dir)
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() || raceDetector {
		step = 23
	}
	for _, d := range []string{dir, live} {
		paths := append(files(t, d, "*"), append(files(t, d, "*", "*.parquet"), files(t, d, "log", "*")...)...)
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				continue // a directory
			}
			for i := 0; i < len(b); i += step {
				b[i] ^= 0x21
				if err := os.WriteFile(path, b, 0o644); err != nil {
					t.Fatal(err)
				}
				flipped(t, d, path, i, ms)
				b[i] ^= 0x21
			}
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func flipped(t *testing.T, dir, path string, off int, ms []plugin.Message) {
	t.Helper()
	var corrupt *plugin.CorruptError
	r, err := Driver{}.OpenReader(t.Context(), dir, plugin.ReadOptions{})
	if err != nil {
		if !errors.As(err, &corrupt) && !errors.Is(err, plugin.ErrFormat) {
			t.Fatalf("%s byte %d: open: %v", path, off, err)
		}
		return
	}
	defer r.Close()
	got, err := readAll(t, r, plugin.Query{})
	if err != nil && !errors.As(err, &corrupt) {
		t.Fatalf("%s byte %d: read: %v", path, off, err)
	}
	if errors.As(err, &corrupt) && corrupt.Offset < 0 {
		t.Fatalf("%s byte %d: %v does not say where", path, off, err)
	}
	if err == nil && len(got) < len(ms) && !r.Info().Unclean {
		t.Fatalf("%s byte %d: %d of %d messages without a word", path, off, len(got), len(ms))
	}
	checkAll(t, "flipped", got, ms[:len(got)])
}

// fillLog writes messages with a sync now and then, and leaves them in the log.
func fillLog(t *testing.T, dir string, n int) (*writer, []plugin.Message) {
	t.Helper()
	w := mustCreate(t, dir, plugin.WriteOptions{})
	mustTopic(t, w, reading)
	ms := readings(n)
	for i := 0; i < n; i += 50 {
		mustWrite(t, w, ms[i:i+50]...)
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	return w, ms
}

// A flipped byte in the synced part of the log is no torn end: what comes before is read, then comes the error.
func TestLogDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	fillLog(t, dir, 1000)
	live := copyDir(t, dir)
	if err := flip(filepath.Join(logDir, segmentName(1)), 40_000)(live); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, live)
	got, err := readAll(t, r, plugin.Query{})
	var corrupt *plugin.CorruptError
	if !errors.As(err, &corrupt) || corrupt.Offset < 20_000 || corrupt.Offset > 40_000 || filepath.Base(corrupt.Path) != segmentName(1) {
		t.Errorf("read: %v, want a CorruptError just before byte 40000", err)
	}
	if len(got) == 0 || len(got) == 1000 {
		t.Errorf("%d messages", len(got))
	}
	checkAll(t, "before the damage", got, readings(1000)[:len(got)])
	if i := r.Info(); !i.Unclean || len(i.Warnings) == 0 || i.Messages != uint64(len(got)) {
		t.Errorf("info: unclean %v, %d messages, warnings %q; read were %d", i.Unclean, i.Messages, i.Warnings, len(got))
	}
}

// A torn end, as a power cut leaves it, ends reading without an error, whatever its length.
func TestTornLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	_, ms := fillLog(t, dir, 300)
	name := filepath.Join(logDir, segmentName(1))
	fi, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	last := len(ms) + 1
	for n := fi.Size() - 1; n >= 0; n -= 1499 {
		live := copyDir(t, dir)
		if err := cut(name, int(n))(live); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 { // and zeros where the file had been longer
			if err := edit(name, func(b []byte) []byte { return append(b, make([]byte, 700)...) })(live); err != nil {
				t.Fatal(err)
			}
		}
		got, err := readAll(t, mustOpen(t, live), plugin.Query{})
		if err != nil {
			t.Fatalf("cut to %d: %v", n, err)
		}
		if len(got) > last {
			t.Fatalf("cut to %d: %d messages, %d of a longer one", n, len(got), last)
		}
		last = len(got)
		checkAll(t, "torn", got, ms[:len(got)])
	}
	if last != 0 {
		t.Errorf("%d messages in an empty log", last)
	}
}
