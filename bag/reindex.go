package bag

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// ReindexResult says what Reindex wrote.
type ReindexResult struct {
	Metadata *Metadata
	Skipped  []SkippedFile // storages that could not be opened; metadata.yaml does not list them
	Backup   string        // where the old metadata.yaml went, relative to the bag; "" if there was none, or no other one
	Warnings []string
}

// oldestRewritten is the oldest version that metadata.yaml is rewritten in: before, file names are relative to the
// directory above.
const oldestRewritten = 4

// Reindex makes metadata.yaml of a bag directory anew from its storages, which it only reads. What storages cannot know
// (QoS profiles of old formats, custom_data) is taken from the metadata.yaml that is there, if it can be read; the file
// itself is kept under another name. Storages that cannot be opened are left out and named. An error means that nothing
// was changed.
//
// storageID "" is by magic bytes.
func Reindex(ctx context.Context, dir, storageID string) (ReindexResult, error) {
	res, err := reindex(ctx, dir, storageID)
	if err != nil {
		return ReindexResult{}, fmt.Errorf("reindex %s: %w", dir, err)
	}
	return res, nil
}

func reindex(ctx context.Context, dir, storageID string) (res ReindexResult, err error) {
	fi, err := os.Stat(dir)
	if err != nil {
		return res, err
	}
	if !fi.IsDir() || isStorageDir(dir) {
		return res, errors.New("is a storage, not the directory of a bag")
	}
	if locked, err := fsx.Locked(dir); err == nil && locked {
		return res, errors.New("somebody is recording into it")
	}
	r, err := Open(ctx, dir, ReaderOptions{StorageID: storageID, Rebuild: true})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	info := r.Info()
	res.Skipped, res.Warnings = info.Skipped, info.Warnings
	m := r.Metadata()
	m.Version = max(m.Version, oldestRewritten)
	if err := r.findCompression(ctx, m); err != nil {
		return res, err
	}
	if m.CustomData[KeyState] != "" {
		custom := map[string]string{}
		for k, v := range m.CustomData {
			custom[k] = v
		}
		custom[KeyState] = StateClosed
		for _, f := range info.Files {
			if f.CutOff {
				custom[KeyState] = StateRecording // readers look closely
			}
		}
		m.CustomData = custom
	}
	res.Metadata = m
	text := m.Encode(0)
	if _, err := ParseMetadata(text); err != nil {
		return res, fmt.Errorf("what was made cannot be read back: %w", err)
	}
	if res.Backup, err = backUp(filepath.Join(dir, MetadataFile), text); err != nil {
		return res, err
	}
	return res, fsx.Publish(filepath.Join(dir, MetadataFile), text)
}

// findCompression sets how the bag is compressed, where no metadata has said so: files by their names, messages by the
// first payload of each storage.
func (r *Reader) findCompression(ctx context.Context, m *Metadata) error {
	if m.CompressionMode != CompressionNone {
		return nil
	}
	for _, f := range r.files {
		if strings.HasSuffix(f.name, zstdExt) {
			m.CompressionMode, m.CompressionFormat = CompressionFile, compressionZstd
			return nil
		}
	}
	if r.unpack != unpackAuto {
		return nil
	}
	for _, f := range r.files {
		packed, err := f.firstIsPacked(ctx)
		if err != nil {
			return err
		}
		if packed {
			m.CompressionMode, m.CompressionFormat = CompressionMessage, compressionZstd
			return nil
		}
	}
	return nil
}

// firstIsPacked says whether the first CDR payload of a storage is a zstd frame, which CDR cannot be.
func (f *readerFile) firstIsPacked(ctx context.Context) (bool, error) {
	rd, err := f.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer f.release()
	q := plugin.Query{Topics: []plugin.TopicID{}}
	for _, t := range rd.Info().Topics {
		if t.SerializationFormat == "cdr" {
			q.Topics = append(q.Topics, t.ID)
		}
	}
	it, err := rd.Messages(q)
	if err != nil {
		return false, err
	}
	var msg plugin.Message
	err = it.Next(&msg)
	packed := err == nil && bytes.HasPrefix(msg.Data, zstdMagic)
	return packed, it.Close() // a storage that cannot be read is not our business here
}

// backUp keeps a file that is about to be replaced by other text, under a name that is free.
func backUp(path string, text []byte) (name string, err error) {
	old, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || len(old) == 0 || bytes.Equal(old, text) {
		return "", err
	}
	for n := 1; ; n++ {
		to := path + ".bak"
		if n > 1 {
			to = fmt.Sprintf("%s.bak%d", path, n)
		}
		have, err := os.ReadFile(to)
		if err == nil && bytes.Equal(have, old) {
			return filepath.Base(to), nil
		}
		if err == nil && n < 1000 {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("keep %s as %s: %w", filepath.Base(path), filepath.Base(to), err)
		}
		return filepath.Base(to), fsx.Publish(to, old)
	}
}
