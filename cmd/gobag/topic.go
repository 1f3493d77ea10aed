package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newTopic is the family of verbs that look at topics, of a bag or on the wire, with the flags of `ros2 topic`.
func newTopic(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topic",
		Short: "Look at topics, in a bag or on the wire: list, echo, hz, bw",
		Long: `Look at the topics of a bag or of the network, with the flags and the output of "ros2 topic". With a bag before the
topic the messages are those of the bag, else those that are being published now.`,
		Example: `  gobag topic list
  gobag topic echo run1 /imu --once
  gobag topic echo /tf --field transforms[0].header`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) > 0 {
				return usageError("topic: unknown verb %q%s (see \"gobag topic --help\")", words[0], didYouMean(cmd, words[0]))
			}
			return usageError("topic: say what to do: list, echo, hz or bw (see \"gobag topic --help\")")
		},
	}
	cmd.AddCommand(newTopicList(a), newTopicEcho(a), newTopicHz(a), newTopicBw(a))
	return cmd
}

// topicFlags are those that all of these verbs have.
type topicFlags struct {
	storage string
	node    nodeFlags
	msgPath []string
	timeout secondsValue
	count   int
	once    bool
	asIs    bool   // payloads are looked at as they are
	filter  string // of ros2: refused

	reliability, durability string
}

func (f *topicFlags) define(cmd *cobra.Command, messages bool) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVarP(&f.storage, "storage", "s", "", "of a bag: storage format `ID` (default: recognised by its first bytes)")
	if messages {
		switchFlag(fs, &f.once, "once", "", "stop after one message")
		fs.IntVarP(&f.count, "count", "n", 0, "stop after `N` messages, 0 = never")
		fs.Var(&f.timeout, "timeout", "on the wire: stop when no message came for this long, 0 = wait for ever")
		fs.StringVar(&f.reliability, "qos-reliability", "best_available", "on the wire: `POLICY` reliable, best_effort or best_available (whatever each publisher offers)")
		fs.StringVar(&f.durability, "qos-durability", "best_available", "on the wire: `POLICY` transient_local, volatile or best_available")
	}
	f.node.define(fs, "")
	f.ignored(fs)
	completeFlag(cmd, "storage", completeStorage)
}

// ignored defines flags of ros2 that have nothing to say here: there is no daemon, and a subscription of ours keeps all.
func (f *topicFlags) ignored(fs *pflag.FlagSet) {
	fs.Bool("no-daemon", false, "")
	fs.Bool("use-sim-time", false, "")
	fs.String("qos-profile", "", "")
	fs.String("qos-history", "", "")
	fs.Int("qos-depth", 0, "")
	fs.String("qos-liveliness", "", "")
	fs.Int("qos-liveliness-lease-duration-seconds", 0, "")
	fs.StringVar(&f.filter, "filter", "", "")
	hide(fs, "no-daemon", "use-sim-time", "qos-profile", "qos-history", "qos-depth", "qos-liveliness", "qos-liveliness-lease-duration-seconds", "filter")
}

// limit is the number of messages to stop after, 0 = none.
func (f *topicFlags) limit() (int, error) {
	if f.filter != "" {
		return 0, usageError("--filter: Python expressions are not evaluated here; of a bag, gobag sql takes a WHERE")
	}
	if f.count < 0 {
		return 0, usageError("--count %d: want a number of messages", f.count)
	}
	if f.once {
		return 1, nil
	}
	return f.count, nil
}

var (
	reliabilities = map[string]ros.Reliability{"reliable": ros.Reliable, "best_effort": ros.BestEffort, "best_available": ros.ReliabilityBestAvailable,
		"system_default": ros.ReliabilityBestAvailable}
	durabilities = map[string]ros.Durability{"transient_local": ros.TransientLocal, "volatile": ros.Volatile, "best_available": ros.DurabilityBestAvailable,
		"system_default": ros.DurabilityBestAvailable}
)

func (f *topicFlags) qos() (ros.QoS, error) {
	q := ros.BestAvailableQoS()
	var ok bool
	if q.Reliability, ok = reliabilities[f.reliability]; !ok {
		return q, usageError("--qos-reliability %q: not one of reliable, best_effort, best_available", f.reliability)
	}
	if q.Durability, ok = durabilities[f.durability]; !ok {
		return q, usageError("--qos-durability %q: not one of transient_local, volatile, best_available", f.durability)
	}
	return q, nil
}

// topicMessage is a message of a topic, lent for the call it is handed over in.
type topicMessage struct {
	topic      *topicEntry
	recv, sent int64 // ns since the Unix epoch
	seq        uint64
	data       []byte
}

// topicEntry is a topic with what decodes it.
type topicEntry struct {
	name, typ string
	describe  func(context.Context) (msg.Description, error)
}

// topicSource hands over the messages of topics until its end, an error, or until handle wants no more.
type topicSource interface {
	topics() []string // their names
	run(ctx context.Context, handle func(*topicMessage) (more bool, err error)) error
	Close() error
}

// isBag tells whether the first of the words is a bag: something is there on disk, and more words follow.
func isBag(words []string) bool {
	if len(words) < 2 {
		return false
	}
	_, err := os.Stat(words[0])
	return err == nil
}

// isBagPath tells whether there is a bag at path.
func isBagPath(path string) bool {
	if _, err := plugin.DetectDriver(path); err == nil {
		return true
	}
	return exists(filepath.Join(path, bag.MetadataFile))
}

// openTopics opens what the words of a verb name: a bag and topics, or topics on the wire.
func openTopics(a *app, f *topicFlags, words []string) (topicSource, error) {
	if isBag(words) {
		return openBagTopics(a, f, words[0], words[1:])
	}
	if exists(words[0]) && !strings.HasPrefix(words[0], "/") || len(words) == 1 && isBagPath(words[0]) {
		return nil, usageError("%s is there on disk: name a topic behind the bag, or write a topic on the wire as /%s", words[0], strings.TrimPrefix(words[0], "/"))
	}
	var names []string
	for _, w := range words {
		name := "/" + strings.TrimPrefix(w, "/")
		if err := ros.ValidName(name); err != nil {
			return nil, usageError("%w; to name a bag before it: there is no %q", err, w)
		}
		names = append(names, name)
	}
	return openWireTopics(a, f, names)
}

// untilLimit counts messages and ends after n of them, if n is above 0.
func untilLimit(n int, handle func(*topicMessage) error) func(*topicMessage) (bool, error) {
	seen := 0
	return func(m *topicMessage) (bool, error) {
		if err := handle(m); err != nil {
			return false, err
		}
		seen++
		return n == 0 || seen < n, nil
	}
}

// errNoMessage is the end of a wait for messages.
func errNoMessage(d time.Duration) error {
	return &exitError{exitNothing, fmt.Errorf("no message came for %s", d)}
}
