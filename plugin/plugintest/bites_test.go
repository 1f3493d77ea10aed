package plugintest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// faults are, for each case, ways to break the contract that it must catch.
var faults = map[string][]fault{
	"empty storage":               {"empty starts at zero", "always unclean"},
	"round trip":                  {"wrong count", "never closed", "empty payloads lost"},
	"counts and bounds":           {"wrong count", "first is start"},
	"stamps out of order":         {"write order"},
	"extreme stamps":              {"unsigned stamps", "write order"},
	"equal stamps in a topic":     {"ties backwards", "no order"},
	"equal stamps across topics":  {"ties by topic"},
	"order numbers":               {"no order"},
	"topic names":                 {"colliding names", "topic by name alone"},
	"topics without messages":     {"no empty topics"},
	"topic updates":               {"no updates", "update clears", "topic twice"},
	"definitions":                 {"no definitions"},
	"send time and source":        {"no send time", "no source"},
	"empty payload":               {"empty payloads lost"},
	"big payload":                 {"payload cut at 16 MiB"},
	"message too large":           {"cut large messages"},
	"batch is not kept":           {"keep the batch"},
	"unknown topic":               {"unknown topic poisons", "any topic", "part of a batch"},
	"size":                        {"size without pending"},
	"sync and size while writing": {"sync while writing"},
	"close":                       {"close once", "write after close"},
	"metadata":                    {"oldest metadata", "first metadata"},
	"presets":                     {"any preset"},
	"configuration":               {"any config"},
	"generations":                 {"one generation"},
	"context":                     {"ignore the context"},
	"exists":                      {"overwrite"},
	"detect":                      {"detect anything"},
	"not a storage":               {"open anything"},
	"query topics":                {"no topic filter", "empty is all"},
	"query range":                 {"no range", "range without end"},
	"query reverse":               {"no reverse"},
	"end of iteration":            {"again after the end", "close once"},
	"two iterators":               {"one iterator", "shared position"},
	"concurrent readers":          {"shared position"},
	"reading changes nothing":     {"touch the file", "open for writing"},
	"reading while writing":       {"write in memory", "always clean"},
	"reading another process":     {"write in memory", "always clean"},
	"killed after sync":           {"write in memory", "always clean"},
	"killed without sync":         {"always clean"},
	"random operations":           {"ties by topic", "topic twice", "range without end"},
	"damage":                      {"silent damage", "no checksums"},
}

// recorder notes failures instead of reporting them.
type recorder struct {
	t      *testing.T
	failed []string
}

func (r *recorder) Helper()             {}
func (r *recorder) Logf(string, ...any) {}
func (r *recorder) TempDir() string     { return r.t.TempDir() }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// TestBites breaks the reference driver once for each obligation and expects the case to fail.
func TestBites(t *testing.T) {
	if isChild() {
		os.Exit(child(&reference{fault: fault(os.Getenv(envFault))}))
	}
	for _, c := range cases {
		if len(faults[c.name]) == 0 {
			t.Errorf("%s: no fault shows that the case bites", c.name)
		}
		for _, f := range faults[c.name] {
			t.Run(c.name+"/"+string(f), func(t *testing.T) {
				if f == "open for writing" && os.Geteuid() == 0 {
					t.Skip("root may write to write-protected files")
				}
				if c.name == "message too large" && raceDetector {
					t.Skip("the case is left out with the race detector")
				}
				if c.name == "concurrent readers" && raceDetector {
					t.Skip("the race detector would bite first")
				}
				r := &recorder{t: t}
				o := Options{Damage: referenceDamage, fault: f, test: "TestBites"}.withDefaults()
				done := make(chan struct{})
				go func() {
					defer close(done)
					c.run(r, &reference{fault: f}, o)
				}()
				<-done
				if len(r.failed) == 0 {
					t.Error("the case passes with this fault")
				} else {
					t.Log(r.failed[0])
				}
			})
		}
	}
}

// TestFaults holds that every fault in the reference driver is used and none is misspelled.
func TestFaults(t *testing.T) {
	b, err := os.ReadFile("reference.go")
	if err != nil {
		t.Fatal(err)
	}
	var inCode, inTable []string
	for _, m := range regexp.MustCompile(`(?:fault|f) [!=]= ("[^"]+")|case ("[^"]+"):`).FindAllStringSubmatch(string(b), -1) {
		inCode = append(inCode, strings.Trim(m[1]+m[2], `"`))
	}
	for _, fs := range faults {
		for _, f := range fs {
			inTable = append(inTable, string(f))
		}
	}
	slices.Sort(inCode)
	slices.Sort(inTable)
	if a, b := slices.Compact(inCode), slices.Compact(inTable); !slices.Equal(a, b) {
		t.Errorf("faults in reference.go\n%q\nin the table\n%q", a, b)
	}
	if len(faults) != len(cases) {
		t.Errorf("%d cases, the table has %d", len(cases), len(faults))
	}
}

// referenceDamage is the table of damages of the reference format.
var referenceDamage = []Damage{
	{Name: "one byte in a payload", Least: 999, Offset: true, Break: func(path string) error { return flip(path, 1000) }},
	{Name: "one byte in the first message", Offset: true, Break: func(path string) error { return flip(path, 0) }},
	{Name: "the magic", Refused: true, Break: func(path string) error { return overwrite(path, 3, "X") }},
	{Name: "a length of 4 GiB", Offset: true, Break: func(path string) error {
		off, err := messageOffset(path, 500)
		if err != nil {
			return err
		}
		return overwrite(path, off, "\xff\xff\xff\xff")
	}},
	{Name: "the end record", Whole: true, Break: func(path string) error {
		fi, err := os.Stat(path)
		if err != nil {
			return err
		}
		return os.Truncate(path, fi.Size()-5)
	}},
}

// messageOffset is where the record of message n begins.
func messageOffset(path string, n int) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	off := strings.Index(string(b), string(payload(uint64(n), DamageSize)))
	if off < 0 {
		return 0, errors.New("message not found")
	}
	return int64(off - msgFields - 1 - refHeader), nil
}

func flip(path string, n int) error {
	off, err := messageOffset(path, n)
	if err != nil {
		return err
	}
	return overwrite(path, off+refHeader+100, "\x00\x01\x02\x03")
}

func overwrite(path string, off int64, s string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(s), off)
	return errors.Join(err, f.Close())
}

func TestConformance(t *testing.T) { Run(t, NewMemory(), Options{Damage: referenceDamage}) }

// A directory in the place of a storage, and a path below a file, give errors that say so.
func TestReferencePaths(t *testing.T) {
	d := NewMemory()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create(background, filepath.Join(file, "x.mem"), plugin.WriteOptions{}); err == nil {
		t.Error("created below a file")
	}
}
