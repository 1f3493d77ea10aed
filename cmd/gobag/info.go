package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/spf13/cobra"
)

// infoOptions are the flags of `info`.
type infoOptions struct {
	storage   string
	nameOnly  bool
	verbose   bool
	json      bool
	sort      string         // "name", "type" or "count"
	loc       *time.Location // nil = local
	configYML string
}

func newInfo(a *app) *cobra.Command {
	var o infoOptions
	cmd := &cobra.Command{
		Use:   "info BAG",
		Short: "Show what is in a bag",
		Long: `Show what is in a bag: a directory, with or without metadata.yaml, or a single storage file. A bag that was cut off by a
crash, or that is being recorded, opens as it is. Bags recorded by gobag also tell what was lost on the way in.`,
		Example: `  gobag info run1
  gobag info run1 --json | jq '.topics[] | {name, count, lost}'`,
		Args: args(cobra.ExactArgs(1), "one bag directory or storage file is needed"),
		RunE: func(_ *cobra.Command, words []string) error { return runInfo(a, words[0], o) },

		ValidArgsFunction: completeBag,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&o.storage, "storage", "s", "", "storage format `ID` (default: recognised by its first bytes)")
	switchFlag(fs, &o.nameOnly, "topic-name", "t", "only the names of the topics, one a line")
	switchFlag(fs, &o.verbose, "verbose", "v", "add sizes, rates, quality of service and type hashes; reads the whole bag")
	fs.StringVar(&o.sort, "sort", "name", "order `BY` of the topics: name, type or count")
	switchFlag(fs, &o.json, "json", "", "JSON for programs")
	fs.StringVar(&o.configYML, "storage-config-file", "", "YAML `FILE` with settings of the storage format")
	completeFlag(cmd, "storage", completeStorage)
	completeFlag(cmd, "sort", cobra.FixedCompletions([]cobra.Completion{"name", "type", "count"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runInfo(a *app, path string, o infoOptions) error {
	switch o.sort {
	case "name", "type", "count":
	default:
		return usageError("info: --sort %q: not one of name, type, count", o.sort)
	}
	config, err := readYAML(o.configYML)
	if err != nil {
		return fmt.Errorf("--storage-config-file: %w", err)
	}
	r, err := openBag(a.ctx, path, bag.ReaderOptions{StorageID: o.storage, Config: config})
	if err != nil {
		return err
	}
	defer r.Close()
	if o.verbose && o.nameOnly {
		a.logger.Warn("--verbose is given: --topic-name is ignored, as in rosbag2")
		o.nameOnly = false
	}
	var sizes map[plugin.TopicID]topicSize
	if o.verbose {
		if sizes, err = measure(r); err != nil {
			a.logger.Error(fmt.Sprintf("reading stopped: %v", err))
		}
	}
	var text string
	switch {
	case o.json:
		text, err2 := infoJSON(r, sizes, o)
		if err2 != nil {
			return err2
		}
		_, err2 = io.WriteString(a.out, text)
		return errors.Join(err, err2)
	case o.nameOnly:
		text = infoNames(r, o)
	default:
		text = infoText(r, sizes, o)
	}
	_, werr := io.WriteString(a.out, text)
	return errors.Join(err, werr)
}

// topicSize is what reading the whole bag tells of a topic.
type topicSize struct {
	Messages    uint64
	Bytes       int64
	First, Last int64 // RecvTime
	Largest     int64
	Events      [4]uint64 // of a service, by kind: request sent, request received, response sent, response received
}

// requests and responses of a service: client and server may both have reported them.
func (s topicSize) requests() uint64  { return max(s.Events[0], s.Events[1]) }
func (s topicSize) responses() uint64 { return max(s.Events[2], s.Events[3]) }

// eventKind reads the kind of a service event: service_msgs/msg/ServiceEventInfo begins with it, behind the encapsulation
// header.
func eventKind(payload []byte) (kind int, ok bool) {
	if len(payload) < 5 || payload[4] > 3 {
		return 0, false
	}
	return int(payload[4]), true
}

// measure reads the whole bag. On an error what was read until there is returned with it.
func measure(r *bag.Reader) (map[plugin.TopicID]topicSize, error) {
	sizes := map[plugin.TopicID]topicSize{}
	service := map[plugin.TopicID]bool{}
	for _, t := range r.Info().Topics {
		kind, _, _ := classify(t.Name)
		service[t.ID] = kind == kindService
	}
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return sizes, err
	}
	defer it.Close()
	for m := (plugin.Message{}); ; {
		if err := it.Next(&m); errors.Is(err, io.EOF) {
			return sizes, nil
		} else if err != nil {
			return sizes, err
		}
		s, seen := sizes[m.Topic]
		if !seen {
			s.First = m.RecvTime
		}
		s.Messages++
		s.Bytes += int64(len(m.Data))
		s.Last = m.RecvTime
		s.Largest = max(s.Largest, int64(len(m.Data)))
		if kind, ok := eventKind(m.Data); ok && service[m.Topic] {
			s.Events[kind]++
		}
		sizes[m.Topic] = s
	}
}

// nameKind is what a name stands for in rosbag2's listing.
type nameKind int

const (
	kindTopic nameKind = iota
	kindService
	kindAction
)

// actionParts are the hidden names of an action (rosbag2_cpp/action_utils.cpp).
var actionParts = []string{"/_action/feedback", "/_action/status", "/_action/send_goal/_service_event", "/_action/get_result/_service_event", "/_action/cancel_goal/_service_event"}

// classify says whether a topic is an ordinary one, a service's events or a part of an action, and whose.
func classify(name string) (kind nameKind, owner, part string) {
	for _, p := range actionParts {
		if a, ok := strings.CutSuffix(name, p); ok && a != "" {
			return kindAction, a, p
		}
	}
	if s, ok := strings.CutSuffix(name, "/_service_event"); ok && s != "" {
		return kindService, s, ""
	}
	return kindTopic, name, ""
}
