package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return p
	}
	lfs := file("x.db3", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
	qos := file("qos.yaml", "/a: {reliability: sometimes}\n")
	broken := file("broken.yaml", "a: [1\n")
	for _, c := range []struct {
		name string
		args string
		env  []string
		code int
		say  string // in the error line
	}{
		{"no verb", "", nil, 2, "no verb given"},
		{"unknown verb", "rekord", nil, 2, `did you mean "record"`},
		{"unknown flag", "record -a --nonsense", nil, 2, "record: unknown flag: --nonsense"},
		{"unknown short flag", "info -q x", nil, 2, "info: unknown shorthand flag: 'q'"},
		{"missing value", "record -a -o", nil, 2, "-o"},
		{"empty list", "record --topics -a", nil, 2, "--topics"},
		{"nothing to record", "record", nil, 2, "nothing to record"},
		{"exclude from nothing", "record --topics /a --exclude-topics /b", nil, 2, "--exclude-topics needs something to exclude from: -a, --all-topics"},
		{"exclude services from topics", "record --all-topics --exclude-services /b", nil, 2, "--exclude-services needs something"},
		{"exclude actions from services", "record --all-services --exclude-actions /b", nil, 2, "--exclude-actions needs something"},
		{"exclude an expression from names", "record --actions /a -x b", nil, 2, "--exclude-regex needs something"},
		{"bad service name", "record --services /a//b --domain-id 41 --localhost -o " + dir + "/n", nil, 2, "/a//b"},
		{"no directory of definitions", "record -a --msg-path " + dir + "/none -o " + dir + "/n", nil, 2, dir + "/none"},
		{"definitions in a file", "record -a --msg-path " + dir + " " + qos + " -o " + dir + "/n", nil, 2, "qos.yaml is not a directory"},
		{"bad size", "record -a -b lots", nil, 2, `"lots" is not a number of bytes`},
		{"bad time", "record -a --duration soon", nil, 2, `"soon" is not a span of time`},
		{"bad compat", "record -a --compat foxy", nil, 2, "auto, humble, jazzy"},
		{"bad level", "record -a --log-level loud", nil, 2, "debug, info, warn, error, fatal"},
		{"bad priority", "record -a --priority /a", nil, 2, "TOPIC=N"},
		{"bad storage", "record -a -s floppy", nil, 2, "floppy"},
		{"small split", "record -a -b 10", nil, 2, "at least"},
		{"bad domain", "record -a --domain-id 233 -o " + dir + "/n", nil, 2, "0..232"},
		{"bad regex", "record -e ( --domain-id 41 --localhost -o " + dir + "/n", nil, 2, "("},
		{"output exists", "record -a -o " + dir, nil, 1, "exists already"},
		{"bad qos file", "record -a -o " + dir + "/n --qos-profile-overrides-path " + qos, nil, 1, "reliability"},
		{"bad config file", "record -a -o " + dir + "/n --storage-config-file " + broken, nil, 1, "broken.yaml"},
		{"missing config file", "record -a -o " + dir + "/n --storage-config-file " + dir + "/none.yaml", nil, 1, "none.yaml"},
		{"zenoh", "record -a -o " + dir + "/n", []string{"RMW_IMPLEMENTATION=rmw_zenoh_cpp"}, 1, "Zenoh"},
		{"bad domain in environment", "record -a -o " + dir + "/n", []string{"ROS_DOMAIN_ID=x"}, 1, "ROS_DOMAIN_ID"},
		{"post-roll without snapshots", "record -a --post-roll 2", nil, 2, "--snapshot-mode"},
		{"files without a split", "record -a --max-bag-files 2", nil, 2, "-b or -d"},
		{"static file missing", "record --static-topics-path " + dir + "/none.yaml", nil, 1, "none.yaml"},
		{"serialization", "record -a -f json", nil, 2, "cdr"},
		{"play nothing", "play", nil, 2, "one bag"},
		{"play what is not there", "play " + dir + "/none", nil, 1, "does not exist"},
		{"bag swallowed by a list", "play --topics /a " + dir, nil, 2, "before the list flags"},
		{"bad rate", "play x -r 0", nil, 2, "--rate"},
		{"bad remap", "play x -m a=b", nil, 2, "OLD:=NEW"},
		{"info nothing", "info", nil, 2, "one bag"},
		{"info what is not there", "info " + dir + "/none", nil, 1, "does not exist"},
		{"info no bag", "info " + lfs, nil, 1, "git"},
		{"bad sort", "info x --sort size", nil, 2, "name, type, count"},
		{"list nothing", "list", nil, 2, "storage"},
		{"list unknown", "list plugins", nil, 2, "storage"},
		{"perf nothing", "perf", nil, 2, "record"},
		{"perf bad list", "perf record --instances x", nil, 2, `"x"`},
		{"perf bad size", "perf record --size 3", nil, 2, "size 3"},
		{"perf storage of nothing", "perf storage --target rocks", nil, 2, "rocks"},
		{"perf storage bad size", "perf storage --size x", nil, 2, "x"},
		{"perf insert into nothing", "perf insert --target rocks", nil, 2, "rocks"},
		{"perf blobs of nothing", "perf blobs --count 0", nil, 2, "count 0"},
		{"demo exists", "demo -o " + dir, nil, 1, "exists already"},
		{"version", "version", nil, 0, ""},
		{"help", "--help", nil, 0, ""},
		{"help of a verb", "record --help", nil, 0, ""},
		{"list storage", "list storage", nil, 0, ""},
		{"completion", "completion bash", nil, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := cli(c.env, strings.Fields(c.args)...)
			if r.code != c.code {
				t.Errorf("exit code %d, want %d\n%s%s", r.code, c.code, r.out, r.errOut)
			}
			checkPlain(t, r)
			if c.code == 0 {
				if r.errOut != "" || r.out == "" {
					t.Errorf("stdout %d bytes, stderr %q", len(r.out), r.errOut)
				}
				return
			}
			if r.out != "" {
				t.Errorf("stdout: %q", r.out)
			}
			var said []string
			for line := range strings.Lines(r.errOut) {
				if strings.HasPrefix(line, "[ERROR] [gobag]: ") {
					said = append(said, line)
				}
			}
			if len(said) != 1 || !strings.Contains(said[0], c.say) {
				t.Errorf("want one error line with %q, got %q", c.say, r.errOut)
			}
		})
	}
}

// checkPlain: without a terminal there is no escape code and no carriage return.
func checkPlain(t *testing.T, r result) {
	t.Helper()
	if strings.ContainsAny(r.out+r.errOut, "\x1b\r") {
		t.Errorf("escape codes without a terminal: %q %q", r.out, r.errOut)
	}
}

func TestListStorage(t *testing.T) {
	r := cli(nil, "list", "storage")
	if !strings.Contains(r.out, "sqlite3\n") {
		t.Errorf("%q", r.out)
	}
	r = cli(nil, "list", "storage", "-v")
	for _, want := range []string{"sqlite3\n", ".db3", "resilient:", "fast:", "small:", "none:", "send time"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := cli(nil, "completion", shell); r.code != 0 || !strings.Contains(r.out, "gobag") {
			t.Errorf("%s: code %d, %d bytes", shell, r.code, len(r.out))
		}
	}
	bag := filepath.Join(t.TempDir(), "bag")
	makeBag(t, bag, nil)
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"__complete", "record", "-s", ""}, "sqlite3"},
		{[]string{"__complete", "play", bag, "--topics", ""}, "/chatter"},
		{[]string{"__complete", "play", bag, "--exclude-services", ""}, "/add\n"},
		{[]string{"__complete", "play", bag, "--actions", ""}, "/fib\n"},
		{[]string{"__complete", "rec"}, "record"},
	} {
		if r := cli(nil, c.words...); r.code != 0 || !strings.Contains(r.out, c.want) {
			t.Errorf("%v: code %d: %s", c.words, r.code, r.out)
		}
	}
}
