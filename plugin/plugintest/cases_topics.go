package plugintest

import (
	"strings"

	"github.com/gobag/gobag/plugin"
)

// oddNames are topic names that something could mistake for each other or for syntax.
var oddNames = []string{
	"/a/b", "/a_b", "/a__b", "/a%2Fb", "/A/b", "a/b", "/", "", " ", "/o'brien", `/say "x"`, "/100%", "/semi;colon", "/new\nline",
	"/tab\t", "/höhe/測定", "/\xff\xfe", "/nul\x00byte", "/..", "../../up", "/back\\slash", "/{brace}", "/?*[x]", "/null",
}

func topicNames(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	for i, n := range append(oddNames, "/"+strings.Repeat("long/", 200)) {
		id := s.topic(n)
		s.write(plugin.Message{Topic: id, RecvTime: 7, Data: payload(uint64(i), 10)})
	}
	same := s.addTopic(plugin.Topic{Name: "/a/b", Type: "other_msgs/msg/Type", SerializationFormat: "cdr"})
	s.write(plugin.Message{Topic: same, RecvTime: 7, Data: []byte("another type")})
	r := s.reopen()
	defer closeReader(t, r)
	for _, topic := range s.topics {
		s.check(r, plugin.Query{Topics: []plugin.TopicID{topic.ID}})
	}
}

func topicsWithoutMessages(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	s.topic("/none")
	id := s.topic("/some")
	s.topic("/none either")
	s.write(plugin.Message{Topic: id, RecvTime: 1, Data: []byte("a")})
	closeReader(t, s.reopen())
}

func topicUpdates(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	base := plugin.Topic{Name: "/a", Type: "std_msgs/msg/String", SerializationFormat: "cdr"}
	a := s.addTopic(base)
	b := s.addTopic(plugin.Topic{Name: "/b", Type: "b_msgs/msg/B", SerializationFormat: "cdr", OfferedQoS: "- depth: 1\n",
		TypeHash: "RIHS01_bb", Definition: plugin.Definition{Encoding: "ros2msg", Text: "int8 b"}, Sources: []string{"one"}})
	s.write(plugin.Message{Topic: a, RecvTime: 1, Data: []byte("a")}, plugin.Message{Topic: b, RecvTime: 1, Source: 1, Data: []byte("b")})

	again := base
	again.OfferedQoS = "- history: 1\n  depth: 10\n"
	again.TypeHash = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
	again.Definition = plugin.Definition{Encoding: "ros2msg", Text: "string data\n"}
	again.Sources = []string{"0101", "0202"}
	if id := s.addTopic(again); id != a {
		t.Errorf("a topic added again has the id %d, it was %d", id, a)
	}
	s.write(plugin.Message{Topic: a, RecvTime: 2, Source: 2, Data: []byte("a")})
	s.sync()
	// Empty fields leave what is there.
	s.addTopic(base)
	s.addTopic(plugin.Topic{Name: "/b", Type: "b_msgs/msg/B", Sources: []string{"one", "two", "three"}})
	again = base
	again.OfferedQoS = "- history: 1\n  depth: 20\n"
	s.addTopic(again)
	s.write(plugin.Message{Topic: b, RecvTime: 3, Source: 3, Data: []byte("b")})
	closeReader(t, s.reopen())
}

func definitions(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	for i, def := range []plugin.Definition{
		{Encoding: "ros2msg", Text: "std_msgs/Header header\n====\nMSG: std_msgs/Header\nstring frame_id # it's \"ö\"\n"},
		{Encoding: "ros2idl", Text: "module a { };"},
		{Encoding: "ros1msg", Text: "Header header"},
		{Encoding: "unknown"},
		{},
	} {
		name := string(rune('A' + i))
		id := s.addTopic(plugin.Topic{Name: "/" + name, Type: "pkg/msg/" + name, SerializationFormat: "cdr", Definition: def})
		s.addTopic(plugin.Topic{Name: "/twin" + name, Type: "pkg/msg/" + name, SerializationFormat: "cdr", Definition: def})
		s.write(plugin.Message{Topic: id, RecvTime: 1})
	}
	closeReader(t, s.reopen())
}

func sendTimeAndSource(t T, d plugin.Driver, o Options) {
	s := newStorage(t, d, o.Create)
	a := s.addTopic(plugin.Topic{Name: "/a", Type: "a/msg/A", SerializationFormat: "cdr", Sources: []string{"x", "", "z\x00\xff"}})
	b := s.topic("/b")
	for i := range int64(2000) {
		s.write(
			plugin.Message{Topic: a, RecvTime: 1e18 + i*1000, SendTime: 1e18 + i*1000 - 250, Source: uint32(i%3) + 1, Seq: uint64(i + 1), Data: []byte("a")},
			plugin.Message{Topic: b, RecvTime: 1e18 + i*1000, SendTime: i % 2 * (1 - i), Source: uint32(i) << 20, Seq: 1<<64 - 1 - uint64(i), Data: []byte("b")})
	}
	r := s.reopen()
	defer closeReader(t, r)
	s.check(r, plugin.Query{Topics: []plugin.TopicID{b}})
}
