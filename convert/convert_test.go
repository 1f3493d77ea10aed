package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// keeps is what a format can hold of a bag.
func keeps(c content, f plugin.Features) content {
	c.Topics = append([]plugin.Topic(nil), c.Topics...)
	c.Messages = append([]plugin.Message(nil), c.Messages...)
	for i := range c.Topics {
		if !f.Definitions {
			c.Topics[i].Definition = plugin.Definition{}
		}
		if !f.Source {
			c.Topics[i].Sources = nil
		}
	}
	for i := range c.Messages {
		if !f.SendTime {
			c.Messages[i].SendTime = 0
		}
		if !f.Source {
			c.Messages[i].Source, c.Messages[i].Seq = 0, 0
		}
	}
	return c
}

// There and back over all pairs of formats: nothing has changed.
func TestThereAndBack(t *testing.T) {
	for _, x := range plugin.Drivers() {
		for _, y := range plugin.Drivers() {
			t.Run(x.Name()+"-"+y.Name(), func(t *testing.T) {
				dir := t.TempDir()
				a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
				yard(t, a, bag.WriterOptions{StorageID: x.Name(), ROSDistro: "jazzy"}, 1, 300)
				want := read(t, a)
				if len(want.Messages) != 300 {
					t.Fatalf("%d messages", len(want.Messages))
				}
				to(t, a, b, bag.WriterOptions{StorageID: y.Name(), MaxBagSize: 1 << 20})
				same(t, "there", read(t, b), keeps(want, y.Features()))
				to(t, b, c, bag.WriterOptions{StorageID: x.Name()})
				same(t, "back", read(t, c), keeps(want, y.Features()))
			})
		}
	}
}

// The form for Humble loses nothing either, and compression does not.
func TestForms(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "a")
	yard(t, a, bag.WriterOptions{}, 2, 400)
	want := read(t, a)
	for name, o := range map[string]bag.WriterOptions{
		"humble":  {Compat: plugin.CompatHumble},
		"file":    {Compression: bag.Compression{Mode: bag.CompressionFile}, MaxBagSize: 1 << 20},
		"message": {StorageID: "sqlite3", Compression: bag.Compression{Mode: bag.CompressionMessage, Threads: 3}},
		"small":   {Preset: plugin.PresetSmall, MaxBagDuration: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := filepath.Join(dir, name), filepath.Join(dir, name+"-back")
			res := to(t, a, b, o)
			same(t, "there", read(t, b), want)
			to(t, b, c, bag.WriterOptions{Compat: plugin.CompatJazzy})
			same(t, "back", read(t, c), want)
			if o.MaxBagSize > 0 && res.Outputs[0].Files < 2 {
				t.Errorf("%d files", res.Outputs[0].Files)
			}
		})
	}
}

// Files end where the stamps say so.
func TestSplitByStamp(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	yard(t, a, bag.WriterOptions{}, 3, 500)
	to(t, a, b, bag.WriterOptions{MaxBagDuration: 100 * time.Millisecond})
	r, err := bag.Open(context.Background(), b, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files := r.Info().Files
	if len(files) < 4 {
		t.Fatalf("%d files", len(files))
	}
	for i, f := range files {
		if f.Duration > 100*time.Millisecond || i > 0 && f.Start-files[i-1].Start <= int64(100*time.Millisecond) {
			t.Errorf("file %d: %v from %d", i, f.Duration, f.Start)
		}
	}
}

// Bags are merged by stamp; on equal ones the first input comes first. Writers keep their names.
func TestMerge(t *testing.T) {
	dir := t.TempDir()
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	yard(t, a, bag.WriterOptions{CustomData: map[string]string{"k": "first", "a": "1"}}, 4, 300)
	yard(t, b, bag.WriterOptions{StorageID: "memory", CustomData: map[string]string{"k": "second", "b": "2"}}, 5, 200)
	res := mustRun(t, Options{Inputs: []Input{{Path: a}, {Path: b}}, Outputs: []Output{{Dir: c}}})
	got, ca, cb := read(t, c), read(t, a), read(t, b)
	if res.Read != 500 || res.Outputs[0].Messages != 500 || len(got.Messages) != 500 {
		t.Fatalf("%+v", res)
	}
	if got.Custom["k"] != "first" || got.Custom["a"] != "1" || got.Custom["b"] != "2" {
		t.Errorf("custom data %v", got.Custom)
	}
	i, k := 0, 0
	for n, m := range got.Messages {
		from, at := &ca, &i
		if i == len(ca.Messages) || k < len(cb.Messages) && cb.Messages[k].RecvTime < ca.Messages[i].RecvTime {
			from, at = &cb, &k
		}
		want := from.Messages[*at]
		*at++
		want.Order, m.Order = 0, 0
		if fmt.Sprint(m) != fmt.Sprint(want) {
			t.Fatalf("message %d: %+v, want %+v", n, m, want)
		}
	}
}

// Sources of two bags that share some are numbered anew.
func TestMergeSources(t *testing.T) {
	dir := t.TempDir()
	var inputs []Input
	for i, sources := range [][]string{{"g1", "g2"}, {"g3", "g1"}} {
		p := filepath.Join(dir, fmt.Sprint("in", i))
		w, err := bag.Create(context.Background(), p, bag.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := w.AddTopic(plugin.Topic{Name: "/t", Type: "x/msg/Y", Sources: sources, TypeHash: fmt.Sprint("RIHS01_", i)})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(i), Source: 1, Seq: 9}, {Topic: id, RecvTime: int64(i), Source: 2, Seq: 10}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, Input{Path: p})
	}
	out := filepath.Join(dir, "out")
	mustRun(t, Options{Inputs: inputs, Outputs: []Output{{Dir: out}}})
	c := read(t, out)
	if len(c.Topics) != 1 || c.Topics[0].TypeHash != "" {
		t.Fatalf("topics %+v", c.Topics)
	}
	var got []string
	for _, m := range c.Messages {
		got = append(got, c.Topics[0].Sources[m.Source-1])
	}
	if strings.Join(got, " ") != "g1 g2 g3 g1" {
		t.Errorf("sources %v", got)
	}
}

// Several outputs, each with its part: the parts add up to the whole.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	a := filepath.Join(dir, "a")
	yard(t, a, bag.WriterOptions{}, 6, 600)
	whole := read(t, a)
	mid := whole.Messages[300].RecvTime
	outs := []Output{
		{Dir: filepath.Join(dir, "early"), Range: &plugin.TimeRange{Start: -1 << 63, End: mid - 1}},
		{Dir: filepath.Join(dir, "late"), Range: &plugin.TimeRange{Start: mid, End: 1<<63 - 1}},
		{Dir: filepath.Join(dir, "topics"), Filter: Filter{AllTopics: true}},
		{Dir: filepath.Join(dir, "rest"), Filter: Filter{AllServices: true, Actions: []string{"/go"}}},
		{Dir: filepath.Join(dir, "quoted"), Filter: Filter{ExcludeTopics: []string{"/o'brien"}, ExcludeRegex: "^/(tf|scan)$"}},
	}
	res := mustRun(t, Options{Inputs: []Input{{Path: a}}, Outputs: outs})
	n := func(i int) uint64 { return res.Outputs[i].Messages }
	if n(0)+n(1) != 600 || n(2)+n(3) != 600 || n(0) == 0 || n(3) == 0 || n(4) != n(3) {
		t.Errorf("%+v", res.Outputs)
	}
	for i, topics := range []int{6, 6, 4, 2, 3} {
		if got := read(t, outs[i].Dir); len(got.Topics) != topics || uint64(len(got.Messages)) != n(i) {
			t.Errorf("%s: %d topics, %d messages", outs[i].Dir, len(got.Topics), len(got.Messages))
		}
	}
}

// Whatever goes wrong, the error says so and no output is left.
func TestFailures(t *testing.T) {
	dir := t.TempDir()
	a, out := filepath.Join(dir, "a"), filepath.Join(dir, "out")
	yard(t, a, bag.WriterOptions{}, 7, 1500)
	damaged := filepath.Join(dir, "damaged")
	yard(t, damaged, bag.WriterOptions{StorageID: "sqlite3"}, 7, 1500)
	db := filepath.Join(damaged, "damaged_0.db3")
	b, err := os.ReadFile(db)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(db, b[:len(b)*2/3], 0o600); err != nil {
		t.Fatal(err)
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	for name, x := range map[string]struct {
		ctx  context.Context
		o    Options
		want string
	}{
		"damaged":   {o: Options{Inputs: []Input{{Path: damaged}}, Outputs: []Output{{Dir: out}}}, want: "gobag repair"},
		"stopped":   {ctx: stopped, o: Options{Inputs: []Input{{Path: a}}, Outputs: []Output{{Dir: out}}}, want: "canceled"},
		"absent":    {o: Options{Inputs: []Input{{Path: a}}, Outputs: []Output{{Dir: out, Filter: Filter{Topics: []string{"/nowhere"}}}}}, want: "/nowhere"},
		"no bag":    {o: Options{Inputs: []Input{{Path: filepath.Join(dir, "x")}}, Outputs: []Output{{Dir: out}}}, want: "no such file"},
		"second":    {o: Options{Inputs: []Input{{Path: a}}, Outputs: []Output{{Dir: out}, {Dir: a}}}, want: "already exists"},
		"no parent": {o: Options{Inputs: []Input{{Path: a}}, Outputs: []Output{{Dir: out}, {Dir: filepath.Join(a, "metadata.yaml", "x")}}}, want: "not a directory"},
		"regex":     {o: Options{Inputs: []Input{{Path: a}}, Outputs: []Output{{Dir: out, Filter: Filter{Regex: "("}}}}, want: "regular expression"},
		"twice":     {o: Options{Inputs: []Input{{Path: a}}, Outputs: []Output{{Dir: out}, {Dir: out}}}, want: "twice"},
		"nothing":   {o: Options{}, want: "no input"},
		"format":    {o: Options{Inputs: []Input{{Path: a}}, Outputs: []Output{{Dir: out, Writer: bag.WriterOptions{StorageID: "tape"}}}}, want: "tape"},
	} {
		t.Run(name, func(t *testing.T) {
			if x.ctx == nil {
				x.ctx = context.Background()
			}
			_, err := Run(x.ctx, x.o)
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("error %v, want %q in it", err, x.want)
			}
			gone(t, out)
		})
	}
	if read(t, a).Counts == nil {
		t.Error("the input has changed")
	}
}

// A message that the output cannot take is a failure, not a loss.
func TestTooLarge(t *testing.T) {
	plugin.Register(tiny{})
	dir := t.TempDir()
	a, out := filepath.Join(dir, "a"), filepath.Join(dir, "out")
	yard(t, a, bag.WriterOptions{}, 8, 100)
	_, err := Run(context.Background(), Options{Inputs: []Input{{Path: a}}, Outputs: []Output{{Dir: out, Writer: bag.WriterOptions{StorageID: "tiny"}}}})
	if err == nil || !strings.Contains(err.Error(), "larger than the storage takes") {
		t.Errorf("error %v", err)
	}
	gone(t, out)
	if errors.Is(err, plugin.ErrUnsupported) {
		t.Error("the storage was asked for it")
	}
}

// tiny is a format that takes small messages only.
type tiny struct{}

func (tiny) driver() plugin.Driver {
	d, err := plugin.Lookup("memory")
	if err != nil {
		panic(err)
	}
	return d
}

func (tiny) Name() string      { return "tiny" }
func (tiny) Extension() string { return ".tiny" }
func (d tiny) Features() plugin.Features {
	f := d.driver().Features()
	f.MaxMessageSize = 1000
	return f
}
func (tiny) Detect(string) (bool, error) { return false, nil }
func (d tiny) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	return d.driver().Create(ctx, path, o)
}
func (d tiny) OpenReader(ctx context.Context, path string, o plugin.ReadOptions) (plugin.Reader, error) {
	return d.driver().OpenReader(ctx, path, o)
}
