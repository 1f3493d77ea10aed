//go:build linux

package interop_test

import (
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// secret is a topic of a type that no distribution of ROS has.
var secret = lab.Topic{Kind: lab.Reading, Name: "/meter/reading", Hz: 50}

// server is a publisher of secret that serves the type by <node>/get_type_description.
type server struct {
	*lab.Proc
	topics []lab.Topic
	hash   string
}

// serve starts a server of the vendor. It is the node /lab/meter.
func serve(t *testing.T, n *lab.Net, v lab.Vendor, options ...string) *server {
	t.Helper()
	return serveFiles(t, n, v, lab.SecretFiles, options...)
}

// serveFiles is serve with other files.
func serveFiles(t *testing.T, n *lab.Net, v lab.Vendor, files map[string]string, options ...string) *server {
	t.Helper()
	d, err := lab.WriteDefinitions(t.TempDir(), files, secret.Kind.Type())
	must(t, err)
	topic := secret
	topic.Hash = d.Hash[topic.Kind.Type()]
	topics := []lab.Topic{topic}
	p := publishAs(t, n, v, topics, append([]string{"--node", "/lab/meter:16", "--definitions", d.Dir}, options...)...)
	return &server{Proc: p, topics: topics, hash: topic.Hash}
}

// eachVendor runs a test with each of the two vendors, and with more.
func eachVendor(t *testing.T, test func(t *testing.T, n *lab.Net, v lab.Vendor), more ...lab.Vendor) {
	t.Parallel()
	needPeers(t)
	for _, v := range append([]lab.Vendor{lab.Cyclone, lab.Fast}, more...) {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			test(t, newNet(t), v)
		})
	}
}

// definitionText is the form in which rosbag2 keeps the definition of secret: that of the type, then what is in it, depth
// first and by name.
func definitionText(files map[string]string) string {
	text := strings.TrimSuffix(files["secret_msgs/msg/Reading.msg"], "\n")
	for _, name := range []string{"secret_msgs/Sample", "std_msgs/Header", "builtin_interfaces/Time"} {
		file := files[strings.Replace(name, "/", "/msg/", 1)+".msg"]
		text += "\n" + strings.Repeat("=", 80) + "\nMSG: " + name + "\n" + strings.TrimSuffix(file, "\n")
	}
	return text
}

// defined checks that a bag of secret has the definition, in the given text, and that a reader that knows nothing but that
// gets the values that were sent.
func defined(t *testing.T, dir string, s *server, text string) {
	t.Helper()
	if d := decoded(t, dir, s); d.Text != text {
		t.Errorf("the definition is %q, want %q", d.Text, text)
	}
}

// decoded is defined for whatever text, which it returns.
func decoded(t *testing.T, dir string, s *server) lab.StoredDefinition {
	t.Helper()
	_, err := lab.NodeReader()
	needs(t, err)
	d, messages, err := lab.DecodeNode[lab.SecretReading](dir, secret.Name)
	must(t, err)
	if d.Type != secret.Kind.Type() || d.Encoding != "ros2msg" || d.Hash != s.hash {
		t.Errorf("the bag has the definition %+v, want one of %s in ros2msg with hash %s", d, secret.Kind.Type(), s.hash)
	}
	if sent := lab.SentBy(s.Proc)[secret.Name].Count; sent == 0 || int64(len(messages)) != sent {
		t.Errorf("%d sent, %d decoded", sent, len(messages))
	}
	for i, m := range messages {
		if want := lab.MakeReading(uint32(i)); !reflect.DeepEqual(m.Value, want) {
			t.Fatalf("message %d is %+v, want %+v", i, m.Value, want)
		}
	}
	return d
}

// The definition of a type that no one here knows comes from the node that publishes it.
func TestRecordServedDefinition(t *testing.T) {
	eachVendor(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		rec := record(t, n, []lab.Topic{secret}, "-s", "sqlite3")
		s := serve(t, n, v, "--wait", "1", "--seconds", "2")
		must(t, s.Wait(patience))
		must(t, rec.Stop(patience))
		whole(t, rec.Dir, s.topics, lab.SentBy(s.Proc))
		defined(t, rec.Dir, s, definitionText(lab.SecretFiles))
		if text := rec.Stdout() + rec.Stderr(); strings.Contains(text, "without their definition") {
			t.Errorf("said of a definition that came: %q", text)
		}
	}, lab.FastSHM)
}

// What rosidl compiles into nodes is not always what the interface files say (see lab.Compiled). The definition that is recorded
// is the file's all the same, or, where that is cut off, made of the fields that the service describes beside it.
func TestRecordCompiledDefinitions(t *testing.T) {
	t.Parallel()
	needPeers(t)
	const reading, sample = "secret_msgs/msg/Reading.msg", "secret_msgs/msg/Sample.msg"
	change := func(files map[string]string, name, from, to string) map[string]string {
		files = maps.Clone(files)
		files[name] = strings.Replace(files[name], from, to, 1)
		return files
	}
	escaped := change(lab.SecretFiles, sample, "float64 value", "float64\tvalue")
	escaped = change(escaped, reading, "\"reading\" and the running number", "\"reading\" and the sample's number")
	cut := change(lab.SecretFiles, reading, "# What a meter reads", "# 計測器が読み取る値。単位は各サンプルに含まれる")
	for name, files := range map[string]map[string]string{"escaped": escaped, "cut": cut} {
		for _, v := range []lab.Vendor{lab.Cyclone, lab.Fast} {
			t.Run(name+"/"+string(v), func(t *testing.T) {
				t.Parallel()
				n := newNet(t)
				rec := record(t, n, []lab.Topic{secret}, "-s", "sqlite3")
				s := serveFiles(t, n, v, files, "--wait", "1", "--seconds", "1")
				must(t, s.Wait(patience))
				must(t, rec.Stop(patience))
				if name == "escaped" {
					defined(t, rec.Dir, s, definitionText(files))
				} else if d := decoded(t, rec.Dir, s); strings.Contains(d.Text, `\`) || !strings.Contains(d.Text, "\nbool valid\n") {
					t.Errorf("the definition is %q", d.Text)
				}
			})
		}
	}
}

// Nodes whose service comes late, that do not say their names, that serve something wrong or nothing: all messages are recorded,
// and the user is told once when it is seen and once at the end what is missing.
func TestRecordOddDefinitions(t *testing.T) {
	t.Parallel()
	needPeers(t)
	const missing, atEnd = "are recorded without their definition", "the bag has no definition of secret_msgs/msg/Reading (/meter/reading)"
	for _, c := range []struct {
		name, options string
		found         bool
		said          string // beside that it is missing; "" nothing is said of that
	}{
		{"late", "--late 3 --seconds 5", true, "has no service get_type_description"},
		{"nameless", "--names 0 --seconds 1", true, ""},
		{"wrong", "--wrong-text 1 --wrong-fields 1 --seconds 1", false, " serves is not used: type hash differs"},
		{"refused", "--refuse 1 --seconds 1", false, "Not served today"},
		{"silent", "--silent 1 --seconds 3", false, "did not answer"},
	} {
		for _, v := range []lab.Vendor{lab.Cyclone, lab.Fast} {
			t.Run(c.name+"/"+string(v), func(t *testing.T) {
				t.Parallel()
				n := newNet(t)
				rec := record(t, n, []lab.Topic{secret}, "-s", "sqlite3")
				s := serve(t, n, v, append(strings.Fields(c.options), "--wait", "1")...)
				must(t, s.Wait(patience))
				must(t, rec.Stop(patience))
				whole(t, rec.Dir, s.topics, lab.SentBy(s.Proc))
				text := rec.Stdout() + rec.Stderr()
				if want := c.said != ""; (strings.Count(text, missing) == 1) != want || strings.Contains(text, missing) != want || !strings.Contains(text, c.said) {
					t.Errorf("while recording: %q, want %q", text, c.said)
				}
				if strings.Contains(text, atEnd) == c.found {
					t.Errorf("at the end: %q; found: %v", text, c.found)
				}
				if c.found {
					defined(t, rec.Dir, s, definitionText(lab.SecretFiles))
				} else if _, _, err := lab.DecodeNode[any](rec.Dir, secret.Name); err == nil || !strings.Contains(err.Error(), "the definition of secret_msgs/msg/Reading is unknown") {
					t.Errorf("the bag has a definition: %v", err)
				}
			})
		}
	}
}

// The client of the graph gets the files of a type from the services of both vendors, and their refusals.
func TestTypeDescriptionService(t *testing.T) {
	eachVendor(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		s := serve(t, n, v)
		e, err := n.Ask(secret.Name)
		must(t, err)
		sources, _ := e["sources"].([]any)
		want := []string{"secret_msgs/msg/Reading", "builtin_interfaces/msg/Time", "secret_msgs/msg/Sample", "std_msgs/msg/Header"}
		if len(sources) != len(want) || e.Text("hash") != s.hash || e.Text("node") != "/lab/meter" {
			t.Fatalf("answer: %v", e)
		}
		for i, v := range sources {
			got := lab.Event(v.(map[string]any))
			text := strings.TrimSuffix(lab.SecretFiles[want[i]+".msg"], "\n")
			if got.Text("Type") != want[i] || got.Text("Encoding") != "msg" || got.Text("Text") != text {
				t.Errorf("source %d: %v, want %s, msg, %q", i, got, want[i], text)
			}
		}
		// rcl looks a type up by its hash alone.
		e, err = n.Ask(secret.Name, "-hash", "RIHS01_"+strings.Repeat("0123", 16))
		must(t, err)
		if !strings.Contains(e.Text("reason"), "Type not currently in use by this node") {
			t.Errorf("an unknown hash: %v", e)
		}
		must(t, s.Stop(patience))
		asked := s.Events("asked")
		if len(asked) < 2 || asked[0].Text("result") != "served" || asked[0].Text("type") != secret.Kind.Type() {
			t.Errorf("the server was asked: %v", asked)
		}
	})
}

// A service that comes after its topic is found; one that never answers or refuses ends in an error; names are not needed, also
// where another node of the process knows nothing of the type.
func TestTypeDescriptionOddServices(t *testing.T) {
	eachVendor(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		for _, c := range []struct {
			name, options, flags, reason string
		}{
			{"late", "--late 1", "", ""},
			{"nameless", "--names 0", "", ""},
			{"two nodes", "--decoy 1", "", ""},
			{"two nameless nodes", "--decoy 1 --names 0", "", ""},
			{"refuse", "--refuse 1", "", "Not served today"},
			{"silent", "--silent 1", "-timeout 2s", "deadline"},
			{"none", "--late 100", "-timeout 1s", "deadline"},
		} {
			s := serve(t, n, v, strings.Fields(c.options)...)
			e, err := n.Ask(secret.Name, strings.Fields(c.flags)...)
			must(t, err)
			sources, _ := e["sources"].([]any)
			if reason := e.Text("reason"); (c.reason == "") != (len(sources) == 4) || !strings.Contains(reason, c.reason) {
				t.Errorf("%s: %v", c.name, e)
			}
			must(t, s.Stop(patience))
			time.Sleep(100 * time.Millisecond)
		}
	})
}
