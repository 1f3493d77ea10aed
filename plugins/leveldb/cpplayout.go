package leveldb

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// The layout of the C++ plugin: two databases for each topic, in directories below the storage. The one of metadata has
// the keys N (name), T (type), SF (serialization format), QF (offered QoS profiles) and E (byte order of the keys in the
// other: "L" or "B"); the one of messages has the stamp as the whole key, in the writer's own byte order.
const (
	pairMetadata = "_ldb_metadata"
	pairMessages = "_ldb_message"
)

// findPairs returns the topics' directories in path, without their endings.
func findPairs(path string) ([]string, error) {
	es, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var pairs []string
	for _, e := range es {
		if stem, ok := strings.CutSuffix(e.Name(), pairMetadata); ok && e.IsDir() && exists(filepath.Join(path, stem+pairMessages, currentFile)) {
			pairs = append(pairs, stem)
		}
	}
	return pairs, nil
}

// stampOrder is the order of the databases of messages. Stamps of one topic are distinct there, so the topic's number
// serves as the order among equal ones.
func stampOrder(bo binary.ByteOrder, topic plugin.TopicID) keyOrder {
	parse := func(key []byte) (stamp, error) {
		if len(key) != 8 {
			return stamp{}, fmt.Errorf("a key has %d bytes; a stamp has 8", len(key))
		}
		return stamp{int64(bo.Uint64(key)), uint64(topic)}, nil
	}
	return keyOrder{
		comparator: timestampComparator,
		parse: func(key []byte) (stamp, bool, error) {
			s, err := parse(key)
			return s, err == nil, err
		},
		bound: func(key []byte) place {
			s, err := parse(key)
			return place{s, err != nil}
		},
	}
}

// loadPairs opens the databases of the C++ plugin. Counts and stamps are read off the keys, since nothing else has them.
func (r *reader) loadPairs(ctx context.Context, pairs []string) error {
	r.info.Format = "C++ plugin, two databases for each topic"
	type named struct {
		plugin.Topic
		bo  binary.ByteOrder
		dir string
	}
	var topics []named
	for _, stem := range pairs {
		t, bo, err := r.pairTopic(ctx, filepath.Join(r.path, stem+pairMetadata))
		if err != nil {
			return err
		}
		topics = append(topics, named{t, bo, filepath.Join(r.path, stem+pairMessages)})
	}
	slices.SortFunc(topics, func(a, b named) int { return cmp.Compare(a.Name, b.Name) })
	cs := counts{}
	for i := range topics {
		t := &topics[i]
		t.ID = plugin.TopicID(i + 1)
		r.info.Topics = append(r.info.Topics, plugin.TopicInfo{Topic: t.Topic})
		db, err := openDatabase(ctx, t.dir, stampOrder(t.bo, t.ID))
		if err != nil {
			return err
		}
		r.parts = append(r.parts, part{db, t.ID})
		r.info.Unclean = r.info.Unclean || db.torn || db.damage != nil
		r.info.Warnings = append(r.info.Warnings, db.warnings...)
	}
	r.tables = arrange(r.parts)
	it := &iterator{r: r}
	it.begin(plugin.Query{})
	defer it.end()
	var m plugin.Message
	for n := 0; ; n++ {
		if n%10_000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := it.next(&m); err != nil {
			break // the end, or damage that reading will come to
		}
		c := cs[m.Topic]
		c.add(m.RecvTime, len(m.Data))
		cs[m.Topic] = c
	}
	return r.setCounts(cs)
}

// pairTopic reads a database of metadata.
func (r *reader) pairTopic(ctx context.Context, dir string) (t plugin.Topic, bo binary.ByteOrder, err error) {
	order := keyOrder{
		comparator: bytewiseComparator,
		parse:      func([]byte) (stamp, bool, error) { return stamp{}, false, nil },
		bound:      func([]byte) place { return place{before: true} },
	}
	db, err := openDatabase(ctx, dir, order)
	if err != nil {
		return t, nil, err
	}
	if err := db.readRecords(r.cache); err != nil {
		return t, nil, err
	}
	r.info.Warnings = append(r.info.Warnings, db.warnings...)
	text := func(key string) string {
		if rec := db.records[key]; rec.kind == typeValue {
			return string(rec.value)
		}
		return ""
	}
	t = plugin.Topic{Name: text("N"), Type: text("T"), SerializationFormat: text("SF"), OfferedQoS: text("QF")}
	if t.Name == "" || t.Type == "" {
		return t, nil, &plugin.CorruptError{Path: dir, Offset: -1, Err: fmt.Errorf("it has no name (N) or no type (T) of its topic")}
	}
	switch text("E") {
	case "L", "":
		bo = binary.LittleEndian
	case "B":
		bo = binary.BigEndian
	default:
		return t, nil, &plugin.CorruptError{Path: dir, Offset: -1, Err: fmt.Errorf("byte order (E) %q is neither L nor B", text("E"))}
	}
	return t, bo, nil
}
