package shred_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/all"
)

// topicRows are the rows of a topic with what they were made of.
type topicRows struct {
	p        *shred.Program
	b        *shred.Batch
	payloads [][]byte
}

// TestBags appends every message of the real bags and wants every byte back, or a reason.
func TestBags(t *testing.T) {
	root := os.Getenv("GOBAG_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	var dirs []string
	for _, pattern := range []string{"fixtures/bags/*", "fixtures/bags/22-*/*", "fixtures/rosbag2/bags/*"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		dirs = append(dirs, found...)
	}
	if len(dirs) == 0 {
		t.Skip("no shared bags")
	}
	finder := msg.NewFinder(msg.Options{})
	refused, total, taken, undescribed := map[string]int{}, 0, 0, map[string]int{}
	for _, dir := range dirs {
		if ext := filepath.Ext(dir); ext == ".txt" || ext == ".md" {
			continue
		}
		r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{AllowMissing: true, TempDir: t.TempDir()})
		if err != nil {
			t.Logf("%s: %v", filepath.Base(dir), err)
			continue
		}
		topics := map[plugin.TopicID]*topicRows{}
		for _, topic := range r.Info().Topics {
			if topic.SerializationFormat != "cdr" || topic.Count == 0 {
				continue
			}
			d, err := finder.Describe(topic.Type, topic.TypeHash, topic.Definition.Encoding, topic.Definition.Text)
			if err != nil {
				if !errors.Is(err, msg.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s %s: %v", filepath.Base(dir), topic.Name, err)
				}
				undescribed[topic.Type] += int(topic.Count)
				continue
			}
			p, err := shred.Compile(&d)
			if err != nil {
				t.Errorf("%s %s: %v", filepath.Base(dir), topic.Name, err)
				continue
			}
			topics[topic.ID] = &topicRows{p: p, b: p.NewBatch()}
		}
		it, err := r.Messages(plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		var m plugin.Message
		for err = it.Next(&m); err == nil; err = it.Next(&m) {
			rows := topics[m.Topic]
			if rows == nil {
				continue
			}
			total++
			err := rows.p.Append(rows.b, m.Data)
			var not *shred.NotCanonical
			if errors.As(err, &not) {
				refused[not.Reason.String()]++
				rows.loose(t, m.Data, not)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			taken++
			rows.payloads = append(rows.payloads, bytes.Clone(m.Data))
		}
		if !errors.Is(err, io.EOF) {
			t.Logf("%s: %v", filepath.Base(dir), err)
		}
		it.Close()
		r.Close()
		for _, rows := range topics {
			rows.verify(t)
		}
	}
	t.Logf("%d messages, %d given back exactly, refused: %v, without description: %v", total, taken, refused, undescribed)
	if taken < total*99/100 {
		t.Errorf("only %d of %d messages taken", taken, total)
	}
}

// loose appends what was refused; what is assembled then differs in the bytes that were the reason.
func (rows *topicRows) loose(t *testing.T, payload []byte, not *shred.NotCanonical) {
	b := rows.p.NewBatch()
	reason, err := rows.p.AppendLoose(b, payload)
	if not.Reason > shred.Structure {
		if err == nil {
			t.Errorf("%s: taken loosely in spite of %v", rows.p.Type(), not)
		}
		return
	}
	if err != nil || reason != not.Reason {
		t.Errorf("%s: refused for %v, loosely %v, %v", rows.p.Type(), not, reason, err)
		return
	}
	got, err := rows.p.Assemble(nil, b, rows.p.NewCursor())
	if err != nil || rows.p.Append(rows.p.NewBatch(), got) != nil {
		t.Errorf("%s: what is assembled of a loose row is not canonical: %v", rows.p.Type(), err)
	}
	if not.Reason == shred.DirtyPadding && (len(got) != len(payload) || !bytes.Equal(got[:not.Offset], payload[:not.Offset]) || got[not.Offset] != 0) {
		t.Errorf("%s: %v\n got %x\nwant %x", rows.p.Type(), not, got, payload)
	}
}

// verify assembles all rows, after Check and once more after their levels were undone.
func (rows *topicRows) verify(t *testing.T) {
	t.Helper()
	if err := rows.p.Check(rows.b); err != nil {
		t.Error(err)
		return
	}
	c := rows.p.NewCursor()
	var got []byte
	for i, want := range rows.payloads {
		var err error
		if got, err = rows.p.Assemble(got[:0], rows.b, c); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s row %d: %v\n got %x\nwant %x", rows.p.Type(), i, err, got, want)
			return
		}
	}
	if _, err := rows.p.Assemble(nil, rows.b, c); !errors.Is(err, io.EOF) {
		t.Errorf("%s: %v behind the last row", rows.p.Type(), err)
	}
}
