package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
	"github.com/spf13/cobra"
)

type topicListFlags struct {
	topicFlags
	types, count, hidden, verbose bool
	spin                          secondsValue
}

func newTopicList(a *app) *cobra.Command {
	f := topicListFlags{spin: secondsValue(1500 * time.Millisecond)}
	cmd := &cobra.Command{
		Use:   "list [BAG]",
		Short: "Name the topics of a bag or on the wire",
		Example: `  gobag topic list -t
  gobag topic list run1 --count-topics`,
		Args: args(cobra.MaximumNArgs(1), "one bag at most"),
		RunE: func(_ *cobra.Command, words []string) error { return runTopicList(a, &f, words) },

		ValidArgsFunction: completeBag,
	}
	f.define(cmd, false)
	fs := cmd.Flags()
	switchFlag(fs, &f.types, "show-types", "t", "add the types")
	switchFlag(fs, &f.count, "count-topics", "c", "only how many there are")
	switchFlag(fs, &f.hidden, "include-hidden-topics", "", "those of services and actions too, and all with a name part that begins with _")
	switchFlag(fs, &f.verbose, "verbose", "v", "add how many publishers and subscriptions there are, of a bag how many messages")
	fs.Var(&f.spin, "spin-time", "on the wire: how long to look")
	return cmd
}

// listedTopic is a line of the list.
type listedTopic struct {
	name       string
	types      []string
	pubs, subs int // of the wire
	messages   uint64
	bag        bool
}

func runTopicList(a *app, f *topicListFlags, words []string) error {
	var topics []listedTopic
	var err error
	if len(words) == 1 {
		topics, err = topicsOfBag(a, f, words[0])
	} else {
		topics, err = topicsOfWire(a, f)
	}
	if err != nil {
		return err
	}
	if !f.hidden {
		topics = slices.DeleteFunc(topics, func(t listedTopic) bool { return ros.Hidden(t.name) })
	}
	slices.SortFunc(topics, func(x, y listedTopic) int { return strings.Compare(x.name, y.name) })
	var b strings.Builder
	switch {
	case f.count:
		fmt.Fprintln(&b, len(topics))
	case f.verbose:
		listVerbose(&b, topics)
	default:
		for _, t := range topics {
			b.WriteString(t.name)
			if f.types {
				fmt.Fprintf(&b, " [%s]", strings.Join(t.types, ", "))
			}
			b.WriteByte('\n')
		}
	}
	_, err = fmt.Fprint(a.out, b.String())
	return err
}

// listVerbose prints the form of `ros2 topic list -v`.
func listVerbose(b *strings.Builder, topics []listedTopic) {
	part := func(title, word string, n func(listedTopic) (int, bool)) {
		fmt.Fprintln(b, title)
		for _, t := range topics {
			if k, ok := n(t); ok {
				fmt.Fprintf(b, " * %s [%s] %s\n", t.name, strings.Join(t.types, ", "), plural(uint64(k), word))
			}
		}
		b.WriteByte('\n')
	}
	if len(topics) > 0 && topics[0].bag {
		part("Recorded topics:", "message", func(t listedTopic) (int, bool) { return int(t.messages), true })
		return
	}
	part("Published topics:", "publisher", func(t listedTopic) (int, bool) { return t.pubs, t.pubs > 0 })
	part("Subscribed topics:", "subscriber", func(t listedTopic) (int, bool) { return t.subs, t.subs > 0 })
}

func topicsOfBag(a *app, f *topicListFlags, path string) ([]listedTopic, error) {
	r, err := openBag(a.ctx, path, bag.ReaderOptions{StorageID: f.storage})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	byName := map[string]int{}
	var topics []listedTopic
	for _, t := range r.Info().Topics {
		i, ok := byName[t.Name]
		if !ok {
			i = len(topics)
			byName[t.Name] = i
			topics = append(topics, listedTopic{name: t.Name, bag: true})
		}
		topics[i].types = append(topics[i].types, t.Type)
		topics[i].messages += t.Count
	}
	return topics, nil
}

func topicsOfWire(a *app, f *topicListFlags) ([]listedTopic, error) {
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	node, err := openNode(a, &f.node)
	if err != nil {
		return nil, err
	}
	defer node.Close()
	ctx, cancel := context.WithTimeout(stop.ctx, time.Duration(f.spin))
	defer cancel()
	<-ctx.Done()
	var topics []listedTopic
	for _, info := range node.Graph().Topics() {
		t := listedTopic{name: info.Name, types: info.Types}
		for _, p := range info.Publishers {
			if !p.Local {
				t.pubs++
			}
		}
		for _, s := range info.Subscriptions {
			if !s.Local {
				t.subs++
			}
		}
		if t.pubs+t.subs > 0 {
			topics = append(topics, t)
		}
	}
	return topics, nil
}
