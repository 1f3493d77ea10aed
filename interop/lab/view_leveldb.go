//go:build linux

package lab

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// levelDBRecord is one key with its value.
type levelDBRecord struct{ key, value []byte }

// dumpLevelDB reads a copy of a database with the C++ library.
func dumpLevelDB(dir string) ([]levelDBRecord, error) {
	program, err := Peer("lvl_dump")
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "gobag-lab-leveldb-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	copied := filepath.Join(scratch, "db")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		return nil, err
	}
	out, err := output("the C++ LevelDB", program, copied)
	if err != nil {
		return nil, err
	}
	var all []levelDBRecord
	for line := range bytes.Lines(out) {
		key, value, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if !ok {
			return nil, fmt.Errorf("a line of lvl_dump without a value: %.40q", line)
		}
		var r levelDBRecord
		var errs [2]error
		r.key, errs[0] = hex.DecodeString(string(key))
		r.value, errs[1] = hex.DecodeString(string(value))
		if err := firstError(errs[:]); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// ViewLevelDB reads the storages of a bag with the C++ library and the layout of docs/formats/leveldb.md, written here
// anew. Of the topics it knows what order they were added in: topics names them. texts are the values that are no
// messages, of all storages.
func ViewLevelDB(dir string, topics []TopicView) (v View, texts [][]byte, err error) {
	dirs, err := filepath.Glob(filepath.Join(dir, "*", "CURRENT"))
	if err != nil {
		return v, nil, err
	}
	if len(dirs) == 0 {
		return v, nil, fmt.Errorf("read %s: no LevelDB in it", dir)
	}
	// Files are numbered: those of a longer name come later.
	slices.SortFunc(dirs, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return bytes.Compare([]byte(a), []byte(b))
	})
	for _, current := range dirs {
		records, err := dumpLevelDB(filepath.Dir(current))
		if err != nil {
			return v, nil, err
		}
		for _, r := range records {
			if r.key[0] != 'm' {
				texts = append(texts, r.value)
				continue
			}
			m, err := levelDBMessage(r, topics)
			if err != nil {
				return v, nil, fmt.Errorf("%s: key %x: %w", filepath.Dir(current), r.key, err)
			}
			v.Messages = append(v.Messages, m)
		}
	}
	return v, texts, nil
}

func levelDBMessage(r levelDBRecord, topics []TopicView) (MessageView, error) {
	if len(r.key) != 17 {
		return MessageView{}, fmt.Errorf("%d bytes", len(r.key))
	}
	stamp := int64(binary.BigEndian.Uint64(r.key[1:9]) ^ 1<<63)
	value := r.value
	var fields [3]uint64 // topic, source, sequence number
	for i := range fields {
		v, n := binary.Uvarint(value)
		if n <= 0 {
			return MessageView{}, errors.New("the value is too short")
		}
		fields[i], value = v, value[n:]
	}
	delta, n := binary.Varint(value)
	if n <= 0 {
		return MessageView{}, errors.New("the value is too short")
	}
	value = value[n:]
	if fields[0] == 0 || fields[0] > uint64(len(topics)) {
		return MessageView{}, fmt.Errorf("topic %d of %d", fields[0], len(topics))
	}
	t := topics[fields[0]-1]
	return MessageView{Line{t.Name, t.Type, stamp, len(value), FNV1a(value)}, stamp + delta, fields[2]}, nil
}
