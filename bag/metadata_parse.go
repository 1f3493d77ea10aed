package bag

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// ParseMetadata reads a metadata.yaml of any version, or the text kept inside a storage (the same without the root key).
// Keys may stand in any order, unknown ones are passed over, and keys are read wherever they are, whatever the version
// says. A negative count and a number that is fractional or too large are a [*YAMLError] with its line and key; a negative
// duration is a warning. A QoS text that cannot be read makes the topic's profiles unknown and leaves a warning.
func ParseMetadata(text []byte) (*Metadata, error) {
	top, err := parseYAML(text)
	if err != nil {
		return nil, err
	}
	root, err := top.get(metadataRoot)
	if err != nil {
		return nil, err
	}
	if root.missing() {
		if v, err := top.get("version"); err != nil || v.missing() {
			return nil, &YAMLError{Err: fmt.Errorf("there is no key %s", metadataRoot)}
		}
		root = top
	}
	root.path = ""
	m := &Metadata{}
	if err := m.parse(root); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Metadata) warnf(format string, args ...any) {
	m.Warnings = append(m.Warnings, fmt.Sprintf(format, args...))
}

func (m *Metadata) parse(root yval) error {
	v, err := root.need("version")
	if err != nil {
		return err
	}
	ver, err := v.uint(math.MaxInt32)
	if err != nil {
		return err
	}
	if ver == 0 {
		return v.errorf("there is no version 0")
	}
	if ver > MetadataVersion {
		m.warnf("metadata version %d is newer than %d: only what is known is read", ver, MetadataVersion)
	}
	m.Version = int(ver)

	if m.StorageIdentifier, err = root.textAt("storage_identifier"); err != nil {
		return err
	}
	if m.Start, err = m.startOf(root); err != nil {
		return err
	}
	if m.Duration, err = m.durationOf(root); err != nil {
		return err
	}
	if m.MessageCount, err = root.count(); err != nil {
		return err
	}
	if m.CompressionFormat, err = root.textAt("compression_format"); err != nil {
		return err
	}
	mode, err := root.textAt("compression_mode")
	if err != nil {
		return err
	}
	if m.CompressionMode = strings.ToUpper(mode); m.CompressionMode == "NONE" {
		m.CompressionMode = CompressionNone
	}
	if m.ROSDistro, err = root.textAt("ros_distro"); err != nil {
		return err
	}
	for _, part := range []func(yval) error{m.parseTopics, m.parsePaths, m.parseFiles, m.parseCustomData} {
		if err := part(root); err != nil {
			return err
		}
	}
	return nil
}

func (m *Metadata) parsePaths(root yval) error {
	list, err := root.get("relative_file_paths")
	if err != nil {
		return err
	}
	items, err := list.items()
	if err != nil {
		return err
	}
	for _, it := range items {
		p, err := it.str()
		if err != nil {
			return err
		}
		if p == "" {
			return it.errorf("the path is empty")
		}
		m.Paths = append(m.Paths, p)
	}
	return nil
}

func (m *Metadata) parseFiles(root yval) error {
	list, err := root.get("files")
	if err != nil {
		return err
	}
	items, err := list.items()
	if err != nil {
		return err
	}
	for _, it := range items {
		var f FileMetadata
		if f.Path, err = it.textAt("path"); err != nil {
			return err
		}
		if f.Start, err = m.startOf(it); err != nil {
			return err
		}
		if f.Duration, err = m.durationOf(it); err != nil {
			return err
		}
		if f.MessageCount, err = it.count(); err != nil {
			return err
		}
		m.Files = append(m.Files, f)
	}
	return nil
}

func (m *Metadata) parseCustomData(root yval) error {
	data, err := root.get("custom_data")
	if err != nil {
		return err
	}
	pairs, err := data.entries()
	if err != nil {
		return err
	}
	for _, p := range pairs {
		s, err := p.value.str()
		if err != nil {
			return err
		}
		if m.CustomData == nil {
			m.CustomData = map[string]string{}
		}
		m.CustomData[p.key] = s
	}
	return nil
}

func (m *Metadata) parseTopics(root yval) error {
	list, err := root.get("topics_with_message_count")
	if err != nil {
		return err
	}
	items, err := list.items()
	if err != nil {
		return err
	}
	for _, it := range items {
		t, err := m.parseTopic(it)
		if err != nil {
			return err
		}
		m.Topics = append(m.Topics, t)
	}
	return nil
}

func (m *Metadata) parseTopic(it yval) (t TopicMetadata, err error) {
	if t.MessageCount, err = it.count(); err != nil {
		return t, err
	}
	tm, err := it.need("topic_metadata")
	if err != nil {
		return t, err
	}
	if t.Name, err = tm.textAt("name"); err != nil {
		return t, err
	}
	if t.Type, err = tm.textAt("type"); err != nil {
		return t, err
	}
	if t.SerializationFormat, err = tm.textAt("serialization_format"); err != nil {
		return t, err
	}
	if t.TypeHash, err = tm.textAt("type_description_hash"); err != nil {
		return t, err
	}
	qos, err := tm.get("offered_qos_profiles")
	if err != nil {
		return t, err
	}
	if t.OfferedQoS, err = parseQoSField(qos); err != nil {
		m.warnf("topic %q: offered QoS is unknown: %v", clip(t.Name), err)
		t.OfferedQoS = nil
	}
	return t, nil
}

// textAt returns the text under key; "" if it is not there.
func (v yval) textAt(key string) (string, error) {
	sub, err := v.get(key)
	if err != nil {
		return "", err
	}
	return sub.str()
}

// count returns message_count.
func (v yval) count() (uint64, error) {
	sub, err := v.need("message_count")
	if err != nil {
		return 0, err
	}
	return sub.uint(math.MaxUint64)
}

// startOf returns starting_time, which rosbag2 reads as an unsigned number: from 2^63 on it is a stamp before 1970. With a
// sign it is one too.
func (m *Metadata) startOf(v yval) (int64, error) {
	inner, err := v.nested("starting_time", "nanoseconds_since_epoch")
	if err != nil {
		return 0, err
	}
	if n, ok := inner.negative(); ok {
		return n, nil
	}
	u, err := inner.uint(math.MaxUint64)
	return int64(u), err
}

// durationOf returns duration; more than 292 years count as that much. A negative one is nobody's duration: it is a
// warning, and what the storages say counts.
func (m *Metadata) durationOf(v yval) (time.Duration, error) {
	inner, err := v.nested("duration", "nanoseconds")
	if err != nil {
		return 0, err
	}
	if n, ok := inner.negative(); ok {
		m.warnf("%v", inner.errorf("%d is negative", n))
		return time.Duration(n), nil
	}
	u, err := inner.uint(math.MaxUint64)
	return time.Duration(min(u, math.MaxInt64)), err
}

func (v yval) nested(key, sub string) (yval, error) {
	outer, err := v.need(key)
	if err != nil {
		return yval{}, err
	}
	return outer.need(sub)
}
