package recorder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/rostest"
)

// secret is a type that nobody knows but the node that publishes it.
const secret = "secret_msgs/msg/Reading"

const (
	readingMsg = "# a reading\nstd_msgs/Header header\nSample[] samples\nfloat64 scale 1.5\n"
	sampleMsg  = "int32 value\nstring unit\n"
	headerMsg  = "builtin_interfaces/Time stamp\nstring frame_id\n"
	timeMsg    = "int32 sec\nuint32 nanosec\n"
)

// secretSources is what the node serves: every file, and one that has no text.
func secretSources() []ros.TypeSource {
	return []ros.TypeSource{
		{Type: secret, Encoding: "msg", Text: readingMsg},
		{Type: "builtin_interfaces/msg/Time", Encoding: "msg", Text: timeMsg},
		{Type: "secret_msgs/msg/Sample", Encoding: "msg", Text: sampleMsg},
		{Type: "std_msgs/msg/Header", Encoding: "msg", Text: headerMsg},
		{Type: "secret_msgs/srv/Ask_Request", Encoding: "implicit"},
	}
}

// secretText is the same as rosbag2 stores it.
func secretText() string {
	line := "\n" + strings.Repeat("=", 80) + "\n"
	return readingMsg + line + "MSG: secret_msgs/Sample\n" + sampleMsg + line + "MSG: std_msgs/Header\n" + headerMsg +
		line + "MSG: builtin_interfaces/Time\n" + timeMsg
}

func secretHash(t testing.TB) string {
	t.Helper()
	d, err := msg.DefineServed(secret, "", served(secretSources()))
	if err != nil {
		t.Fatal(err)
	}
	return d.Hash
}

// secretly makes a publisher's topic one of the secret type.
func secretly(hash string) func(*ros.Topic, *ros.QoS) {
	return func(topic *ros.Topic, _ *ros.QoS) { topic.Type, topic.TypeHash = secret, hash }
}

// unknown is a machine without any definition.
func unknown(typ, hash string) (plugin.Definition, error) {
	return plugin.Definition{}, fmt.Errorf("%w: %s: not here", msg.ErrNotFound, typ)
}

// Definitions are looked up once per type and hash; without one the topic is recorded all the same, which is said once
// when it is seen and once at the end.
func TestDefinitions(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		var asked []string
		none := func(topic *ros.Topic, _ *ros.QoS) { topic.TypeHash = "" }
		other := func(topic *ros.Topic, _ *ros.QoS) { topic.Type = "my_msgs/msg/Secret" }
		g.advertise("/a", none)
		b, c := g.advertise("/b", other), g.advertise("/c", other)
		g.start(Options{All: true, Definition: func(typ, hash string) (plugin.Definition, error) {
			asked = append(asked, typ+hash)
			if typ != str {
				return plugin.Definition{}, errors.New("not installed")
			}
			return plugin.Definition{Encoding: "ros2msg", Text: "# " + hash}, nil
		}})
		a := g.advertise("/a") // now with a hash
		settled()
		for _, p := range []ros.Publisher{a, b, c} {
			g.publish(p, 1, 10)
		}
		if g.hasEvent(EventDefinition, "") {
			t.Error("said while the publishers are still being asked")
		}
		time.Sleep(20 * time.Second)
		res, err := g.stop()
		if err != nil || res.Messages != 3 {
			t.Fatal(err, res.Messages)
		}
		hash := a.Topic().TypeHash
		if want := []string{str, "my_msgs/msg/Secret" + hash, str + hash}; !slices.Equal(asked, want) {
			t.Errorf("asked for %v, want %v", asked, want)
		}
		s := g.read()
		if got := s.topics["/a"].Definition.Text; got != "# "+hash {
			t.Errorf("definition of /a: %q", got)
		}
		if got := s.topics["/b"].Definition.Text; got != "" {
			t.Errorf("definition of /b: %q", got)
		}
		if n := g.countEvents(EventDefinition, "messages of type my_msgs/msg/Secret (topic '/b') are recorded without their definition: not installed; node /talker does not answer (asked for 2s)"); n != 1 {
			t.Errorf("%d warnings: %v", n, g.events)
		}
		if n := g.countEvents(EventDefinition, "the bag has no definition of my_msgs/msg/Secret (/b, /c)"); n != 1 {
			t.Errorf("%d summaries: %v", n, g.events)
		}
		if n := g.countEvents(EventDefinition, ""); n != 2 {
			t.Errorf("%d lines: %v", n, g.events)
		}
		if len(res.Undefined) != 1 || !slices.Equal(res.Undefined[0].Topics, []string{"/b", "/c"}) {
			t.Errorf("%+v", res.Undefined)
		}
	})
}

// Without being told, the recorder knows the common types; named directories come first.
func TestLocalDefinitions(t *testing.T) {
	def, err := Options{}.withDefaults().Definition(str, "")
	if err != nil || def.Encoding != "ros2msg" || !strings.Contains(def.Text, "string data") {
		t.Fatalf("%v %+v", err, def)
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	for i, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(dir, "share/std_msgs/msg"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "share/std_msgs/msg/String.msg"), fmt.Appendf(nil, "string data # %d\n", i), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for i, order := range [][]string{{dirs[0], dirs[1]}, {dirs[1], dirs[0]}} {
		def, err := Options{MsgPath: order}.withDefaults().Definition(str, "")
		if err != nil || def.Text != fmt.Sprintf("string data # %d\n", i) {
			t.Errorf("%v %q", err, def.Text)
		}
	}
}

// The node that publishes an unknown type serves its definition: at once, after it refused for a while, late, or when
// another publisher comes.
func TestServedDefinition(t *testing.T) {
	serve := func(context.Context, string, string) ([]ros.TypeSource, error) { return secretSources(), nil }
	for _, c := range []struct {
		name  string
		serve func(g *rig) // called when the recording has begun
		said  bool         // that there is no definition, before there was one
	}{
		{"at once", func(g *rig) { g.talker.ServeTypes(serve) }, false},
		{"after a second", func(g *rig) {
			time.Sleep(time.Second)
			g.talker.ServeTypes(serve)
		}, false},
		{"after ten seconds", func(g *rig) {
			time.Sleep(10 * time.Second)
			g.talker.ServeTypes(serve)
		}, true},
		{"refused at first", func(g *rig) {
			var calls atomic.Int64
			g.talker.ServeTypes(func(context.Context, string, string) ([]ros.TypeSource, error) {
				if calls.Add(1) < 4 {
					return nil, errors.New("type not known (yet)")
				}
				return secretSources(), nil
			})
		}, true},
		{"by a node that comes much later", func(g *rig) {
			time.Sleep(10 * time.Minute)
			late := g.net.Node("late")
			g.Cleanup(func() { late.Close() })
			late.ServeTypes(serve)
			if _, err := late.Advertise(ros.Topic{Name: "/x", Type: secret, TypeHash: secretHash(g)}, ros.DefaultQoS()); err != nil {
				g.Fatal(err)
			}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, rostest.Options{}, func(g *rig) {
				hash := secretHash(t)
				p := g.advertise("/x", secretly(hash))
				g.advertise("/y", secretly(hash))
				g.start(Options{All: true, Definition: unknown})
				g.publish(p, 3, 10)
				c.serve(g)
				time.Sleep(10 * time.Second)
				res, err := g.stop()
				if err != nil || res.Messages != 3 || len(res.Undefined) != 0 {
					t.Fatal(err, res.Messages, res.Undefined)
				}
				g.checkSums(res)
				s := g.read()
				for _, name := range []string{"/x", "/y"} {
					if d := s.topics[name].Definition; d.Text != secretText() || d.Encoding != "ros2msg" || s.topics[name].TypeHash != hash {
						t.Errorf("%s: hash %s, definition %+v", name, s.topics[name].TypeHash, d)
					}
				}
				if n := g.countEvents(EventDefinition, "the definition of "+secret+" was given by node /"); n != 1 {
					t.Errorf("%d lines about the answer: %v", n, g.events)
				}
				if said := g.hasEvent(EventDefinition, "are recorded without"); said != c.said {
					t.Errorf("said that there is none: %v, want %v: %v", said, c.said, g.events)
				}
				if g.hasEvent(EventDefinition, "the bag has no definition") {
					t.Error("said that the bag has none")
				}
			})
		})
	}
}

// What a node serves is checked: a text that has another hash is not used, and said.
func TestServedDefinitionIsChecked(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func([]ros.TypeSource) []ros.TypeSource
		want   string
	}{
		{"another text", func(s []ros.TypeSource) []ros.TypeSource {
			s[0].Text += "int32 more\n"
			return s
		}, "type hash differs"},
		{"another text within", func(s []ros.TypeSource) []ros.TypeSource {
			s[2].Text = "int64 value\nstring unit\n"
			return s
		}, "type hash differs"},
		{"incomplete", func(s []ros.TypeSource) []ros.TypeSource { return s[:3] }, "std_msgs/msg/Header"},
		{"nothing", func([]ros.TypeSource) []ros.TypeSource { return nil }, "secret_msgs/msg/Reading"},
		{"no text", func(s []ros.TypeSource) []ros.TypeSource {
			s[0].Encoding = "dynamic"
			return s
		}, "secret_msgs/msg/Reading"},
		{"garbage", func(s []ros.TypeSource) []ros.TypeSource {
			s[0].Text = "\x00\xff{ not a message"
			return s
		}, "parse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, rostest.Options{}, func(g *rig) {
				p := g.advertise("/x", secretly(secretHash(t)))
				g.talker.ServeTypes(func(context.Context, string, string) ([]ros.TypeSource, error) { return c.change(secretSources()), nil })
				g.start(Options{All: true, Definition: unknown})
				g.publish(p, 1, 10)
				time.Sleep(time.Minute)
				res, err := g.stop()
				if err != nil || res.Messages != 1 || len(res.Undefined) != 1 {
					t.Fatal(err, res.Messages, res.Undefined)
				}
				if s := g.read(); s.topics["/x"].Definition.Text != "" {
					t.Errorf("stored: %q", s.topics["/x"].Definition.Text)
				}
				if n := g.countEvents(EventDefinition, "what node /talker serves is not used"); n != 1 || !g.hasEvent(EventDefinition, c.want) {
					t.Errorf("%d warnings, want one with %q: %v", n, c.want, g.events)
				}
			})
		})
	}
}

// A node built by rosidl_generator_c serves files that escapes have made longer and that are cut off: what the description
// says of the fields stands for them.
func TestServedDefinitionThatWasCutOff(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		sources := secretSources()
		sources[0].Text = `# in \xc2\xb0C\nstd_msgs/Header header\nSample[] samples\nfloat6`
		sources[0].Fields = "# fields\nstd_msgs/Header header\nsecret_msgs/Sample[] samples\nfloat64 scale\n"
		sources[2].Text = `int32\tvalue\nstring unit # \xc2\xb5`
		for i := range sources {
			sources[i].Text = strings.ReplaceAll(sources[i].Text, `\n`, "\n")
		}
		hash := secretHash(t)
		g.publish(g.advertise("/x", secretly(hash), latched), 1, 10)
		g.talker.ServeTypes(func(context.Context, string, string) ([]ros.TypeSource, error) { return sources, nil })
		g.start(Options{All: true, Definition: unknown})
		settled()
		if res, err := g.stop(); err != nil || len(res.Undefined) != 0 {
			t.Fatal(err, res.Undefined, g.events)
		}
		text := g.read().topics["/x"].Definition.Text
		if !strings.HasPrefix(text, sources[0].Fields) || !strings.Contains(text, "\nint32\tvalue\nstring unit # µ\n") {
			t.Errorf("%s", text)
		}
	})
}

// Many unknown types at nodes that do not answer: each is said once, few questions are under way at once, and the end
// does not wait for them.
func TestManyUnknownTypes(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		var mu sync.Mutex
		var now, most int
		g.talker.ServeTypes(func(ctx context.Context, _, _ string) ([]ros.TypeSource, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			<-ctx.Done()
			mu.Lock()
			now--
			mu.Unlock()
			return nil, ctx.Err()
		})
		for i := range 50 {
			g.advertise(fmt.Sprintf("/t%d", i), func(topic *ros.Topic, _ *ros.QoS) { topic.Type = fmt.Sprintf("a_msgs/msg/T%02d", i) })
		}
		g.start(Options{All: true, Definition: unknown})
		time.Sleep(2 * time.Minute)
		before := time.Now()
		res, _ := g.stop()
		if d := time.Since(before); d > time.Second {
			t.Errorf("the end took %v", d)
		}
		if n := g.countEvents(EventDefinition, "are recorded without their definition"); n != 50 || len(res.Undefined) != 50 || most != askSlots {
			t.Errorf("%d warnings, %d types, at most %d questions at once", n, len(res.Undefined), most)
		}
		g.wantEvent(EventDefinition, "and 30 more types")
	})
}

// A question under way when the recording ends is given up, and the definition stays unknown.
func TestAskingEndsWithTheRecording(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		p := g.advertise("/x", secretly(secretHash(t)))
		g.start(Options{All: true, Definition: unknown})
		g.publish(p, 1, 10)
		before := time.Now()
		res, err := g.stop()
		if err != nil || time.Since(before) > time.Second || len(res.Undefined) != 1 {
			t.Errorf("%v after %v, %+v", err, time.Since(before), res.Undefined)
		}
		if g.hasEvent(EventDefinition, "are recorded without") || !g.hasEvent(EventDefinition, "the bag has no definition of "+secret+" (/x)") {
			t.Error(g.events)
		}
	})
}

// A definition that was found while no hash was known stays, and it is said that it is not that of the publisher who
// announces one.
func TestHashComesLate(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		p := g.advertise("/x", secretly(""))
		g.start(Options{All: true, Node: struct{ ros.Node }{g.node}, Definition: func(typ, hash string) (plugin.Definition, error) {
			if hash != "" {
				return unknown(typ, hash)
			}
			return plugin.Definition{Encoding: "ros2msg", Text: "int32 old"}, nil
		}})
		g.publish(p, 1, 10)
		settled()
		g.advertise("/x", secretly(secretHash(t)))
		settled()
		res, err := g.stop()
		if err != nil || len(res.Undefined) != 0 {
			t.Fatal(err, res.Undefined)
		}
		if s := g.read(); s.topics["/x"].Definition.Text != "int32 old" || s.topics["/x"].TypeHash != secretHash(t) {
			t.Errorf("%+v", s.topics["/x"].Topic)
		}
		g.wantEvent(EventDefinition, "are recorded with a definition that was found before a publisher announced its hash, which is another one: not here; --msg-path")
	})
}

// A node that cannot ask says so at once.
func TestNodeThatCannotAsk(t *testing.T) {
	inBubble(t, rostest.Options{}, func(g *rig) {
		g.advertise("/x", secretly(""))
		g.start(Options{All: true, Definition: unknown, Node: struct{ ros.Node }{g.node}})
		if n := g.countEvents(EventDefinition, "recorded without their definition: not here"); n != 1 {
			t.Errorf("%d warnings: %v", n, g.events)
		}
	})
}
