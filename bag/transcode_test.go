package bag_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/all"
)

// A reader with a transcoder gives topics and payloads turned, names what is refused, and ends at, or leaves out, a
// message that cannot be turned.
func TestTranscode(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	w, err := bag.Create(context.Background(), dir, bag.WriterOptions{SyncInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	var ids []plugin.TopicID
	for _, name := range []string{"/up", "/refused", "/same"} {
		id, err := w.AddTopic(plugin.Topic{Name: name, Type: "a/T", SerializationFormat: "ros1", TypeHash: "old"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	for i, data := range []string{"abc", "bad", "def"} {
		for _, id := range ids {
			if err := w.Write([]plugin.Message{{Topic: id, RecvTime: int64(i), Data: []byte(data)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	errBad := errors.New("bad payload")
	transcode := func(x plugin.Topic) (*bag.Transcoding, error) {
		switch x.Name {
		case "/refused":
			return nil, errors.New("no such type")
		case "/same":
			return nil, nil
		}
		return &bag.Transcoding{Type: "a/msg/T", TypeHash: "new", SerializationFormat: "cdr", Append: func(dst, payload []byte) ([]byte, error) {
			if string(payload) == "bad" {
				return dst, errBad
			}
			return append(dst, bytes.ToUpper(payload)...), nil
		}}, nil
	}
	read := func(o bag.ReaderOptions) (got []string, err error) {
		r, err := bag.Open(context.Background(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		topics := r.Info().Topics
		if topics[0].Type != "a/msg/T" || topics[0].TypeHash != "new" || topics[0].SerializationFormat != "cdr" || topics[1].Refused != "no such type" ||
			topics[1].SerializationFormat != "ros1" || topics[2].Type != "a/T" || topics[2].Refused != "" {
			t.Errorf("topics are %+v", topics)
		}
		if r.Metadata().Topics[0].Type != "a/T" {
			t.Error("the metadata is not the bag's own")
		}
		it, err := r.Messages(plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for {
			var m plugin.Message
			if err := it.Next(&m); errors.Is(err, io.EOF) {
				return got, nil
			} else if err != nil {
				return got, err
			}
			got = append(got, string(m.Data))
		}
	}
	got, err := read(bag.ReaderOptions{Transcode: transcode})
	var turn *bag.TurnError
	if !errors.As(err, &turn) || !errors.Is(err, errBad) || turn.Topic != "/up" || turn.RecvTime != 1 || len(got) != 3 {
		t.Errorf("%q, %v", got, err)
	}
	var said []*bag.TurnError
	got, err = read(bag.ReaderOptions{Transcode: transcode, OnTurnError: func(e *bag.TurnError) { said = append(said, e) }})
	if err != nil || len(got) != 8 || got[0] != "ABC" || got[1] != "abc" || got[5] != "DEF" || len(said) != 1 {
		t.Errorf("%q, %v, %v", got, said, err)
	}
}
