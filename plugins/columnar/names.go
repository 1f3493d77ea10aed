package columnar

import (
	"fmt"
	"hash/fnv"
	"path"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// maxName is the longest name of a directory that is made of a topic or type; longer ones are cut and get a hash.
const maxName = 180

// topicDir is the directory of a topic's parts: "topic=%2Fimu%2Fdata", which engines that know Hive's partitions turn
// into a column topic = '/imu/data'. A name that has two types gets a directory below for the second, so that one
// directory holds one schema.
func (s *state) topicDir(t plugin.Topic) string {
	dir := "topic=" + escape(t.Name)
	for _, o := range s.topics {
		if o.Name == t.Name {
			return path.Join(dir, "type="+escape(t.Type))
		}
	}
	return dir
}

// escape percent-encodes all but letters, digits, '_', '-' and '.' inside.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-', c == '.' && i > 0 && i < len(s)-1:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	e := b.String()
	if len(e) <= maxName {
		return e
	}
	h := fnv.New64a()
	h.Write([]byte(s)) // never fails
	cut := maxName - 17
	if i := strings.LastIndexByte(e[:cut], '%'); i > cut-3 {
		cut = i // not through an escape
	}
	return fmt.Sprintf("%s~%016x", e[:cut], h.Sum64())
}

// partName is "part-00001.parquet" for columns; parts of payloads are named otherwise, so that "part-*" is of one schema.
func partName(kind byte, dir string, number uint64) string {
	prefix := "part"
	switch kind {
	case partRaw:
		prefix = "raw"
	case partMixed:
		prefix = "small"
	}
	return path.Join(dir, fmt.Sprintf("%s-%05d.parquet", prefix, number))
}

func segmentName(number uint64) string { return fmt.Sprintf("%08d.log", number) }
