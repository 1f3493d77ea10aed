package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
)

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	flagBag(t, src)
	good := writeFile(t, dir, "good.yaml", "convert:\n  topics: [/a]\n  custom-data: {robot: r1, site: north}\n  storage: sqlite3\nrecord:\n  all: true\n  max-bag-size: 1GB\n")
	if r := cli(nil, "config", "check", good); r.code != 0 || !strings.Contains(r.out, "5 settings for 2 verbs") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	if r := cli(nil, "convert", src, "-o", one, "--config", good); r.code != 0 {
		t.Fatal(r.errOut)
	}
	if i := oddInfo(t, one); i.StorageID != "sqlite3" || i.Messages != 10 || i.CustomData["robot"] != "r1" {
		t.Errorf("%+v", i)
	}
	if r := cli(nil, "convert", src, "-o", two, "--config", good, "-s", "mcap", "--topics", "/b"); r.code != 0 { // the command line wins
		t.Fatal(r.errOut)
	}
	if i := oddInfo(t, two); i.StorageID != "mcap" || i.count("/b") != 10 || i.Messages != 10 {
		t.Errorf("%+v", i)
	}
	for name, x := range map[string][2]string{
		"verb":      {"film:\n  all: true\n", "film"},
		"key":       {"record:\n  max-bag-siz: 1\n", `line 2: record has no key "max-bag-siz" (there is: `},
		"value":     {"record:\n  max-bag-size: much\n", "line 2: record.max-bag-size"},
		"list":      {"record:\n  output: [a, b]\n", "takes one value"},
		"twice":     {"record:\n  all: true\n  all: false\n", "twice"},
		"no map":    {"- record\n", "sections by verb"},
		"no yaml":   {"record: {\n", "yaml"},
		"two docs":  {"record:\n  all: true\n---\nplay:\n", "more than one"},
		"of itself": {"record:\n  config: x\n", "no key"},
		"missing":   {"", ""},
	} {
		path := filepath.Join(dir, "none.yaml")
		if x[0] != "" {
			path = writeFile(t, dir, "bad.yaml", x[0])
		}
		for _, words := range [][]string{{"config", "check", path}, {"record", "-a", "--config", path, "-o", filepath.Join(dir, "never")}} {
			if r := cli(nil, words...); r.code == 0 || !strings.Contains(r.errOut, x[1]) {
				t.Errorf("%s: %v: exit %d, %s", name, words, r.code, r.errOut)
			}
		}
	}
}

// Every flag of record has a key.
func TestDeployedConfig(t *testing.T) {
	if r := cli(nil, "config", "check", "../../deploy/gobag.yaml"); r.code != 0 {
		t.Error(r.errOut)
	}
}

func TestForms(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	flagBag(t, src)
	out := func(n string) string { return filepath.Join(dir, n) }
	if r := cli(nil, "filter", src, "-o", out("f"), "--exclude-topics", "/a"); r.code != 0 || oddInfo(t, out("f")).Messages != 16 {
		t.Error(r.errOut)
	}
	if r := cli(nil, "cut", src, "-o", out("c"), "--start", "+0.25", "--end", "+0.55"); r.code != 0 || oddInfo(t, out("c")).count("/a") != 3 {
		t.Error(r.errOut)
	}
	if r := cli(nil, "merge", src, out("f"), "-o", out("m")); r.code != 0 || oddInfo(t, out("m")).Messages != 42 {
		t.Error(r.errOut)
	}
	for _, words := range [][]string{{"filter", src, "-o", out("x")}, {"filter", src, src, "-o", out("x"), "--topics", "/a"}, {"merge", src, "-o", out("x")},
		{"cut", src, "-o", out("x")}, {"cut", src, "--start", "+1"}, {"merge", src, src, "-o", "x.yaml"}} {
		if r := cli(nil, words...); r.code != 2 || exists(out("x")) {
			t.Errorf("%v: exit %d, %s", words, r.code, r.errOut)
		}
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	flagBag(t, src)
	if r := cli(nil, "check", src); r.code != 0 || !strings.Contains(r.out, "nothing is wrong") || !strings.Contains(r.out, "26 messages on 5 topics") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	bad := func(name, want string, change func(dir string)) {
		t.Helper()
		d := filepath.Join(dir, name)
		copyOdd(t, src, d)
		change(d)
		if r := cli(nil, "check", d); r.code != 1 || !strings.Contains(r.out, want) {
			t.Errorf("%s: exit %d, no %q: %s%s", name, r.code, want, r.out, r.errOut)
		}
	}
	file := func(d string) string { return filepath.Join(d, "src_0.mcap") }
	bad("counts", "messages", func(d string) { rewriteYAML(t, d, "message_count: 26", "message_count: 27") })
	bad("cut off", "cut off", func(d string) {
		fi, err := os.Stat(file(d))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(file(d), fi.Size()/2); err != nil {
			t.Fatal(err)
		}
	})
	bad("flipped", "damaged", func(d string) {
		b, err := os.ReadFile(file(d))
		if err != nil {
			t.Fatal(err)
		}
		at := strings.Index(string(b), "message 5")
		b[at] ^= 0x40
		if err := os.WriteFile(file(d), b, 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

// What a bag says of its types and writers is compared with what is in it.
func TestCheckContents(t *testing.T) {
	def, err := msg.NewFinder(msg.Options{}).Find("std_msgs/msg/String", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "bag")
	makeBagOf(t, dir, plugin.Topic{Name: "/a", Type: "std_msgs/msg/String", TypeHash: msg.HashPrefix + strings.Repeat("ab", 32), Sources: []string{"w"},
		Definition: plugin.Definition{Encoding: def.Encoding, Text: def.Text}}, func(w *bag.Writer, id plugin.TopicID) {
		e := cdr.NewEncoder(nil, cdr.CDRLE)
		e.Str("x")
		for _, seq := range []uint64{1, 2, 5, 5} {
			if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(seq) * 1e9, Source: 1, Seq: seq, Data: e.Bytes()}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: 9e9, Data: []byte("no")}}); err != nil {
			t.Fatal(err)
		}
		w.SetCustomData(bag.KeyLedger, bag.Ledger{Topics: map[string]bag.TopicLedger{"/a": {Received: 7, Recorded: 5, Lost: bag.Lost{Queue: 1}}}}.Encode())
	})
	r := cli(nil, "check", dir)
	for _, want := range []string{"its definition has the hash", "1 payloads are no CDR", "7 received, 6 accounted for", "2 sequence numbers are missing, the ledger explains 1",
		"1 messages have a sequence number that came before", "1 messages were lost while recording"} {
		if r.code != 1 || !strings.Contains(r.out, want) {
			t.Errorf("exit %d, no %q: %s%s", r.code, want, r.out, r.errOut)
		}
	}
}

// makeBagOf makes a bag with one topic.
func makeBagOf(t *testing.T, dir string, topic plugin.Topic, fill func(*bag.Writer, plugin.TopicID)) {
	t.Helper()
	w, err := bag.Create(t.Context(), dir, bag.WriterOptions{StorageID: "mcap", SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(topic)
	if err != nil {
		t.Fatal(err)
	}
	fill(w, id)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOffload(t *testing.T) {
	dir := t.TempDir()
	src, to := filepath.Join(dir, "src"), filepath.Join(dir, "to")
	flagBag(t, src)
	run := func(want string, words ...string) {
		t.Helper()
		if r := cli(nil, append([]string{"offload", src, "--to", to}, words...)...); r.code != 0 || !strings.Contains(r.out, want) {
			t.Fatalf("exit %d: %s%s", r.code, r.out, r.errOut)
		}
	}
	run("2 files copied") // the storage and metadata.yaml
	run("1 deleted here", "--delete")
	copied := filepath.Join(to, "src")
	if i := oddInfo(t, copied); i.Messages != 26 {
		t.Errorf("%+v", i)
	}
	if exists(filepath.Join(src, "src_0.mcap")) {
		t.Error("the file is there still")
	}
	run("2 were there already", "--delete") // what is gone was offloaded before; nothing is missed
	sums, err := os.ReadFile(filepath.Join(copied, sumsFile))
	if err != nil || !strings.Contains(string(sums), "  src_0.mcap\n") {
		t.Errorf("%s %v", sums, err)
	}

	// A copy that suffered is found, and the file stays.
	flagBag(t, filepath.Join(dir, "again"))
	src = filepath.Join(dir, "again")
	run("2 files copied")
	file := filepath.Join(to, "again", "again_0.mcap")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[100] ^= 1
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := cli(nil, "offload", src, "--to", to, "--delete"); r.code != 1 || !strings.Contains(r.errOut, "damaged") || !exists(filepath.Join(src, "again_0.mcap")) {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
}

// A recording is steered over its socket: paused, split, asked for its state, ended; and offloaded meanwhile.
func TestCtl(t *testing.T) {
	domain := testDomain(t)
	flagRobot(t, domain)
	dir := t.TempDir()
	env := []string{"XDG_RUNTIME_DIR=" + dir}
	out, to := filepath.Join(dir, "bag"), filepath.Join(dir, "to")
	if r := cli(env, "ctl", "status"); r.code != 1 || !strings.Contains(r.errOut, "nothing of this user") {
		t.Errorf("exit %d: %s", r.code, r.errOut)
	}
	p := launch(t, env, "record", "--topics", plainTopic, latchedTopic, "-s", "mcap", "-o", out, "--domain-id", strconv.Itoa(domain), "--localhost")
	p.await("All requested topics are subscribed")
	ctl := func(want string, words ...string) {
		t.Helper()
		if r := cli(env, append([]string{"ctl"}, words...)...); r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("ctl %v: exit %d: %s%s", words, r.code, r.out, r.errOut)
		}
	}
	time.Sleep(300 * time.Millisecond)
	ctl("", "split")
	ctl(`"paused": true`, "pause")
	ctl(`"paused": true`, "status")
	ctl(`"paused": false`, "toggle")
	ctl("split", "help")
	if r := cli(env, "ctl", "snapshot"); r.code != 1 || !strings.Contains(r.errOut, "snapshot mode is off") {
		t.Errorf("exit %d: %s", r.code, r.errOut)
	}
	if r := cli(env, "ctl", "dance"); r.code != 1 || !strings.Contains(r.errOut, "unknown command") {
		t.Errorf("exit %d: %s", r.code, r.errOut)
	}
	if r := cli(nil, "offload", out, "--to", to); r.code != 0 || exists(filepath.Join(to, "bag", bag.MetadataFile)) || !exists(filepath.Join(to, "bag", "bag_0.mcap")) {
		t.Errorf("while it is recorded: exit %d: %s%s", r.code, r.out, r.errOut)
	}
	time.Sleep(300 * time.Millisecond)
	ctl("", "stop")
	if r := p.result(); r.code != 0 {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	if i := oddInfo(t, out); len(i.Files) != 2 || i.count(latchedTopic) != 1 {
		t.Errorf("%+v", i)
	}
	if r := cli(nil, "check", out); r.code != 0 {
		t.Errorf("%s%s", r.out, r.errOut)
	}
	if r := cli(nil, "offload", out, "--to", to); r.code != 0 || !exists(filepath.Join(to, "bag", bag.MetadataFile)) {
		t.Errorf("after it: exit %d: %s%s", r.code, r.out, r.errOut)
	}
}

func TestTrigger(t *testing.T) {
	def, err := msg.NewFinder(msg.Options{}).Find("diagnostic_msgs/msg/DiagnosticArray", "")
	if err != nil {
		t.Skip(err) // not in the built-in table
	}
	payload := func(level uint8, name string) []byte {
		e := cdr.NewEncoder(nil, cdr.CDRLE)
		e.Int32(5)
		e.Uint32(6)
		e.Str("frame")
		e.SeqLen(2)
		for _, l := range []uint8{0, level} {
			e.Uint8(l)
			e.Str(name)
			e.Str("message")
			e.Str("id")
			e.SeqLen(0)
		}
		return e.Bytes()
	}
	for text, want := range map[string]bool{
		"/diagnostics level>=2": true, "/diagnostics level > 2": false, "/diagnostics status.level == 2": true, "/diagnostics level<0": false,
		"/diagnostics name == arm": true, "diagnostics name!=arm": false, "/diagnostics header.stamp.sec >= 5": true, "/diagnostics nothing==0": false,
	} {
		tr, err := parseTrigger(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if tr.Topic != "/diagnostics" {
			t.Errorf("%s: topic %s", text, tr.Topic)
		}
		d := plugin.Definition{Encoding: def.Encoding, Text: def.Text}
		if got := tr.Match("diagnostic_msgs/msg/DiagnosticArray", d, payload(2, "arm")); got != want {
			t.Errorf("%s: %v", text, got)
		}
		if tr.Match("diagnostic_msgs/msg/DiagnosticArray", plugin.Definition{}, payload(2, "arm")) || tr.Match("diagnostic_msgs/msg/DiagnosticArray", d, []byte{0, 1, 0, 0, 9}) {
			t.Errorf("%s: matches what cannot be read", text)
		}
	}
	for _, text := range []string{"", "/a", "/a level", "/a level>", "/a >2", "/a name>x"} {
		if _, err := parseTrigger(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// A condition on a topic takes a snapshot, with what came before and after.
func TestSnapshotByTrigger(t *testing.T) {
	domain := testDomain(t)
	flagRobot(t, domain)
	dir := t.TempDir()
	out := filepath.Join(dir, "snaps")
	r := cli([]string{"XDG_RUNTIME_DIR=" + dir}, "record", "--topics", simTopic, plainTopic, latchedTopic, "--snapshot-mode", "--post-roll", "0.3", "--trigger", "/clock sec>=1040",
		"-o", out, "--domain-id", strconv.Itoa(domain), "--localhost", "--duration", "2.5")
	if r.code != 0 || !strings.Contains(r.out, "snapshot "+out) {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.errOut)
	}
	found, err := filepath.Glob(filepath.Join(out, "*", bag.MetadataFile))
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	i := oddInfo(t, filepath.Dir(found[0]))
	if i.count(plainTopic) < 5 || i.count(latchedTopic) != 1 || i.CustomData[bag.KeyTrigger] != "/clock sec>=1040" {
		t.Errorf("%+v", i)
	}
}

func TestSystemd(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "notify")
	got := listenUnixgram(t, socket)
	a := newApp(nil, nil, os.Stderr, func(k string) string {
		return map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "30000"}[k]
	})
	stop := notifySystemd(a, func() bool { return true })
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if s := got(); s != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
	stop()
	for s := ""; s != "STOPPING=1"; {
		if s = got(); s == "" {
			t.Fatal("it does not say that it stops")
		}
	}
}
