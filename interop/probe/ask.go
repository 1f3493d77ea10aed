//go:build linux

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
)

// ask asks the node behind the first publisher of a topic how it defines the topic's type, and prints its answer as an event:
// {"event":"answer","type":…,"hash":…,"sources":[{"Type":…,"Encoding":…,"Text":…}]} or {"event":"refused","reason":…}.
func ask(ctx context.Context, args []string, domain int) error {
	var f flag.FlagSet
	f.SetOutput(io.Discard)
	f.Init("probe ask", flag.ContinueOnError)
	topic := f.String("topic", "", "whose publisher is asked")
	typ := f.String("type", "", "type asked for; that of the topic unless given")
	hash := f.String("hash", "", "hash asked for; the one that the publisher announces unless given")
	timeout := f.Duration("timeout", 10*time.Second, "when to give up")
	if err := f.Parse(args); err != nil || *topic == "" || f.NArg() > 0 {
		return fmt.Errorf("%w; or probe ask -topic /NAME [-type T] [-hash H] [-timeout D]", errUsage)
	}
	n, err := ros2.New(ros2.Options{Domain: domain})
	if err != nil {
		return err
	}
	defer n.Close()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	pub, err := publisherOf(ctx, n.Graph(), *topic)
	if err != nil {
		return err
	}
	if *typ == "" {
		*typ = pub.Topic.Type
	}
	if *hash == "" {
		*hash = pub.Topic.TypeHash
	}
	sources, err := n.DescribeType(ctx, pub.ID, *typ, *hash)
	if p, err := publisherOf(ctx, n.Graph(), *topic); err == nil { // by now its node may be known
		pub = p
	}
	event := map[string]any{"event": "answer", "type": *typ, "hash": *hash, "node": pub.Node, "sources": sources}
	if err != nil {
		event = map[string]any{"event": "refused", "reason": err.Error()}
	}
	return json.NewEncoder(os.Stdout).Encode(event)
}

// publisherOf waits for a publisher of the topic.
func publisherOf(ctx context.Context, g ros.Graph, topic string) (ros.Endpoint, error) {
	for {
		changed := g.Changed()
		for _, t := range g.Topics() {
			if t.Name == topic && len(t.Publishers) > 0 {
				return t.Publishers[0], nil
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ros.Endpoint{}, fmt.Errorf("topic %s: no publisher: %w", topic, ctx.Err())
		}
	}
}
