package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
)

// What users of rosbag2 have asked for and suffered from, as far as bags and the command line go: one test for each, numbered
// as in docs/rosbag2-differences.md. Those of recorder and player are in their packages. Where a test of that behaviour is
// there already, it is run under this name.

// A bag is unusable after a crash, since metadata.yaml is written at the end.
func TestComplaint03NoMetadata(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "src")
	flagBag(t, dir)
	removeYAML(t, dir)
	i := oddInfo(t, dir)
	if i.Messages != 26 || i.count("/a") != 10 {
		t.Errorf("%+v", i)
	}
	wantWarning(t, i, "no metadata.yaml")
	oddPlay(t, dir, 26)
	if text := oddReindex(t, dir); !strings.Contains(text, "message_count: 26") {
		t.Error(text)
	}
}

// A database is "malformed" after a crash, and that is all that is said.
func TestComplaint04MalformedDatabase(t *testing.T) {
	dir := t.TempDir()
	src, out := filepath.Join(dir, "src"), filepath.Join(dir, "out")
	flagBag(t, src)
	if r := cli(nil, "convert", src, "-o", out, "-s", "sqlite3"); r.code != 0 {
		t.Fatal(r.errOut)
	}
	file := filepath.Join(out, "out_0.db3")
	fi, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, fi.Size()-4096); err != nil {
		t.Fatal(err)
	}
	if r := cli(nil, "check", out); r.code != 1 || !strings.Contains(r.out+r.errOut, "out_0.db3") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	saved := filepath.Join(dir, "saved")
	r := cli(nil, "repair", out, "-o", saved)
	if i := oddInfo(t, saved); !strings.Contains(r.out+r.errOut, "26") && i.Messages == 0 {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	if r := cli(nil, "check", saved); r.code != 0 {
		t.Errorf("what was saved is wrong: %s", r.out)
	}
}

// reindex leaves MCAP files without summary, and repair tools call bad output a success.
func TestComplaint05MCAPWithoutSummary(t *testing.T) {
	dir := t.TempDir()
	src, saved := filepath.Join(dir, "src"), filepath.Join(dir, "saved")
	flagBag(t, src)
	file := filepath.Join(src, "src_0.mcap")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := b[:len(b)-60] // within the summary
	if err := os.WriteFile(file, cut, 0o600); err != nil {
		t.Fatal(err)
	}
	if i := oddInfo(t, src); i.Messages != 26 || !i.CutOff {
		t.Errorf("%+v", i)
	}
	if r := cli(nil, "repair", src, "-o", saved); r.code != 0 {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	if r := cli(nil, "check", saved); r.code != 0 || oddInfo(t, saved).Messages != 26 {
		t.Error(r.out)
	}
	if now, err := os.ReadFile(file); err != nil || !slices.Equal(now, cut) {
		t.Error("the original was changed")
	}
}

// Repair stops at the first bad chunk, or hides that something was lost.
func TestComplaint06RepairSaysWhatIsLost(t *testing.T) {
	dir := t.TempDir()
	src, saved := filepath.Join(dir, "src"), filepath.Join(dir, "saved")
	flagBag(t, src)
	file := filepath.Join(src, "src_0.mcap")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[strings.Index(string(b), "message 5")] ^= 0x40
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := cli(nil, "repair", src, "-o", saved); r.code != 1 || !strings.Contains(r.out+r.errOut, "lost") && !strings.Contains(r.out+r.errOut, "damaged") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	if exists(saved) {
		if r := cli(nil, "check", saved); r.code != 0 {
			t.Errorf("what was saved is wrong: %s", r.out)
		}
	}
}

// convert loses quality of service, type hashes and custom data.
func TestComplaint09ConvertKeepsAll(t *testing.T) {
	dir := t.TempDir()
	at := func(n string) string { return filepath.Join(dir, n) }
	def, err := msg.NewFinder(msg.Options{}).Find("std_msgs/msg/String", "")
	if err != nil {
		t.Fatal(err)
	}
	qos := bag.EncodeQoS([]bag.QoSProfile{{History: 1, Depth: 3, Reliability: 2, Durability: 1}}, true)
	makeBagOf(t, at("one"), plugin.Topic{Name: "/a", Type: "std_msgs/msg/String", TypeHash: def.Hash, OfferedQoS: qos, Sources: []string{"w1", "w2"},
		Definition: plugin.Definition{Encoding: def.Encoding, Text: def.Text}}, func(w *bag.Writer, id plugin.TopicID) {
		for i := range int64(5) {
			if err := w.Write([]plugin.Message{{Topic: id, RecvTime: 100 + i/2, SendTime: 50 + i, Source: uint32(i%2) + 1, Seq: uint64(i) + 1, Data: []byte{0, 1, 0, 0, byte(i)}}}); err != nil {
				t.Fatal(err)
			}
		}
		w.SetCustomData("robot", "r1")
	})
	for _, step := range [][3]string{{"one", "two", "sqlite3"}, {"two", "three", "leveldb"}, {"three", "four", "mcap"}} {
		if r := cli(nil, "convert", at(step[0]), "-o", at(step[1]), "-s", step[2]); r.code != 0 {
			t.Fatal(r.errOut)
		}
	}
	if a, b := wholeBag(t, at("one")), wholeBag(t, at("four")); a != b {
		t.Errorf("before:\n%s\nafter:\n%s", a, b)
	}
}

// wholeBag is a bag as text: topics with all that is known of them, custom data and every message.
func wholeBag(t *testing.T, dir string) string {
	t.Helper()
	r, err := bag.Open(t.Context(), dir, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	i := r.Info()
	var topics []plugin.Topic
	for _, x := range i.Topics {
		topics = append(topics, x.Topic)
	}
	custom := map[string]string{}
	for k, v := range i.CustomData {
		if !strings.HasPrefix(k, "gobag.") {
			custom[k] = v
		}
	}
	text, err := json.Marshal(map[string]any{"topics": topics, "custom": custom, "start": i.Start, "end": i.End, "messages": oddMessages(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// convert drops messages, mixes their order or gets the duration wrong.
func TestComplaint10ConvertCounts(t *testing.T) { t.Run("split", TestOddConvertSplit) }

// SIGTERM, of docker or systemd, leaves an incomplete bag.
func TestComplaint19SIGTERM(t *testing.T) {
	domain := testDomain(t)
	talk(t, domain)
	dir := filepath.Join(t.TempDir(), "bag")
	p := launch(t, nil, "record", "-a", "-o", dir, "--domain-id", strconv.Itoa(domain), "--localhost", "--control-socket", "off")
	p.await("Subscribed to topic")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 0 && code != 3 {
		t.Errorf("exit code %d: %s", code, p.err.String())
	}
	if i := oddInfo(t, dir); i.CutOff || len(i.Warnings) > 0 {
		t.Errorf("%+v", i)
	}
}

// Start and duration are wrong after a split.
func TestComplaint23StartAfterSplit(t *testing.T) { TestOddStartAndDuration(t) }

// Durations are shown wrong.
func TestComplaint24Durations(t *testing.T) {
	for _, x := range []struct {
		stamps []int64
		want   string
	}{
		{[]int64{1_000_000_000}, "0.000000000s"},
		{[]int64{1_000_000_000, 1_000_000_005}, "0.000000005s"},
		{[]int64{7, 7, 7}, "0.000000000s"},
		{[]int64{0, 61_050_000_000}, "61.050000000s"},
	} {
		if r := cli(nil, "info", writeStamps(t, x.stamps...)); r.code != 0 || !strings.Contains(r.out, "Duration:          "+x.want+"\n") {
			t.Errorf("%v: %s%s", x.stamps, r.out, r.errOut)
		}
	}
}

// Bags of newer distributions do not open on older ones.
func TestComplaint25OlderDistributions(t *testing.T) {
	dir := t.TempDir()
	src, out := filepath.Join(dir, "src"), filepath.Join(dir, "out")
	flagBag(t, src)
	if r := cli(nil, "convert", src, "-o", out, "--compat", "humble", "-s", "sqlite3"); r.code != 0 {
		t.Fatal(r.errOut)
	}
	if i := oddInfo(t, out); i.Version != 5 || i.Files[0].Format != "schema 3" {
		t.Errorf("%+v", i)
	}
	t.Run("schema 1", TestOddNoQoSColumn)
	t.Run("unknown version", TestOddVersion)
}

// Bags of other tools do not open: null custom data, empty quality of service.
func TestComplaint26OtherTools(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "src")
	flagBag(t, dir)
	path := filepath.Join(dir, bag.MetadataFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), "  custom_data:")
	if err := os.WriteFile(path, []byte(head+"  custom_data: null\n  ros_distro: null\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if i := oddInfo(t, dir); i.Messages != 26 {
		t.Errorf("%+v", i)
	}
	t.Run("QoS", TestOddQoS)
}

// A renamed bag directory, or paths with the directory in front, break the bag.
func TestComplaint27Paths(t *testing.T) { TestOddPaths(t) }

// Bags cannot be filtered, cut or merged from the command line.
func TestComplaint29Forms(t *testing.T) { TestForms(t) }

// Regular expressions differ by place, and quotes in names break them.
func TestComplaint30Expressions(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	w, err := bag.Create(t.Context(), src, bag.WriterOptions{StorageID: "sqlite3", SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/o'brien", `/a"b`, "/cam1", "/cam22", "/tf"} {
		id, err := w.AddTopic(plugin.Topic{Name: name, Type: "std_msgs/msg/String"})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: 5, Data: []byte{0, 1, 0, 0}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for i, x := range []struct {
		flags []string
		want  int
	}{
		{[]string{"--exclude-topics", "/o'brien"}, 4},
		{[]string{"-e", `^/cam\d+$`}, 2},
		{[]string{"-e", `^/(?!cam)`}, 3}, // what ECMAScript has and POSIX does not
		{[]string{"-x", `"`}, 4},
		{[]string{"--exclude-services", "/none"}, 5}, // upstream: a syntax error of SQL
	} {
		out := filepath.Join(dir, strconv.Itoa(i))
		if r := cli(nil, append([]string{"filter", src, "-o", out}, x.flags...)...); r.code != 0 || int(oddInfo(t, out).Messages) != x.want {
			t.Errorf("%v: exit %d: %s%s", x.flags, r.code, r.out, r.errOut)
		}
	}
}

// Compressed bags cannot be reindexed.
func TestComplaint31CompressedReindex(t *testing.T) {
	dir := t.TempDir()
	src, out := filepath.Join(dir, "src"), filepath.Join(dir, "out")
	flagBag(t, src)
	if r := cli(nil, "convert", src, "-o", out, "-s", "sqlite3", "--compression-mode", "file", "--compression-format", "zstd"); r.code != 0 {
		t.Fatal(r.errOut)
	}
	removeYAML(t, out)
	if text := oddReindex(t, out); !strings.Contains(text, "message_count: 26") || !strings.Contains(text, "out_0.db3.zstd") {
		t.Error(text)
	}
	oddPlay(t, out, 26)
}

// A bag with several serialization formats is refused as a whole.
func TestComplaint33MixedFormats(t *testing.T) { TestOddFormatsAndNames(t) }

// "No plugin could open it", without a reason.
func TestComplaint36Reasons(t *testing.T) { TestOddForeignFiles(t) }

// An unfinished MCAP file is only an "unexpected EOF".
func TestComplaint37Truncated(t *testing.T) { TestOddTruncated(t) }

// Files without an index of messages read as empty.
func TestComplaint38NoIndex(t *testing.T) {
	dir := t.TempDir()
	src, out := filepath.Join(dir, "src"), filepath.Join(dir, "out")
	flagBag(t, src)
	config := writeFile(t, dir, "mcap.yaml", "noMessageIndex: true\n")
	if r := cli(nil, "convert", src, "-o", out, "-s", "mcap", "--storage-config-file", config); r.code != 0 {
		t.Fatal(r.errOut)
	}
	if a, b := oddMessages(t, src), oddMessages(t, out); len(b) != 26 || len(a) != len(b) {
		t.Errorf("%d messages", len(b))
	}
}

// A database in WAL mode does not open on read-only media.
func TestComplaint39ReadOnlyWAL(t *testing.T) { TestOddWAL(t) }

// File names carry no time: those of Lyrical do, and are read.
func TestComplaint40NamesWithTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "src")
	flagBag(t, dir)
	removeYAML(t, dir)
	if err := os.Rename(filepath.Join(dir, "src_0.mcap"), filepath.Join(dir, "0_src_2026_05_01-10_00_00.mcap")); err != nil {
		t.Fatal(err)
	}
	if text := oddReindex(t, dir); !strings.Contains(text, "0_src_2026_05_01-10_00_00.mcap") || !strings.Contains(text, "message_count: 26") {
		t.Error(text)
	}
}

// Names that are not ASCII crash tools.
func TestComplaint41Names(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "src")
	makeBagOf(t, dir, plugin.Topic{Name: "/größe\xff\x1b[31m", Type: "std_msgs/msg/String"}, func(w *bag.Writer, id plugin.TopicID) {
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: 5, Data: []byte{0, 1, 0, 0}}}); err != nil {
			t.Fatal(err)
		}
	})
	r := cli(nil, "info", dir)
	if r.code != 0 || !strings.Contains(r.out, `/größe\xff\x1b[31m`) || strings.Contains(r.out, "\x1b") {
		t.Errorf("exit %d: %q%s", r.code, r.out, r.errOut)
	}
}
