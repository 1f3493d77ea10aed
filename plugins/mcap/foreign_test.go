package mcap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	foxglove "github.com/foxglove/mcap/go/mcap"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// What we write is read by the Go library of the MCAP project, in file order with all checksums and by its index.
func TestForeignReader(t *testing.T) {
	for _, o := range []plugin.WriteOptions{{}, {Preset: plugin.PresetFast}, {Preset: plugin.PresetSmall}, {Preset: plugin.PresetNone},
		{Preset: "zstd_fast"}, {Preset: "zstd_small"}, {Config: map[string]any{"compression": "Lz4", "chunkSize": 5000}}, {Config: map[string]any{"noChunking": true}},
		{Config: map[string]any{"noSummary": true}}, {Config: map[string]any{"noRepeatedSchemas": true, "noStatistics": true, "enableDataCRC": false}}} {
		t.Run(fmt.Sprint(o.Preset, o.Config), func(t *testing.T) {
			b, err := os.ReadFile(writeSample(t, o, 500, 700))
			if err != nil {
				t.Fatal(err)
			}
			if end := nth(b, opDataEnd, 0); o.Config["enableDataCRC"] == nil && le.Uint32(b[end.off+recordHead:]) != crc32.ChecksumIEEE(b[:end.off]) {
				t.Error("checksum of the data section is wrong")
			}
			l, err := foxglove.NewLexer(bytes.NewReader(b), &foxglove.LexerOptions{ValidateChunkCRCs: true})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			n := 0
			for {
				kind, rec, err := l.Next(nil)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if kind == foxglove.TokenMessage {
					m, err := foxglove.ParseMessage(rec)
					if err != nil {
						t.Fatal(err)
					}
					if w := sampleMessage(n, 700); m.LogTime != uint64(w.RecvTime) || m.PublishTime != uint64(w.SendTime) || m.Sequence != uint32(w.Seq) || !bytes.Equal(m.Data, w.Data) {
						t.Fatalf("message %d is %+v", n, m)
					}
					n++
				}
			}
			if n != 500 {
				t.Errorf("%d messages", n)
			}
			if o.Config == nil {
				foreignIndexed(t, b)
			}
		})
	}
}

func foreignIndexed(t *testing.T, b []byte) {
	r, err := foxglove.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	info, err := r.Info()
	if err != nil {
		t.Fatal(err)
	}
	c := info.Channels[1]
	if info.Header.Profile != "ros2" || info.Statistics.MessageCount != 500 || len(info.Channels) != 3 || len(info.Schemas) != 1 || c.Topic != "/t0" ||
		c.MessageEncoding != "cdr" || c.Metadata["offered_qos_profiles"] != "- depth: 1\n" || c.Metadata["topic_type_hash"] != "RIHS01_00" ||
		string(info.Schemas[1].Data) != "string data\n" || info.Schemas[1].Encoding != "ros2msg" || len(info.MetadataIndexes) != 1 {
		t.Errorf("%+v %+v", info, c)
	}
	md, err := r.GetMetadata(info.MetadataIndexes[0].Offset)
	if err != nil || md.Name != "rosbag2" || md.Metadata["serialized_metadata"] != "version: 9\nros_distro: jazzy\n" {
		t.Errorf("%+v %v", md, err)
	}
	it, err := r.Messages(foxglove.UsingIndex(true), foxglove.WithTopics([]string{"/t1"}))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for {
		_, _, m, err := it.NextInto(nil)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if w := sampleMessage(3*n+1, 700); m.LogTime != uint64(w.RecvTime) || !bytes.Equal(m.Data, w.Data) {
			t.Fatalf("by index, message %d is %+v", n, m)
		}
		n++
	}
	if n != 167 {
		t.Errorf("by index: %d messages", n)
	}
}

// foreign writes a file with the library: chunks that overlap, several channels of a topic, schemas of one name.
func foreign(t *testing.T, o *foxglove.WriterOptions, messages int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "f.mcap")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := foxglove.NewWriter(f, o)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(w.WriteHeader(&foxglove.Header{Profile: "ros2", Library: "other"}))
	must(w.WriteSchema(&foxglove.Schema{ID: 1, Name: "a/msg/A", Encoding: "ros2msg", Data: []byte("int8 a")}))
	must(w.WriteSchema(&foxglove.Schema{ID: 2, Name: "a/msg/A", Encoding: "ros2msg", Data: []byte("int16 a")}))
	must(w.WriteSchema(&foxglove.Schema{ID: 3, Name: "std_msgs/msg/Empty", Encoding: "ros2msg"}))
	for i, c := range []foxglove.Channel{{SchemaID: 1, Topic: "/a"}, {SchemaID: 2, Topic: "/a"}, {SchemaID: 3, Topic: "/e"}, {SchemaID: 0, Topic: "/none"}} {
		c.ID, c.MessageEncoding = uint16(i+10), "cdr"
		must(w.WriteChannel(&c))
	}
	for i := range messages {
		must(w.WriteMessage(&foxglove.Message{ChannelID: uint16(10 + i%4), Sequence: uint32(i), LogTime: uint64(1000 + i*7919%messages/2), PublishTime: uint64(i), Data: []byte(strings.Repeat("x", i%300))}))
	}
	must(w.WriteMetadata(&foxglove.Metadata{Name: "rosbag2", Metadata: map[string]string{"ROS_DISTRO": "humble"}}))
	must(w.WriteAttachment(&foxglove.Attachment{Name: "note", Data: strings.NewReader("hello"), DataSize: 5}))
	must(w.Close())
	must(f.Close())
	return path
}

func TestForeignWriter(t *testing.T) {
	for name, o := range map[string]*foxglove.WriterOptions{
		"plain":     {Chunked: true, ChunkSize: 20_000, IncludeCRC: true},
		"zstd":      {Chunked: true, ChunkSize: 20_000, Compression: foxglove.CompressionZSTD},
		"lz4":       {Chunked: true, ChunkSize: 20_000, Compression: foxglove.CompressionLZ4, IncludeCRC: true},
		"unchunked": {},
		"bare":      {Chunked: true, ChunkSize: 20_000, SkipMessageIndexing: true, SkipStatistics: true, SkipRepeatedSchemas: true, SkipRepeatedChannelInfos: true, SkipMetadataIndex: true, SkipChunkIndex: true, SkipSummaryOffsets: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := foreign(t, o, 1000)
			r := open(t, path)
			info := r.Info()
			if len(info.Topics) != 3 || info.Topics[0].Count != 500 || info.Topics[1].Type != "std_msgs/msg/Empty" || info.Topics[2].Type != "" || info.ROSDistro != "humble" ||
				info.Unclean || len(info.Warnings) != 0 || info.Topics[0].Definition.Text != "int16 a" {
				t.Errorf("%+v", info)
			}
			checkRead(t, r)
			// The same by the summary alone, as large files are read.
			r2 := open(t, path).(*reader)
			r2.reset()
			w := window{f: r2.f, size: r2.size}
			if ok := bySummary(t, r2, &w); ok == (name == "bare" || name == "unchunked") {
				t.Errorf("summary used: %v", ok)
			}
		})
	}
}

// bySummary reads the summary whatever the size of the file, and compares the messages with those of a scan.
func bySummary(t *testing.T, r *reader, w *window) bool {
	t.Helper()
	b, err := w.peek(r.size-8-footerSize, footerSize)
	if err != nil {
		t.Fatal(err)
	}
	start := int64(le.Uint64(b[recordHead:]))
	if start == 0 {
		return false
	}
	var s summaryState
	for at := start; at < r.size-8-footerSize; {
		op, n, err := w.head(at)
		if err != nil {
			t.Fatal(err)
		}
		content, err := w.peek(at+recordHead, n)
		if err != nil || !r.summaryRecord(&s, op, content) {
			t.Fatal(err, op)
		}
		at += recordHead + n
	}
	ok, err := r.useSummary(w, &s, start, false)
	if err != nil {
		t.Fatal(err)
	}
	if ok {
		r.foreignTopics()
		got, err := plugintest.ReadAll(r, plugin.Query{})
		if err != nil || uint64(len(got)) != s.stats.messages {
			t.Errorf("by summary: %d messages, %v", len(got), err)
		}
	}
	return ok
}

// All chunks overlap: order is right and the memory of an iterator bounded.
func TestOverlappingChunks(t *testing.T) {
	for _, compression := range []string{"None", "Zstd"} {
		path := filepath.Join(t.TempDir(), "o.mcap")
		w, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{Config: map[string]any{"chunkSize": 1000, "compression": compression}})
		if err != nil {
			t.Fatal(err)
		}
		id, err := w.AddTopic(plugin.Topic{Name: "/a", Type: "a/msg/A"})
		if err != nil {
			t.Fatal(err)
		}
		const n = 2000
		for i := range n {
			if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(i * 7919 % n), Data: bytes.Repeat([]byte{byte(i)}, 100)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(plugin.Metadata{}); err != nil {
			t.Fatal(err)
		}
		r := open(t, path)
		checkRead(t, r)
		it, err := r.Messages(plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		var m plugin.Message
		for range n / 2 {
			if err := it.Next(&m); err != nil {
				t.Fatal(err)
			}
		}
		if l := len(it.(*iterator).loaded); l > loadedCount {
			t.Errorf("%d chunks in memory", l)
		}
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		config map[string]any
		want   string
	}{
		{map[string]any{"chunkSize": "big"}, "chunkSize: want bytes"},
		{map[string]any{"chunkSize": 0}, "chunkSize: want bytes"},
		{map[string]any{"compression": "gzip"}, "want None, Lz4 or Zstd"},
		{map[string]any{"compressionLevel": 3}, "want Fastest"},
		{map[string]any{"noSummary": "yes"}, "want true or false"},
		{map[string]any{"nosummary": true}, "unknown storage configuration key \"nosummary\" (there is: enableDataCRC"},
	} {
		path := filepath.Join(t.TempDir(), "c.mcap")
		if _, err := (Driver{}).Create(context.Background(), path, plugin.WriteOptions{Config: c.config}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.config, err)
		}
	}
}

func TestCRCCombine(t *testing.T) {
	b := bytes.Repeat([]byte("gobag 0123456789"), 5000)
	for _, n := range []int{0, 1, 7, 4096, 65537, len(b)} {
		if got := crcCombine(crc32.ChecksumIEEE(b[:n]), crc32.ChecksumIEEE(b[n:]), int64(len(b)-n)); got != crc32.ChecksumIEEE(b) {
			t.Errorf("at %d: %08x", n, got)
		}
	}
}

// What is none of ours is named.
func TestNames(t *testing.T) {
	for content, want := range map[string]string{
		"version https://git-lfs.github.com/spec/v1\n": "run git lfs pull", "#ROSBAG V2.0\n": "ROS 1 bag", "\x89MCAP1\r\n": "version",
	} {
		path := filepath.Join(t.TempDir(), "x.mcap")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := (Driver{}).OpenReader(context.Background(), path, plugin.ReadOptions{}); !errors.Is(err, plugin.ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
}
