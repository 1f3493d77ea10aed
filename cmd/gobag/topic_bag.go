package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros/transcode"
)

// bagTopics are topics of a bag.
type bagTopics struct {
	r     *bag.Reader
	query plugin.Query
	names []string
	byID  map[plugin.TopicID]*topicEntry
}

func openBagTopics(a *app, f *topicFlags, path string, names []string) (*bagTopics, error) {
	o := bag.ReaderOptions{StorageID: f.storage}
	if !f.asIs {
		turning(a, transcode.FormatCDR, f.msgPath, true, &o) // a bag of ROS 1
	}
	r, err := openBag(a.ctx, path, o)
	if err != nil {
		return nil, err
	}
	b := &bagTopics{r: r, byID: map[plugin.TopicID]*topicEntry{}}
	finder := msg.NewFinder(msg.Options{Dirs: msg.SearchDirs(f.msgPath)})
	var there []string
	for _, name := range names {
		if !inBag(r, name) && inBag(r, "/"+name) { // as ros2 takes it
			name = "/" + name
		}
		b.names = append(b.names, name)
		found := false
		for _, t := range r.Info().Topics {
			if t.Name != name {
				continue
			}
			found = true
			b.query.Topics = append(b.query.Topics, t.ID)
			b.byID[t.ID] = &topicEntry{name: t.Name, typ: t.Type, describe: func(context.Context) (msg.Description, error) {
				if t.SerializationFormat != "cdr" && t.SerializationFormat != "" {
					why := t.Refused
					if why == "" {
						why = "it cannot be decoded"
					}
					return msg.Description{}, fmt.Errorf("its messages are serialized as %s: %s", t.SerializationFormat, why)
				}
				return finder.Describe(t.Type, t.TypeHash, t.Definition.Encoding, t.Definition.Text)
			}}
		}
		if !found {
			for _, t := range r.Info().Topics {
				there = append(there, t.Name)
			}
			r.Close()
			return nil, fmt.Errorf("topic '%s' is not in the bag; there are: %s", name, strings.Join(there, ", "))
		}
	}
	return b, nil
}

func inBag(r *bag.Reader, name string) bool {
	return slices.ContainsFunc(r.Info().Topics, func(t bag.TopicInfo) bool { return t.Name == name })
}

func (b *bagTopics) topics() []string { return b.names }

func (b *bagTopics) Close() error { return b.r.Close() }

func (b *bagTopics) run(ctx context.Context, handle func(*topicMessage) (bool, error)) error {
	it, err := b.r.Messages(b.query)
	if err != nil {
		return err
	}
	defer it.Close()
	var m plugin.Message
	for ctx.Err() == nil {
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		more, err := handle(&topicMessage{topic: b.byID[m.Topic], recv: m.RecvTime, sent: m.SendTime, seq: m.Seq, data: m.Data})
		if err != nil || !more {
			return err
		}
	}
	return nil
}
