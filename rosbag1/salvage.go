package rosbag1

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gobag/gobag/plugin"
)

// Salvage hands every message of every chunk that can be read to w, by time. The index is not used.
func (Driver) Salvage(ctx context.Context, path string, w plugin.Writer) (plugin.Report, error) {
	var rep plugin.Report
	r, err := open(ctx, path, true)
	if err != nil {
		return rep, fmt.Errorf("salvage storage %s: %w", path, err)
	}
	defer func() { _ = r.Close() }() // it was only read
	rep.Notes = r.info.Warnings
	ids := make([]plugin.TopicID, len(r.info.Topics)+1)
	for _, t := range r.info.Topics {
		if ids[t.ID], err = w.AddTopic(t.Topic); err != nil {
			return rep, err
		}
	}
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return rep, err
	}
	defer it.Close()
	one := make([]plugin.Message, 1)
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return rep, ctx.Err()
		}
		err := it.Next(&one[0])
		var corrupt *plugin.CorruptError
		if errors.As(err, &corrupt) { // in the notes already, where it was met while opening
			rep.Notes = append(rep.Notes, err.Error())
			return rep, nil
		}
		if errors.Is(err, io.EOF) {
			return rep, nil
		}
		if err != nil {
			return rep, err
		}
		one[0].Topic = ids[one[0].Topic]
		if err := w.Write(one); err != nil {
			return rep, err
		}
		rep.Messages++
	}
}
