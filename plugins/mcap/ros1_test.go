package mcap

import (
	"bytes"
	"context"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	foxglove "github.com/foxglove/mcap/go/mcap"

	"github.com/gobag/gobag/plugin"
)

// A file of ROS 1 messages is one as the MCAP registry says, checksums included; a mixed one stays ros2.
func TestROS1Profile(t *testing.T) {
	latched := ros1QoS(t, "1")
	one := plugin.Topic{Name: "/imu", Type: "sensor_msgs/Imu", SerializationFormat: "ros1", TypeHash: "6a62c6daae103f4ff57a132d6f95cec2", Sources: []string{"/imu_node"},
		OfferedQoS: latched, Definition: plugin.Definition{Encoding: "ros1msg", Text: "float64 x\n"}}
	two := plugin.Topic{Name: "/text", Type: "std_msgs/String", SerializationFormat: "ros1", TypeHash: "992ce8a1687cec8c8bd883ec73ca41d1"}
	for _, x := range []struct {
		name    string
		topics  []plugin.Topic
		o       plugin.WriteOptions
		profile string
	}{
		{"ros1", []plugin.Topic{one, two}, plugin.WriteOptions{}, "ros1"},
		{"small", []plugin.Topic{one, two}, plugin.WriteOptions{Preset: plugin.PresetSmall}, "ros1"},
		{"no checksum", []plugin.Topic{one, two}, plugin.WriteOptions{Config: map[string]any{"enableDataCRC": false}}, "ros1"},
		{"mixed", []plugin.Topic{one, {Name: "/cdr", Type: "std_msgs/msg/String", SerializationFormat: "cdr"}}, plugin.WriteOptions{}, "ros2"},
		{"empty", nil, plugin.WriteOptions{}, "ros2"},
	} {
		t.Run(x.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "one.mcap")
			w, err := create(context.Background(), path, x.o)
			if err != nil {
				t.Fatal(err)
			}
			for _, topic := range x.topics {
				id, err := w.AddTopic(topic)
				if err != nil {
					t.Fatal(err)
				}
				for i := range 300 {
					if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(i), Source: 1, Data: bytes.Repeat([]byte{byte(i)}, 100)}}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.Close(plugin.Metadata{}); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			want := crc32.ChecksumIEEE(b[:nth(b, opDataEnd, 0).off])
			if x.name == "no checksum" {
				want = 0
			}
			if end := nth(b, opDataEnd, 0); le.Uint32(b[end.off+recordHead:]) != want {
				t.Error("checksum of the data section is wrong")
			}
			r, err := foxglove.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			info, err := r.Info()
			if err != nil {
				t.Fatal(err)
			}
			if info.Header.Profile != x.profile || info.Statistics.MessageCount != uint64(300*len(x.topics)) {
				t.Errorf("%+v", info.Header)
			}
			if len(x.topics) == 0 {
				return
			}
			c := info.Channels[1]
			if c.MessageEncoding != "ros1" || c.Metadata["callerid"] != "/imu_node" || c.Metadata["latching"] != "true" || c.Metadata["md5sum"] != one.TypeHash || c.Metadata["topic"] != "/imu" {
				t.Errorf("%+v", c)
			}
			if c := info.Channels[2]; c.MessageEncoding == "ros1" && (c.Metadata["latching"] != "false" || c.Metadata["callerid"] != "") {
				t.Errorf("%+v", c)
			}
		})
	}
}

func ros1QoS(t *testing.T, latching string) string {
	t.Helper()
	var topic plugin.Topic
	ros1Topic(&topic, map[string]string{"latching": latching})
	return topic.OfferedQoS
}

// Files of ROS 1 that others wrote: the connection header in the channel's metadata becomes hash, source and QoS.
func TestForeignROS1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.mcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := foxglove.NewWriter(f, &foxglove.WriterOptions{Chunked: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		w.WriteHeader(&foxglove.Header{Profile: "ros1"}),
		w.WriteSchema(&foxglove.Schema{ID: 1, Name: "std_msgs/String", Encoding: "ros1msg", Data: []byte("string data\n")}),
		w.WriteChannel(&foxglove.Channel{ID: 0, SchemaID: 1, Topic: "/map", MessageEncoding: "ros1", Metadata: map[string]string{"callerid": "/server", "latching": "1", "md5sum": "abc"}}),
		w.WriteMessage(&foxglove.Message{ChannelID: 0, LogTime: 5, Data: []byte{0, 0, 0, 0}}),
		w.Close(), f.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := (Driver{}).OpenReader(context.Background(), path, plugin.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	topic := r.Info().Topics[0]
	if topic.SerializationFormat != "ros1" || topic.TypeHash != "abc" || len(topic.Sources) != 1 || topic.Sources[0] != "/server" ||
		!strings.Contains(topic.OfferedQoS, "durability: transient_local") || topic.Definition.Encoding != "ros1msg" {
		t.Errorf("%+v", topic)
	}
}
