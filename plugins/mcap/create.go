package mcap

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"strings"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// metadataName and metadataKey are rosbag2's.
const (
	metadataName = "rosbag2"
	metadataKey  = "serialized_metadata"
	library      = "gobag"
)

func create(ctx context.Context, path string, o plugin.WriteOptions) (*writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	set, err := lookupPreset(o.Preset)
	if err == nil {
		err = set.configure(o.Config)
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(path); err == nil {
		return nil, plugin.ErrExists
	}
	w := &writer{path: path, set: set, distro: o.ROSDistro, byKey: map[topicKey]plugin.TopicID{}, schemas: map[schemaKey]uint16{},
		start: plugin.NoStart, total: span{lo: plugin.NoStart}}
	w.chunk.noSum = set.noChunkCRC && set.noDataCRC
	if w.comp, err = newCompressor(set); err != nil {
		return nil, err
	}
	b := header(ros2Profile)
	if o.Metadata != (plugin.Metadata{}) {
		from := len(b)
		b = appendMetadata(b, metadataName, metadataKey, o.Metadata.Text)
		w.metadata = append(w.metadata, place{int64(from), int64(len(b) - from)})
	}
	b, at := beginOwn(b, opTopics)
	b = endOwn(appendTopics(appendText(b, o.ROSDistro), nil), at)
	if err := publish(path, b); err != nil {
		return nil, err
	}
	if w.f, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if _, err := w.f.Seek(int64(len(b)), 0); err != nil {
		return nil, errors.Join(err, w.f.Close())
	}
	w.off = int64(len(b))
	if !set.noDataCRC { // 0 says that there is none
		w.crc = crc32.ChecksumIEEE(b)
	}
	w.synced = w.off
	w.updateSize()
	return w, nil
}

// publish makes the beginning of the file durable under a temporary name first: nothing lies at path that does not
// open.
func publish(path string, b []byte) error {
	tmp := fsx.TempName(path)
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = fsx.PublishNew(tmp, path)
	}
	if err != nil {
		err = errors.Join(err, removeIfThere(tmp))
	}
	if errors.Is(err, fs.ErrExist) {
		return plugin.ErrExists
	}
	return err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// metadataVersion is the number in the line "version: N" of a bag's description; 0 if there is none.
func metadataVersion(text string) int {
	v := 0
	if s, ok := topLevel(text, "version"); ok {
		_, _ = fmt.Sscan(s, &v) // stays 0
	}
	return v
}

// topLevel is the value of a key that begins a line.
func topLevel(text, key string) (string, bool) {
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// place is where a record lies: the offset of its first byte and its length, head included.
type place struct{ off, n int64 }
