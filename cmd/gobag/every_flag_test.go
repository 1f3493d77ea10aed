package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
)

// The flags of ros2 bag 0.34 by verb (docs/rosbag2-differences.md names the few that are refused). Every one of them is in at
// least one row of the tables below, each of which runs the verb and looks at what came out.
var ros2Flags = map[string]string{
	"record": `-o --output -s --storage --topics --static-topics-path --services --actions --topic-types -a --all --all-topics --all-services
		--all-actions -e --regex -x --exclude-regex --exclude-topics --exclude-services --exclude-actions --exclude-topic-types
		--include-unpublished-topics --include-hidden-topics --ignore-leaf-topics --no-discovery -p --polling-interval
		--qos-profile-overrides-path -f --serialization-format -b --max-bag-size -d --max-bag-duration --max-bag-files --max-cache-size
		--max-cache-duration --snapshot-mode --repeat-transient-local --repeat-all-transient-local --start-paused --disable-keyboard-controls
		--use-sim-time --node-name --custom-data --log-level --stats_max_publishing_rate --storage-config-file --storage-preset-profile
		--compression-mode --compression-format --compression-queue-size --compression-threads --compression-threads-priority`,
	"play": `-i --input -s --storage --read-ahead-queue-size -r --rate --topics --services --actions -e --regex -x --exclude-regex
		--exclude-topics --exclude-services --exclude-actions --qos-profile-overrides-path -l --loop -m --remap --storage-config-file --clock
		--clock-topics --clock-topics-all -d --delay --playback-duration --playback-until-sec --playback-until-nsec --start-offset -p
		--start-paused --disable-keyboard-controls --wait-for-all-acked --disable-loan-message --publish-service-requests
		--send-actions-as-client --service-requests-source --message-order --log-level --progress-bar-update-rate
		--progress-bar-separation-lines`,
	"info":    `-s --storage -t --topic-name -v --verbose --sort`,
	"convert": `-i --input --input-options -o --output-options`,
	"reindex": `-s --storage`,
	"burst": `-s --storage --read-ahead-queue-size --topics --services --actions --qos-profile-overrides-path -m --remap
		--storage-config-file --start-offset -n --num-messages`,
	"list": `-v --verbose`,
}

// flagRow is a run of a verb with flags, and what must come of it.
type flagRow struct {
	words string
	check func(t *testing.T, r result, dir string)
}

// coverFlags fails where the rows of a verb leave out a flag of ros2 bag.
func coverFlags(t *testing.T, verb string, rows []flagRow) {
	t.Helper()
	used := map[string]bool{}
	for _, r := range rows {
		for w := range strings.FieldsSeq(r.words) {
			name, _, _ := strings.Cut(w, "=")
			used[name] = true
		}
	}
	for f := range strings.FieldsSeq(ros2Flags[verb]) {
		if !used[f] {
			t.Errorf("%s %s is in no row", verb, f)
		}
	}
}

// runRows runs the rows, a few at a time. In their words DIR is a directory of the row's own, BAG the bag to write in it, and
// what vars has.
func runRows(t *testing.T, verb string, rows []flagRow, base []string, vars map[string]string) {
	slots := make(chan struct{}, 6)
	for i, row := range rows {
		t.Run(fmt.Sprintf("%s_%02d", verb, i), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			dir := t.TempDir()
			words := append([]string{verb}, base...)
			for w := range strings.FieldsSeq(row.words) {
				w = strings.ReplaceAll(strings.ReplaceAll(w, "BAG", filepath.Join(dir, "bag")), "DIR", dir)
				for name, value := range vars {
					w = strings.ReplaceAll(w, name, value)
				}
				words = append(words, strings.ReplaceAll(w, "~", " "))
			}
			r := cli([]string{"XDG_RUNTIME_DIR=" + dir}, words...)
			row.check(t, r, filepath.Join(dir, "bag"))
			if t.Failed() {
				t.Logf("gobag %s\nexit %d\n%s\n%s", strings.Join(words, " "), r.code, r.out, r.errOut)
			}
		})
	}
}

// recorded wants exactly these topics with messages in the bag.
func recorded(topics ...string) func(*testing.T, result, string) {
	return func(t *testing.T, r result, dir string) {
		t.Helper()
		got := topicsWithMessages(t, r, dir)
		slices.Sort(topics)
		if !slices.Equal(got, topics) {
			t.Errorf("recorded are %v, want %v", got, topics)
		}
	}
}

// topicsWithMessages returns the topics that have messages.
func topicsWithMessages(t *testing.T, r result, dir string) []string {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d: %s", r.code, r.errOut)
	}
	n := counts(t, dir)
	maps.DeleteFunc(n, func(_ string, c uint64) bool { return c == 0 })
	return slices.Sorted(maps.Keys(n))
}

// said wants an exit code and a text in what was printed.
func said(code int, text string) func(*testing.T, result, string) {
	return func(t *testing.T, r result, _ string) {
		t.Helper()
		if r.code != code || !strings.Contains(r.out+r.errOut, text) {
			t.Errorf("exit code %d without %q", r.code, text)
		}
	}
}

// infoHas wants a text in what info -v says of the bag.
func infoHas(texts ...string) func(*testing.T, result, string) {
	return func(t *testing.T, r result, dir string) {
		t.Helper()
		if r.code != 0 {
			t.Fatalf("exit code %d: %s", r.code, r.errOut)
		}
		i := cli(nil, "info", "-v", dir)
		for _, text := range texts {
			if i.code != 0 || !strings.Contains(i.out, text) {
				t.Errorf("info has no %q:\n%s%s", text, i.out, i.errOut)
			}
		}
	}
}

// The topics of flagRobot.
const (
	plainTopic, otherTopic, hiddenTopic = "/plain", "/other", "/_hidden"
	latchedTopic, usedTopic, simTopic   = "/latched", "/used", "/clock"
	addEvents, fibStatus                = "/add/_service_event", "/fib/_action/status"
)

// flagRobot publishes a bit of everything in a domain until the test ends.
func flagRobot(t *testing.T, domain int) {
	t.Helper()
	open := func(name string) *ros2.Node {
		n, err := ros2.New(ros2.Options{Domain: domain, Range: ros2.RangeLocalhost, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	node, other := open("robot"), open("other")
	for _, name := range []string{usedTopic, "/nobody_publishes"} {
		if _, err := other.Subscribe(ros.Topic{Name: name, Type: "std_msgs/msg/String"}, ros.DefaultQoS(), func(s ros.Sample) { s.Release() }); err != nil {
			t.Fatal(err)
		}
	}
	text := cdr.NewEncoder(nil, cdr.CDRLE)
	text.Str("hello")
	var pubs []ros.Publisher
	for _, x := range [][2]string{{plainTopic, "std_msgs/msg/String"}, {otherTopic, "std_msgs/msg/UInt8MultiArray"}, {hiddenTopic, "std_msgs/msg/String"},
		{usedTopic, "std_msgs/msg/String"}, {addEvents, "example_interfaces/srv/AddTwoInts_Event"}, {fibStatus, "action_msgs/msg/GoalStatusArray"},
		{simTopic, "rosgraph_msgs/msg/Clock"}, {latchedTopic, "std_msgs/msg/String"}} {
		q := ros.DefaultQoS()
		if x[0] == latchedTopic {
			q.Durability, q.Depth = ros.TransientLocal, 1
		}
		p, err := node.Advertise(ros.Topic{Name: x[0], Type: x[1]}, q)
		if err != nil {
			t.Fatal(err)
		}
		pubs = append(pubs, p)
	}
	if err := pubs[len(pubs)-1].Publish(text.Bytes(), time.Now().UnixNano()); err != nil { // once
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for sec := int32(1000); ; sec++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, p := range pubs[:len(pubs)-1] {
				e := cdr.NewEncoder(nil, cdr.CDRLE)
				switch p.Topic().Name {
				case simTopic:
					e.Int32(sec)
					e.Uint32(0)
				case otherTopic:
					e.Raw(make([]byte, 2000))
				default:
					e.Str("hello")
				}
				_ = p.Publish(e.Bytes(), time.Now().UnixNano()) // closed at the end
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		node.Close()
		other.Close()
	})
}

// writeFile writes a small file of the row's variables.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryRecordFlag(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("takes half a minute, more with the race detector")
	}
	domain := testDomain(t)
	flagRobot(t, domain)
	files := t.TempDir()
	vars := map[string]string{
		"STATIC":  writeFile(t, files, "static.yaml", "static_topics_and_types_list:\n  - [/plain, std_msgs/msg/String]\n"),
		"QOS":     writeFile(t, files, "qos.yaml", "/latched:\n  durability: volatile\n"),
		"STORAGE": writeFile(t, files, "mcap.yaml", "compression: Zstd\n"),
	}
	topics := []string{plainTopic, otherTopic, usedTopic, simTopic, latchedTopic}
	all := append(slices.Clone(topics), addEvents, fibStatus)
	mcap := func(t *testing.T, r result, dir string) {
		recorded(plainTopic)(t, r, dir)
		if _, err := os.Stat(filepath.Join(dir, "bag_0.mcap")); err != nil {
			t.Error(err)
		}
	}
	split := func(files, most int) func(*testing.T, result, string) {
		return func(t *testing.T, r result, dir string) {
			t.Helper()
			var j jsonInfo = oddInfo(t, dir)
			if r.code != 0 || len(j.Files) < files || len(j.Files) > most {
				t.Errorf("%d files, want %d to %d", len(j.Files), files, most)
			}
		}
	}
	rows := []flagRow{
		{"-a -o BAG", recorded(all...)},
		{"--all --output BAG", recorded(all...)},
		{"-a --include-hidden-topics -o BAG", recorded(append(slices.Clone(all), hiddenTopic)...)},
		{"--all-topics -o BAG", recorded(topics...)},
		{"--all-services -o BAG", recorded(addEvents)},
		{"--all-actions -o BAG", recorded(fibStatus)},
		{"--topics /plain /other -o BAG", recorded(plainTopic, otherTopic)},
		{"--services /add -o BAG", recorded(addEvents)},
		{"--actions /fib -o BAG", recorded(fibStatus)},
		{"--topic-types std_msgs/msg/String -o BAG", recorded(plainTopic, usedTopic, latchedTopic)},
		{"-e la -o BAG", recorded(plainTopic, latchedTopic)},
		{"--regex ^/(plain|add) -o BAG", recorded(plainTopic, addEvents)},
		{"-a -x la|cl -o BAG", recorded(otherTopic, usedTopic, addEvents, fibStatus)},
		{"-a --exclude-regex . -o BAG", said(3, "no message")},
		{"--all-topics --exclude-topics /plain /other -o BAG", recorded(usedTopic, simTopic, latchedTopic)},
		{"-a --exclude-services /add -o BAG", recorded(append(slices.Clone(topics), fibStatus)...)},
		{"-a --exclude-actions /fib -o BAG", recorded(append(slices.Clone(topics), addEvents)...)},
		{"-a --exclude-topic-types std_msgs/msg/String -o BAG", recorded(otherTopic, simTopic, addEvents, fibStatus)},
		{"--topics /plain /nobody_publishes --include-unpublished-topics -o BAG", func(t *testing.T, r result, dir string) {
			recorded(plainTopic)(t, r, dir)
			if _, there := counts(t, dir)["/nobody_publishes"]; !there {
				t.Error("the topic without publisher is not in the bag")
			}
		}},
		{"--static-topics-path STATIC -o BAG", recorded(plainTopic)},
		{"--topics /plain --no-discovery -o BAG", recorded(plainTopic)},
		{"--topics /plain -p 50 -o BAG", recorded(plainTopic)},
		{"--topics /plain --polling-interval 50 -o BAG", recorded(plainTopic)},
		{"--topics /plain /latched --qos-profile-overrides-path QOS -o BAG", recorded(plainTopic)}, // volatile: what was latched does not come
		{"--topics /plain -f cdr -o BAG", recorded(plainTopic)},
		{"--topics /plain --serialization-format json -o BAG", said(2, "cdr")},
		{"--topics /plain -s mcap -o BAG", mcap},
		{"--topics /plain --storage mcap --storage-config-file STORAGE -o BAG", mcap},
		{"--topics /plain --storage-preset-profile zstd_fast -s mcap -o BAG", mcap},
		{"--topics /other -b 20000 -s mcap -o BAG", split(3, 12)},
		{"--topics /other --max-bag-size 20000 -s mcap -o BAG", split(3, 12)},
		{"--topics /plain /latched -d 0.5 -o BAG", split(2, 5)},
		{"--topics /plain --max-bag-duration 0.5 -o BAG", split(2, 5)},
		{"--topics /plain -d 0.2 --max-bag-files 2 -o BAG", split(2, 2)},
		{"--topics /plain --max-cache-size 1000000 --max-cache-duration 5 -o BAG", recorded(plainTopic)},
		{"--topics /plain --snapshot-mode -o BAG", func(t *testing.T, r result, dir string) {
			if _, err := os.Stat(dir); r.code != 0 || err == nil || !strings.Contains(r.out, "not to be recorded") {
				t.Error("something was written that nobody asked for")
			}
		}},
		{"--topics /plain /latched --repeat-transient-local /latched=1 --repeat-all-transient-local 0 -d 0.4 -o BAG", func(t *testing.T, r result, dir string) {
			latchedInFiles(t, r, dir, true)
		}},
		{"--topics /plain /latched --repeat-all-transient-local -d 0.4 -o BAG", func(t *testing.T, r result, dir string) { latchedInFiles(t, r, dir, true) }},
		{"--topics /plain /latched --repeat-all-transient-local 0 -d 0.4 -o BAG", func(t *testing.T, r result, dir string) { latchedInFiles(t, r, dir, false) }},
		{"--topics /plain --start-paused --disable-keyboard-controls -o BAG", said(3, "not to be recorded")},
		{"--topics /plain --use-sim-time -o BAG", func(t *testing.T, r result, dir string) {
			if i := oddInfo(t, dir); r.code != 0 || i.Start == nil || *i.Start < 1000e9 || *i.Start > 1e13 {
				t.Errorf("recorded from %v on", i.Start)
			}
		}},
		{"--topics /plain --node-name its_name --stats_max_publishing_rate 10 -o BAG", recorded(plainTopic)},
		{"--topics /plain --custom-data a=b c=d e -o BAG", infoHas("a: b", "c: d")},
		{"--topics /plain --log-level error -o BAG", func(t *testing.T, r result, dir string) {
			recorded(plainTopic)(t, r, dir)
			if strings.Contains(r.errOut, "INFO") {
				t.Error("it says more than errors")
			}
		}},
		{"--topics /plain -s sqlite3 --compression-mode file --compression-format zstd --compression-threads 2 --compression-threads-priority 5 --compression-queue-size 2 -o BAG",
			func(t *testing.T, r result, dir string) {
				recorded(plainTopic)(t, r, dir)
				if _, err := os.Stat(filepath.Join(dir, "bag_0.db3.zstd")); err != nil {
					t.Error(err)
				}
			}},
	}
	leaf := flagRow{"--all-topics --ignore-leaf-topics --exclude-topics /clock -o BAG", recorded(usedTopic)}
	coverFlags(t, "record", append(slices.Clone(rows), leaf))
	base := []string{"--duration", "1.6", "--domain-id", strconv.Itoa(domain), "--localhost", "--min-free-space", "0", "--remote-control", "off"}
	dir := t.TempDir() // alone, since every other recorder is a subscriber
	r := cli([]string{"XDG_RUNTIME_DIR=" + dir}, slices.Concat([]string{"record"}, base, strings.Fields(strings.ReplaceAll(leaf.words, "BAG", filepath.Join(dir, "bag"))))...)
	leaf.check(t, r, filepath.Join(dir, "bag"))
	runRows(t, "record", rows, base, vars)
}

// latchedInFiles looks whether the latched topic is in every file of a bag that was split.
func latchedInFiles(t *testing.T, r result, dir string, want bool) {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("exit code %d", r.code)
	}
	i := oddInfo(t, dir)
	if len(i.Files) < 2 || i.count(latchedTopic) != 1 {
		t.Fatalf("%d files, the bag has %d messages of %s", len(i.Files), i.count(latchedTopic), latchedTopic)
	}
	last := oddInfo(t, filepath.Join(dir, i.Files[len(i.Files)-1].Path))
	if got := last.count(latchedTopic) == 1; got != want {
		t.Errorf("the last file has %d messages of %s", last.count(latchedTopic), latchedTopic)
	}
}

// flagBag makes a bag of 10 messages each on /a and /b in a second, and a few of a service, an action and /clock. The send
// times run backwards on /b.
func flagBag(t *testing.T, dir string) {
	t.Helper()
	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{StorageID: "mcap", SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	add := func(name, typ string) plugin.TopicID {
		id, err := w.AddTopic(plugin.Topic{Name: name, Type: typ})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	a, b := add("/a", "std_msgs/msg/String"), add("/b", "std_msgs/msg/String")
	others := []plugin.TopicID{add(addEvents, "example_interfaces/srv/AddTwoInts_Event"), add(fibStatus, "action_msgs/msg/GoalStatusArray"), add("/clock", "rosgraph_msgs/msg/Clock")}
	const start = 1_700_000_000_000_000_000
	for i := range int64(10) {
		e := cdr.NewEncoder(nil, cdr.CDRLE)
		e.Str(fmt.Sprint("message ", i))
		at := start + i*100e6
		ms := []plugin.Message{{Topic: a, RecvTime: at, SendTime: at, Data: e.Bytes()}, {Topic: b, RecvTime: at + 1, SendTime: start + (9-i)*100e6, Data: e.Bytes()}}
		if i%5 == 0 {
			for _, o := range others {
				ms = append(ms, plugin.Message{Topic: o, RecvTime: at + 2, Data: make([]byte, 60)})
			}
		}
		if err := w.Write(ms); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// played wants so many messages to have been played.
func played(n int, texts ...string) func(*testing.T, result, string) {
	return func(t *testing.T, r result, _ string) {
		t.Helper()
		if want := fmt.Sprintf("Played %d message", n); r.code != 0 || !strings.Contains(r.out, want) {
			t.Errorf("exit code %d without %q", r.code, want)
		}
		for _, text := range texts {
			if !strings.Contains(r.out+r.errOut, text) {
				t.Errorf("it does not say %q", text)
			}
		}
	}
}

func TestEveryPlayFlag(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("takes half a minute, more with the race detector")
	}
	domain := testDomain(t)
	files := t.TempDir()
	src := filepath.Join(files, "src")
	flagBag(t, src)
	vars := map[string]string{
		"SRC":     src,
		"QOS":     writeFile(t, files, "qos.yaml", "/a:\n  reliability: best_effort\n"),
		"STORAGE": writeFile(t, files, "empty.yaml", "{}\n"),
	}
	rows := []flagRow{
		{"SRC -r 20", played(26)},
		{"-i SRC mcap -i SRC --rate 20", played(52)},
		{"--input SRC --rate 20 --topics /a --services /none --actions /none", played(10, "service '/none' is not in the bag")},
		{"SRC -s mcap -r 20 --storage-config-file STORAGE", played(26)},
		{"SRC --storage mcap -r 20 --read-ahead-queue-size 1", played(26)},
		{"SRC -r 20 -e /a", played(10)},
		{"SRC -r 20 --regex /[ab]", played(20)},
		{"SRC -r 20 -x /[ab]", played(6)},
		{"SRC -r 20 --exclude-regex /.*", said(1, "no topic")},
		{"SRC -r 20 --exclude-topics /a", played(16)},
		{"SRC -r 20 --exclude-services /add --exclude-actions /fib", played(22)},
		{"SRC -r 20 --qos-profile-overrides-path QOS", played(26)},
		{"SRC -r 20 -m /a:=/x", played(26, "/x (from /a)")},
		{"SRC -r 20 --remap /b:=/x", played(26, "/x (from /b)")},
		{"SRC -r 20 --clock 100", played(24)}, // without that of the bag
		{"SRC -r 20 --clock", played(24)},
		{"SRC -r 20 --clock-topics /a", played(24)},
		{"SRC -r 20 --clock-topics-all", played(24)},
		{"SRC -r 20 -d 0.3", func(t *testing.T, r result, _ string) { playedFor(t, r, 26, 0.3) }},
		{"SRC -r 20 --delay 0.3", func(t *testing.T, r result, _ string) { playedFor(t, r, 26, 0.3) }},
		{"SRC -r 20 --playback-duration 0.45 --topics /a --services /none --actions /none", played(5)},
		{"SRC -r 20 --playback-until-sec 1700000000.25 --topics /a --services /none --actions /none", played(3)},
		{"SRC -r 20 --playback-until-nsec 1700000000250000000 --topics /a --services /none --actions /none", played(3)},
		{"SRC -r 20 --playback-until-nsec 1700000000250000000 --playback-duration 0.45 --topics /a --services /none --actions /none", played(5)}, // the later end
		{"SRC -r 20 --start-offset 0.75 --topics /a --services /none --actions /none", played(2)},
		{"SRC -r 20 --wait-for-all-acked 500", played(26)},
		{"SRC -r 20 --disable-loan-message --disable-keyboard-controls", played(26)},
		{"SRC -r 20 --message-order sent --topics /b --services /none --actions /none", played(10)},
		{"SRC -r 20 --log-level error --progress-bar-update-rate 0 --progress-bar-separation-lines 1", func(t *testing.T, r result, dir string) {
			played(26)(t, r, dir)
			if strings.Contains(r.errOut, "INFO") {
				t.Error("it says more than errors")
			}
		}},
		{"SRC -r 20 --publish-service-requests --service-requests-source client_introspection", played(26)},
		{"SRC -r 20 --send-actions-as-client", played(24)}, // without the status
	}
	own := []string{"-l", "--loop", "-p", "--start-paused"} // TestPlayLoopAndPause
	coverFlags(t, "play", append(slices.Clone(rows), flagRow{words: strings.Join(own, " ")}))
	runRows(t, "play", rows, []string{"--domain-id", strconv.Itoa(domain), "--localhost", "--allow-live"}, vars)
}

func playedFor(t *testing.T, r result, n int, least float64) {
	t.Helper()
	played(n)(t, r, "")
	m := regexp.MustCompile(`, in ([0-9.]+) s`).FindStringSubmatch(r.out)
	if m == nil {
		t.Fatal("it does not say how long it took")
	}
	if took, err := strconv.ParseFloat(m[1], 64); err != nil || took < least {
		t.Errorf("it took %s s", m[1])
	}
}

// --loop and --start-paused do not end by themselves: they are steered, by keyboard in pty tests and by ctl here.
func TestPlayLoopAndPause(t *testing.T) {
	domain := testDomain(t)
	src := filepath.Join(t.TempDir(), "src")
	flagBag(t, src)
	base := []string{"--domain-id", strconv.Itoa(domain), "--localhost", "--topics", "/a", "--services", "/none", "--actions", "/none"}
	for _, flag := range []string{"-l", "--loop"} {
		dir := t.TempDir()
		p := launch(t, []string{"XDG_RUNTIME_DIR=" + dir}, append([]string{"play", src, "-r", "10", flag}, base...)...)
		p.await("Playing again from the start")
		if r := cli([]string{"XDG_RUNTIME_DIR=" + dir}, "ctl", "stop"); r.code != 0 {
			t.Error(r.errOut)
		}
		if r := p.result(); r.code != 0 || !strings.Contains(r.out, "times from the start") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
		}
	}
	for _, flag := range []string{"-p", "--start-paused"} {
		dir := t.TempDir()
		env := []string{"XDG_RUNTIME_DIR=" + dir}
		p := launch(t, env, append([]string{"play", src, flag}, base...)...)
		p.await("Playback started")
		for _, c := range [][3]string{{"next", "", ""}, {"burst", "2", `"burst": 2`}, {"rate", "50", `"rate": 50`}, {"status", "", `"played": 3`}, {"seek", "+0.65", ""}, {"resume", "", `"paused": false`}} {
			words := []string{"ctl", c[0]}
			if c[1] != "" {
				words = append(words, c[1])
			}
			r := cli(env, words...)
			for end := time.Now().Add(2 * time.Second); c[0] == "status" && !strings.Contains(r.out, c[2]) && time.Now().Before(end); r = cli(env, words...) {
				time.Sleep(20 * time.Millisecond)
			}
			if r.code != 0 || !strings.Contains(r.out, c[2]) {
				t.Errorf("ctl %v: exit %d, %s%s", c, r.code, r.out, r.errOut)
			}
		}
		if r := p.result(); r.code != 0 || !strings.Contains(r.out, "Played 6 messages") { // three, and those at 0.7, 0.8 and 0.9 s
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
		}
	}
}

func TestEveryOtherFlag(t *testing.T) {
	if testing.Short() || underRace {
		t.Skip("takes a while")
	}
	domain := testDomain(t)
	files := t.TempDir()
	src := filepath.Join(files, "src")
	flagBag(t, src)
	vars := map[string]string{
		"SRC":     src,
		"QOS":     writeFile(t, files, "qos.yaml", "/a:\n  reliability: best_effort\n"),
		"STORAGE": writeFile(t, files, "empty.yaml", "{}\n"),
		"INPUTS":  writeFile(t, files, "in.yaml", "input_bags:\n  - uri: "+src+"\n"),
		"OUTPUTS": writeFile(t, files, "out.yaml", "output_bags:\n  - uri: "+filepath.Join(files, "one")+"\n    all_topics: true\n"),
		"OTHERS":  writeFile(t, files, "out2.yaml", "output_bags:\n  - uri: "+filepath.Join(files, "two")+"\n    topics: [/a]\n"),
	}
	info := []flagRow{
		{"SRC", said(0, "Topic: /a | Type: std_msgs/msg/String | Count: 10")},
		{"SRC -s mcap -t", said(0, "/a\n/b\n")},
		{"SRC --storage mcap --topic-name", said(0, "/a\n/b\n")},
		{"SRC -v", said(0, "Size Contribution")},
		{"SRC --verbose", said(0, "Size Contribution")},
		{"SRC --sort count", func(t *testing.T, r result, _ string) {
			if r.code != 0 || strings.Index(r.out, "/clock") > strings.Index(r.out, "Topic: /a") {
				t.Error("not by count")
			}
		}},
	}
	coverFlags(t, "info", info)
	convert := []flagRow{
		{"-i SRC mcap -o BAG", recorded("/a", "/b", "/clock", addEvents, fibStatus)},
		{"--input SRC --output-options OTHERS", said(0, "10 messages on 1 topic")},
		{"--input-options INPUTS -o OUTPUTS", said(0, "messages on 3 topics")},
	}
	coverFlags(t, "convert", convert)
	list := []flagRow{{"storage", said(0, "mcap")}, {"storage -v", said(0, "extension")}, {"compressor --verbose", said(0, "zstd")},
		{"decompressor", said(0, "zstd")}, {"converter", said(0, "cdr")}}
	coverFlags(t, "list", list)
	t.Run("group", func(t *testing.T) {
		runRows(t, "info", info, nil, vars)
		runRows(t, "convert", convert, nil, vars)
		runRows(t, "list", list, nil, vars)
	})
	reindex := []flagRow{{"SRC -s mcap", said(0, "26 messages")}, {"SRC --storage mcap", said(0, "26 messages")}}
	coverFlags(t, "reindex", reindex)
	for _, row := range reindex { // one after the other: they write the same file
		r := cli(nil, append([]string{"reindex"}, strings.Fields(strings.ReplaceAll(row.words, "SRC", src))...)...)
		row.check(t, r, "")
	}

	burst := []string{
		"SRC -n 3 -s mcap --storage-config-file STORAGE --topics /a",
		"SRC --num-messages 3 --storage mcap --services /add --actions /fib --qos-profile-overrides-path QOS",
		"SRC -n 3 --read-ahead-queue-size 1 -m /a:=/x --start-offset 0.1",
		"SRC -n 3 --remap /a:=/x",
	}
	var rows []flagRow
	for _, words := range burst {
		rows = append(rows, flagRow{words: words})
		for name, value := range vars {
			words = strings.ReplaceAll(words, name, value)
		}
		dir := t.TempDir()
		env := []string{"XDG_RUNTIME_DIR=" + dir}
		p := launch(t, env, append([]string{"burst", "--domain-id", strconv.Itoa(domain), "--localhost"}, strings.Fields(words)...)...)
		p.await("Playback started")
		var r result
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && !strings.Contains(r.out, `"played": 3`); time.Sleep(20 * time.Millisecond) {
			r = cli(env, "ctl", "status")
		}
		if !strings.Contains(r.out, `"played": 3`) || !strings.Contains(r.out, `"state": "paused"`) {
			t.Errorf("burst %s: %s%s", words, r.out, r.errOut)
		}
		if r := cli(env, "ctl", "stop"); r.code != 0 {
			t.Error(r.errOut)
		}
		if code := p.wait(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	coverFlags(t, "burst", rows)
}
