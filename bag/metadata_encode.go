package bag

import (
	"sort"
	"strconv"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// metadataRoot is the only key at the top of metadata.yaml.
const metadataRoot = "rosbag2_bagfile_information"

// Encode returns the text of metadata.yaml in the form of a metadata version from 1 to 9 (0 = m.Version), with the keys,
// their order and the style of rosbag2. Fields that the version does not have are left out.
func (m *Metadata) Encode(version int) []byte {
	w := &yamlWriter{}
	w.line(0, metadataRoot+":")
	m.encode(w, 1, version)
	if m.version(version) >= customDataVersion {
		m.encodeCustomData(w, 1)
	}
	m.encodeDistro(w, 1, version)
	return w.bytes()
}

// EncodeStorage returns the same description as it is kept inside a storage: without the root key, and with custom_data
// in every version if there is any. rosbag2 passes over keys it does not know, and the storage is the only place where
// a bag for Humble can keep it.
func (m *Metadata) EncodeStorage(version int) plugin.Metadata {
	w := &yamlWriter{}
	m.encode(w, 0, version)
	if m.version(version) >= customDataVersion || len(m.CustomData) > 0 {
		m.encodeCustomData(w, 0)
	}
	m.encodeDistro(w, 0, version)
	return plugin.Metadata{Version: m.version(version), Text: string(w.bytes())}
}

func (m *Metadata) version(v int) int {
	if v == 0 {
		v = m.Version
	}
	return min(max(v, 1), MetadataVersion)
}

func (m *Metadata) encode(w *yamlWriter, d, version int) {
	v := m.version(version)
	w.line(d, "version: "+strconv.Itoa(v))
	w.text(d, "storage_identifier", m.StorageIdentifier)
	if v < 5 {
		m.encodePaths(w, d)
	}
	w.duration(d, m.Duration.Nanoseconds())
	w.start(d, m.Start)
	w.uint(d, "message_count", m.MessageCount)
	w.line(d, "topics_with_message_count:")
	w.emptyList(d+1, len(m.Topics))
	for _, t := range m.Topics {
		t.encode(w, d+1, v)
	}
	if v >= 3 {
		w.text(d, "compression_format", m.CompressionFormat)
		w.text(d, "compression_mode", m.CompressionMode)
	}
	if v >= 5 {
		m.encodePaths(w, d)
		w.line(d, "files:")
		w.emptyList(d+1, len(m.Files))
		for _, f := range m.Files {
			w.line(d+1, "- path: "+yamlScalar(f.Path))
			w.start(d+2, f.Start)
			w.duration(d+2, f.Duration.Nanoseconds())
			w.uint(d+2, "message_count", f.MessageCount)
		}
	}
}

func (m *Metadata) encodeDistro(w *yamlWriter, d, version int) {
	if m.version(version) >= 8 {
		w.text(d, "ros_distro", m.ROSDistro)
	}
}

func (m *Metadata) encodePaths(w *yamlWriter, d int) {
	w.line(d, "relative_file_paths:")
	w.emptyList(d+1, len(m.Paths))
	for _, p := range m.Paths {
		w.line(d+1, "- "+yamlScalar(p))
	}
}

func (m *Metadata) encodeCustomData(w *yamlWriter, d int) {
	if len(m.CustomData) == 0 {
		w.line(d, "custom_data: ~")
		return
	}
	w.line(d, "custom_data:")
	keys := make([]string, 0, len(m.CustomData))
	for k := range m.CustomData {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		w.text(d+1, yamlScalar(k), m.CustomData[k])
	}
}

func (t *TopicMetadata) encode(w *yamlWriter, d, v int) {
	w.line(d, "- topic_metadata:")
	w.text(d+2, "name", t.Name)
	w.text(d+2, "type", t.Type)
	w.text(d+2, "serialization_format", t.SerializationFormat)
	switch {
	case v >= 9:
		w.line(d+2, "offered_qos_profiles:")
		w.emptyList(d+3, len(t.OfferedQoS))
		for _, q := range t.OfferedQoS {
			q.encode(w, d+3, true)
		}
	case v >= 4:
		w.text(d+2, "offered_qos_profiles", EncodeQoS(t.OfferedQoS, false))
	}
	if v >= 7 {
		w.text(d+2, "type_description_hash", t.TypeHash)
	}
	w.uint(d+1, "message_count", t.MessageCount)
}

// yamlWriter puts lines together, indented by two blanks a level. Like rosbag2's files, the text ends without a newline.
type yamlWriter struct{ b strings.Builder }

func (w *yamlWriter) bytes() []byte { return []byte(w.b.String()) }

func (w *yamlWriter) line(depth int, s string) {
	if w.b.Len() > 0 {
		w.b.WriteByte('\n')
	}
	for range depth {
		w.b.WriteString("  ")
	}
	w.b.WriteString(s)
}

func (w *yamlWriter) text(depth int, key, value string) { w.line(depth, key+": "+yamlScalar(value)) }

func (w *yamlWriter) uint(depth int, key string, u uint64) {
	w.line(depth, key+": "+strconv.FormatUint(u, 10))
}

func (w *yamlWriter) duration(depth int, ns int64) {
	w.line(depth, "duration:")
	w.uint(depth+1, "nanoseconds", uint64(ns))
}

// start writes a stamp. rosbag2 reads it as an unsigned number and then as a signed one, so stamps before 1970 are
// written as their two's complement.
func (w *yamlWriter) start(depth int, ns int64) {
	w.line(depth, "starting_time:")
	w.uint(depth+1, "nanoseconds_since_epoch", uint64(ns))
}

func (w *yamlWriter) emptyList(depth, n int) {
	if n == 0 {
		w.line(depth, "[]")
	}
}
