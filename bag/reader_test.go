package bag

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// makeBag writes a closed bag of the memory format: files of n messages each, payload "file message".
func makeBag(t testing.TB, dir string, files, n int) {
	t.Helper()
	w := mustCreate(t, dir, memory(WriterOptions{}))
	a := mustTopic(t, w, "/a", "x/msg/A")
	for f := range files {
		if f > 0 {
			if err := w.Split(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			mustWrite(t, w, plugin.Message{Topic: a, RecvTime: int64(f*1000 + i), Data: fmt.Append(nil, f, " ", i)})
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func edit(t testing.TB, dir string, change func(*Metadata)) {
	t.Helper()
	m := readMeta(t, dir)
	change(m)
	if err := os.WriteFile(filepath.Join(dir, MetadataFile), m.Encode(0), 0o644); err != nil {
		t.Fatal(err)
	}
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func openErr(t testing.TB, path string) error {
	t.Helper()
	r, err := Open(context.Background(), path, ReaderOptions{})
	if err == nil {
		r.Close()
	}
	return err
}

// Every form of path that recorders wrote is found, also after the directory was renamed.
func TestPaths(t *testing.T) {
	for _, c := range []struct {
		version int
		path    string
	}{
		{1, "yard_0.mem"}, {1, "yard/yard_0.mem"}, {3, "yard/yard_0.mem"}, {4, "yard_0.mem"}, {4, "yard/yard_0.mem"},
		{9, "./yard_0.mem"}, {9, "old_name/yard_0.mem"}, {9, "deep/old/name/yard_0.mem"}, {9, "x/../yard_0.mem"}, {9, `yard\yard_0.mem`},
	} {
		dir := bagDir(t)
		makeBag(t, dir, 1, 3)
		edit(t, dir, func(m *Metadata) { m.Version, m.Paths = c.version, []string{c.path} })
		for _, d := range []string{dir, dir + "_renamed"} {
			if d != dir {
				rename(t, dir, d)
			}
			if i := mustOpen(t, d).Info(); i.Messages != 3 || i.Files[0].Path != "yard_0.mem" {
				t.Errorf("%+v: %+v", c, i)
			}
		}
	}
}

// A directory whose name YAML cannot carry.
func TestPathNotUTF8(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ya\xff\xferd")
	makeBag(t, dir, 2, 3)
	if i := mustOpen(t, dir).Info(); i.Messages != 6 || len(i.Files) != 2 || len(i.Warnings) > 0 {
		t.Errorf("%+v", i)
	}
}

// A file in a directory below the bag is found where it is.
func TestPathBelow(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 1, 3)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	rename(t, filepath.Join(dir, "yard_0.mem"), filepath.Join(dir, "sub", "yard_0.mem"))
	edit(t, dir, func(m *Metadata) { m.Paths = []string{"sub/yard_0.mem"} })
	if i := mustOpen(t, dir).Info(); i.Messages != 3 || i.Files[0].Path != "sub/yard_0.mem" {
		t.Errorf("%+v", i)
	}
}

func TestPathsOutside(t *testing.T) {
	root := t.TempDir()
	makeBag(t, filepath.Join(root, "other"), 1, 3)
	outside := filepath.Join(root, "other", "other_0.mem")
	for _, p := range []string{"../other/other_0.mem", outside, "../yard/yard_0.mem", "yard/../../other/other_0.mem", ".."} {
		dir := filepath.Join(t.TempDir(), "yard")
		makeBag(t, dir, 1, 3)
		edit(t, dir, func(m *Metadata) { m.Paths = []string{p} })
		if err := openErr(t, dir); err == nil || !strings.Contains(err.Error(), "outside of the bag") {
			t.Errorf("%s: %v", p, err)
		}
	}
	dir := filepath.Join(root, "yard")
	makeBag(t, dir, 2, 3)
	if err := os.Remove(filepath.Join(dir, "yard_1.mem")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "yard_1.mem")); err != nil {
		t.Skip(err)
	}
	if err := openErr(t, dir); err == nil || !strings.Contains(err.Error(), "leaves") {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(dir, MetadataFile)); err != nil {
		t.Fatal(err)
	}
	if err := openErr(t, dir); err == nil || !strings.Contains(err.Error(), "leaves") {
		t.Error(err)
	}
}

func TestMissingAndExtraFiles(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 3, 2)
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	rename(t, filepath.Join(dir, "yard_1.mem"), filepath.Join(dir, "elsewhere.mem"))
	err := openErr(t, dir)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "file yard_1.mem, which metadata.yaml lists, is missing") {
		t.Fatal(err)
	}
	allow := ReaderOptions{AllowMissing: true}
	r, err := Open(context.Background(), dir, allow)
	if err != nil {
		t.Fatal(err)
	}
	if i := r.Info(); i.Messages != 4 || len(readAll(t, r, plugin.Query{})) != 4 || !strings.Contains(strings.Join(i.Warnings, "\n"), "file yard_1.mem, which metadata.yaml lists, is missing") {
		t.Errorf("%+v", i)
	}
	r.Close()
	for _, n := range []string{"yard_0.mem", "yard_2.mem"} {
		rename(t, filepath.Join(dir, n), filepath.Join(dir, n+".away"))
	}
	if _, err := Open(context.Background(), dir, allow); !errors.Is(err, fs.ErrNotExist) {
		t.Error("all files are missing:", err)
	}
	for _, n := range []string{"yard_0.mem", "yard_2.mem"} {
		rename(t, filepath.Join(dir, n+".away"), filepath.Join(dir, n))
	}
	edit(t, dir, func(m *Metadata) { m.Paths = []string{"yard_0.mem", "yard_2.mem", "yard_0.mem"} })
	i := mustOpen(t, dir).Info()
	all := strings.Join(i.Warnings, "\n")
	if i.Messages != 4 || !strings.Contains(all, "elsewhere.mem is not listed in metadata.yaml; it is left out") ||
		!strings.Contains(all, "lists yard_0.mem twice") || !strings.Contains(all, "metadata.yaml says 6 messages, the storages hold 4") ||
		strings.Contains(all, "notes.txt") {
		t.Fatalf("%+v", i)
	}
}

// A bag that was cut off: files that metadata.yaml had no time to name belong to it, and a last file that was only begun
// does no harm.
func TestCutOff(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 3, 2)
	edit(t, dir, func(m *Metadata) {
		m.CustomData[KeyState] = StateRecording
		m.Paths, m.Files, m.MessageCount = m.Paths[:1], m.Files[:1], 0
		m.Topics[0].MessageCount = 0
	})
	if err := os.WriteFile(filepath.Join(dir, "yard_3.mem"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other_9.mem"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, dir)
	i := r.Info()
	all := strings.Join(i.Warnings, "\n")
	if !i.CutOff || i.Messages != 6 || len(i.Files) != 3 || i.Start != 0 || i.End != 2001 || len(readAll(t, r, plugin.Query{})) != 6 {
		t.Fatalf("%+v", i)
	}
	for _, w := range []string{"yard_1.mem is not in metadata.yaml yet", "yard_2.mem is not in metadata.yaml yet", "the last file cannot be read, the recording was cut off while it was begun: yard_3.mem",
		"other_9.mem is not listed", "the recording was cut off"} {
		if !strings.Contains(all, w) {
			t.Errorf("no %q in %q", w, i.Warnings)
		}
	}
	if m := r.Metadata(); m.MessageCount != 6 || len(m.Paths) != 3 || m.Topics[0].MessageCount != 6 || m.CustomData[KeyState] != StateRecording {
		t.Errorf("%+v", m)
	}
	text := readFile(t, filepath.Join(dir, MetadataFile))
	for _, name := range []string{MetadataFile, "other_9.mem"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if i := mustOpen(t, dir).Info(); !i.CutOff || i.Messages != 6 || !strings.Contains(strings.Join(i.Warnings, "\n"), "the last file cannot be read") {
		t.Fatalf("without metadata.yaml: %+v", i)
	}
	if err := os.WriteFile(filepath.Join(dir, MetadataFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	// In a bag that was closed in order, such a file is an error.
	edit(t, dir, func(m *Metadata) {
		m.CustomData[KeyState] = StateClosed
		m.Paths = append(m.Paths, "yard_3.mem")
	})
	if err := openErr(t, dir); err == nil || !strings.Contains(err.Error(), "yard_3.mem: the file is empty") {
		t.Error(err)
	}
}

// Without metadata.yaml the files are taken by number, in both generations of names.
func TestCollect(t *testing.T) {
	for _, pattern := range []string{"yard_%d.mem", "%d_yard_2026_05_12-10_11_%02[1]d.mem", "yard_2026_05_12-10_11_12_%d.mem"} {
		dir := bagDir(t)
		makeBag(t, dir, 12, 1)
		var want []string
		for n := range 12 {
			name := fmt.Sprintf(pattern, n)
			if old := fmt.Sprintf("yard_%d.mem", n); old != name {
				rename(t, filepath.Join(dir, old), filepath.Join(dir, name))
			}
			want = append(want, name)
		}
		if err := os.Remove(filepath.Join(dir, MetadataFile)); err != nil {
			t.Fatal(err)
		}
		r := mustOpen(t, dir)
		i := r.Info()
		var got []string
		for _, f := range i.Files {
			got = append(got, f.Path)
		}
		if !reflect.DeepEqual(got, want) || i.Messages != 12 || i.CutOff || len(i.Warnings) != 1 || i.StorageID != "memory" {
			t.Errorf("%s: %+v", pattern, i)
		}
		if err := os.Remove(filepath.Join(dir, want[4])); err != nil {
			t.Fatal(err)
		}
		if i := mustOpen(t, dir).Info(); i.Messages != 11 || !strings.Contains(strings.Join(i.Warnings, "\n"), "no file with number 4") {
			t.Errorf("%s: %+v", pattern, i)
		}
	}
}

func TestCollectErrors(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 2, 1)
	if err := os.Remove(filepath.Join(dir, MetadataFile)); err != nil {
		t.Fatal(err)
	}
	rename(t, filepath.Join(dir, "yard_1.mem"), filepath.Join(dir, "field_1.mem"))
	if err := openErr(t, dir); err == nil || !strings.Contains(err.Error(), "field_1.mem, yard_0.mem are not parts of one bag: name one of the files") {
		t.Error(err)
	}
	if i := mustOpen(t, filepath.Join(dir, "field_1.mem")).Info(); i.Messages != 1 || i.CutOff || len(i.Warnings) > 0 {
		t.Errorf("%+v", i)
	}
	if err := openErr(t, t.TempDir()); err == nil || !strings.Contains(err.Error(), "neither metadata.yaml nor a storage (") {
		t.Error(err)
	}
	if err := openErr(t, filepath.Join(dir, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"": "is empty",
		"version https://git-lfs.github.com/spec/v1\noid": "is a git-LFS pointer, run git lfs pull",
		"#ROSBAG V2.0\n":       "is a ROS 1 bag, convert it first",
		"\x89MCAP9\r\n":        "is an MCAP file",
		"\x28\xb5\x2f\xfdxxxx": "is compressed with zstd",
		"hello":                "no such storage format",
	} {
		p := filepath.Join(t.TempDir(), "x_0.db3")
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{p, filepath.Dir(p)} {
			if err := openErr(t, p); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

func TestMetadataErrors(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 2, 1)
	path := filepath.Join(dir, MetadataFile)
	text := readFile(t, path)
	put := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(strings.Replace(text, "nanoseconds: 1000", "nanoseconds: -1.5", 1))
	err := openErr(t, dir)
	if err == nil || !strings.Contains(err.Error(), `metadata.yaml: line 5: duration.nanoseconds: "-1.5" is not a whole number`) || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
	put(strings.Replace(text, "storage_identifier: memory", "storage_identifier: tape", 1))
	if err := openErr(t, dir); !errors.Is(err, plugin.ErrNoDriver) {
		t.Error(err)
	}
	r, err := Open(context.Background(), dir, ReaderOptions{StorageID: "memory"})
	if err != nil || r.Info().Messages != 2 || r.Metadata().StorageIdentifier != "memory" {
		t.Error(err)
	}
	r.Close()
	put(strings.Replace(text, "storage_identifier: memory", "storage_identifier: sqlite3", 1))
	if err := openErr(t, dir); !errors.Is(err, plugin.ErrFormat) {
		t.Error(err)
	}
	put(strings.Replace(text, "storage_identifier: memory", `storage_identifier: ""`, 1))
	if i := mustOpen(t, dir).Info(); i.Messages != 2 || i.StorageID != "memory" {
		t.Errorf("%+v", i)
	}
	put("")
	if i := mustOpen(t, dir).Info(); i.Messages != 2 || !strings.Contains(i.Warnings[0], "metadata.yaml is empty") {
		t.Errorf("%+v", i)
	}
	put(strings.Repeat("x", maxYAMLBytes+1))
	if err := openErr(t, dir); err == nil || !strings.Contains(err.Error(), "is larger than") {
		t.Error(err)
	}
}

func TestReaderConfig(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 1, 1)
	for _, c := range []struct {
		config map[string]any
		want   string
	}{
		{map[string]any{"x": 1}, `key "x"`},
		{map[string]any{"read": map[string]any{"y": 1}}, `key "y"`},
		{map[string]any{"read": 1}, "read is not a map"},
		{map[string]any{"write": map[string]any{"z": 1}}, ""},
	} {
		r, err := Open(context.Background(), dir, ReaderOptions{Config: c.config})
		if c.want == "" && err == nil {
			r.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.config, err)
		}
	}
}

// opening counts how many storages are open.
type opening struct {
	*hooked
	open, total, most int
}

func (d *opening) OpenReader(ctx context.Context, path string, o plugin.ReadOptions) (plugin.Reader, error) {
	r, err := d.hooked.Driver.OpenReader(ctx, path, o)
	if err != nil {
		return nil, err
	}
	d.open++
	d.total++
	d.most = max(d.most, d.open)
	return &openReader{r, d}, nil
}

type openReader struct {
	plugin.Reader
	d *opening
}

func (r *openReader) Close() error { r.d.open--; return r.Reader.Close() }

// A bag that was closed in order is taken at its word: files are opened when their time comes, and never too many.
func TestFilesAreOpenedLate(t *testing.T) {
	d := &opening{hooked: &hooked{Driver: newHooked().Driver, name: fmt.Sprint("opening", hookedCount.Add(1))}}
	plugin.Register(d)
	dir := bagDir(t)
	w := mustCreate(t, dir, WriterOptions{StorageID: d.name})
	a, b := mustTopic(t, w, "/a", "x/msg/A"), mustTopic(t, w, "/b", "x/msg/B")
	const files = 3 * maxOpenFiles
	for f := range files {
		mustWrite(t, w, plugin.Message{Topic: a, RecvTime: int64(f) * 10}, plugin.Message{Topic: b, RecvTime: int64(f)*10 + 5})
		if f < files-1 {
			if err := w.Split(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := mustOpen(t, dir)
	i := r.Info()
	if d.total != 1 || i.Messages != 2*files || len(i.Files) != files || i.Topics[a-1].Count != files || i.Topics[0].Bytes != -1 || len(i.Warnings) > 0 {
		t.Fatalf("%d opened, %+v", d.total, i)
	}
	it, err := r.Messages(plugin.Query{Range: &plugin.TimeRange{Start: 101, End: 130}})
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	var m plugin.Message
	for err = it.Next(&m); err == nil; err = it.Next(&m) {
		got = append(got, m.RecvTime)
	}
	if err != io.EOF || !reflect.DeepEqual(got, []int64{105, 110, 115, 120, 125, 130}) || d.total > 6 {
		t.Fatalf("%v %v, %d opened", err, got, d.total)
	}
	if err := it.Next(&m); err != io.EOF {
		t.Error(err)
	}
	if err := it.Close(); err != nil {
		t.Fatal(err)
	}
	if err := it.Next(&m); !errors.Is(err, plugin.ErrClosed) {
		t.Error(err)
	}
	for _, q := range []plugin.Query{{}, {Reverse: true}} {
		if got := readAll(t, r, q); len(got) != 2*files {
			t.Fatalf("%d messages", len(got))
		}
	}
	if d.most > maxOpenFiles+1 {
		t.Errorf("%d open at a time", d.most)
	}
	if err := r.Close(); err != nil || d.open != 0 {
		t.Errorf("%v, %d left open", err, d.open)
	}
	if _, err := r.Messages(plugin.Query{}); !errors.Is(err, plugin.ErrClosed) {
		t.Error(err)
	}

	// A bag that was not is looked into; the answers are the same.
	d.total, d.most = 0, 0
	edit(t, dir, func(m *Metadata) { m.CustomData = nil })
	r = mustOpen(t, dir)
	i = r.Info()
	if d.total != files || i.Messages != 2*files || i.Topics[0].Bytes != 0 || d.most > maxOpenFiles+1 {
		t.Fatalf("%d opened, %+v", d.total, i)
	}
	if got := readAll(t, r, plugin.Query{Topics: []plugin.TopicID{b}}); len(got) != files || got[1].RecvTime != 15 {
		t.Fatalf("%d messages", len(got))
	}
}

func TestQueryErrors(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 1, 1)
	r := mustOpen(t, dir)
	for _, id := range []plugin.TopicID{0, 2} {
		if _, err := r.Messages(plugin.Query{Topics: []plugin.TopicID{1, id}}); !errors.Is(err, plugin.ErrUnknownTopic) {
			t.Error(err)
		}
	}
	d := newHooked()
	d.features = func(f *plugin.Features) { f.Reverse = false }
	dir = bagDir(t)
	w := mustCreate(t, dir, WriterOptions{StorageID: d.name})
	mustWrite(t, w, plugin.Message{Topic: mustTopic(t, w, "/a", "x/msg/A")})
	w.Close()
	it, err := mustOpen(t, dir).Messages(plugin.Query{Reverse: true})
	if err == nil {
		var m plugin.Message
		err = it.Next(&m)
		it.Close()
	}
	if !errors.Is(err, plugin.ErrUnsupported) {
		t.Error(err)
	}
}

// A damaged file ends early; the error is said once and the others go on.
func TestDamagedFile(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 3, 20)
	edit(t, dir, func(m *Metadata) { m.CustomData = nil })
	path := filepath.Join(dir, "yard_1.mem")
	b := []byte(readFile(t, path))
	b[len(b)/2] ^= 0xff
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Open(context.Background(), dir, ReaderOptions{})
	if err != nil {
		t.Skipf("the memory format refuses to open: %v", err)
	}
	defer r.Close()
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	damage, n, last := 0, 0, int64(0)
	for {
		var m plugin.Message
		err := it.Next(&m)
		var c *plugin.CorruptError
		if errors.As(err, &c) {
			damage++
			if !strings.Contains(err.Error(), "yard_1.mem") {
				t.Error(err)
			}
			continue
		}
		if err != nil {
			if err != io.EOF {
				t.Fatal(err)
			}
			break
		}
		n, last = n+1, m.RecvTime
	}
	if damage != 1 || n < 40 || n >= 60 || last != 2019 {
		t.Fatalf("%d errors, %d messages, last at %d", damage, n, last)
	}
}

// Sources are numbered alike in all files, though the storages number them as they please.
func TestSources(t *testing.T) {
	dir := bagDir(t)
	for n, sources := range [][]string{{"p", "q"}, {"q", "r", "p"}, {"p"}, nil} {
		w, err := testDriver(t, "memory").Create(context.Background(), filepath.Join(mustMkdir(t, dir), fmt.Sprintf("yard_%d.mem", n)), plugin.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A", Sources: sources})
		if err != nil {
			t.Fatal(err)
		}
		var ms []plugin.Message
		for i, s := range append([]string{""}, sources...) {
			ms = append(ms, plugin.Message{Topic: id, RecvTime: int64(n), Source: uint32(i), Data: []byte(s)})
		}
		if err := errors.Join(w.Write(ms), w.Close(plugin.Metadata{})); err != nil {
			t.Fatal(err)
		}
	}
	r := mustOpen(t, dir)
	names := r.Info().Topics[0].Sources
	if !reflect.DeepEqual(names, []string{"p", "q", "r"}) {
		t.Fatal(names)
	}
	got := readAll(t, r, plugin.Query{})
	for _, m := range got {
		want := ""
		if m.Source > 0 {
			want = names[m.Source-1]
		}
		if string(m.Data) != want {
			t.Errorf("%+v is of %q", m, want)
		}
	}
	if len(got) != 10 {
		t.Fatalf("%d messages", len(got))
	}
}

func mustMkdir(t testing.TB, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func testDriver(t testing.TB, name string) plugin.Driver {
	t.Helper()
	d, err := plugin.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Odd texts beside the messages make warnings, not errors.
func TestOddTexts(t *testing.T) {
	dir := bagDir(t)
	w := mustCreate(t, dir, memory(WriterOptions{CustomData: map[string]string{KeyLedger: "{", KeyClockSteps: "x"}}))
	if _, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "x/msg/A", OfferedQoS: "history: keep_last\ndepth: 10"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddTopic(plugin.Topic{Name: "/\xff\xfe", Type: "x/msg/A", OfferedQoS: "- depth: 3"}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	i := mustOpen(t, dir).Info()
	all := strings.Join(i.Warnings, "\n")
	for _, want := range []string{`topic "/a": offered QoS is unknown`, `topic "/\xff\xfe": offered QoS is unknown`, "parse gobag.ledger", "parse gobag.clock_steps"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %q", want, i.Warnings)
		}
	}
	if len(i.Topics) != 2 || i.Topics[0].QoS != nil || i.Ledger != nil {
		t.Errorf("%+v", i)
	}
}

func TestLedgerInBag(t *testing.T) {
	dir := bagDir(t)
	w := mustCreate(t, dir, memory(WriterOptions{}))
	mustTopic(t, w, "/a", "x/msg/A")
	mustTopic(t, w, "/b", "x/msg/A")
	l := Ledger{Topics: map[string]TopicLedger{"/a": {Received: 5, Lost: Lost{Queue: 5}}}}
	w.SetCustomData(KeyLedger, l.Encode())
	w.SetCustomData(KeyClockSteps, EncodeClockSteps([]ClockStep{{1, 2, 3}}))
	w.Close()
	for _, p := range []string{dir, filepath.Join(dir, "yard_0.mem")} {
		i := mustOpen(t, p).Info()
		if !reflect.DeepEqual(i.Ledger, &l) || i.Topics[0].Ledger.Lost.Queue != 5 || i.Topics[1].Ledger != nil || len(i.ClockSteps) != 1 {
			t.Errorf("%s: %+v", p, i)
		}
	}
}

// Reading while somebody records sees what is there so far, and more when opened again.
func TestReadWhileRecording(t *testing.T) {
	for _, storage := range []string{"memory", "sqlite3"} {
		dir := bagDir(t)
		w := mustCreate(t, dir, WriterOptions{StorageID: storage})
		a := mustTopic(t, w, "/a", "x/msg/A")
		for n := 1; n <= 6; n++ {
			mustWrite(t, w, plugin.Message{Topic: a, RecvTime: int64(n)})
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			r := mustOpen(t, dir)
			if i := r.Info(); !i.StillRecording || i.CutOff || i.Messages != uint64(n) || len(readAll(t, r, plugin.Query{})) != n {
				t.Errorf("%s: after %d messages: %+v", storage, n, i)
			}
			r.Close()
			if n%2 == 0 {
				if err := w.Split(); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.Close()
	}
}

func TestReaderConcurrency(t *testing.T) {
	dir := bagDir(t)
	makeBag(t, dir, 30, 5)
	r := mustOpen(t, dir)
	done := make(chan int)
	for g := range 8 {
		go func() {
			n := 0
			for range 5 {
				it, err := r.Messages(plugin.Query{Reverse: g%2 == 0})
				if err != nil {
					t.Error(err)
					break
				}
				var m plugin.Message
				for it.Next(&m) == nil {
					n++
					r.Info()
				}
				it.Close()
			}
			done <- n
		}()
	}
	for range 8 {
		if n := <-done; n != 5*150 {
			t.Errorf("%d messages", n)
		}
	}
}
