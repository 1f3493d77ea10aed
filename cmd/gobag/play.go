package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// playFlags are the flags of `play`, as typed.
type playFlags struct {
	inputs                []string
	clock                 float64
	clockTopics           []string
	clockAll              bool
	untilSec              float64
	untilNsec             int64
	messageOrder          string
	callServices          bool
	asClient              bool
	requestsSource        string
	noLoan                bool
	progressRate          float64
	progressLines         int
	burst                 int64 // of the verb burst: messages; -1 = none
	control               controlFlags
	storage, configFile   string
	rate                  float64
	loop, startPaused     bool
	topics, excludeTopics []string
	services, actions     []string
	excludeServices       []string
	excludeActions        []string
	regex, excludeRegex   string
	remap                 []string
	startOffset, delay    secondsValue
	playbackDuration      float64 // seconds; negative = all
	waitAcked             int64   // ms; negative = do not wait, 0 = for ever
	readAhead             int
	allowLive             bool
	qosFile               string
	noKeyboard            bool
	metrics               metricsFlag

	node     nodeFlags
	ros1     ros1Flags
	logLevel string
}

func newPlay(a *app) *cobra.Command {
	f := playFlags{burst: -1}
	cmd := &cobra.Command{
		Use:   "play BAG…",
		Short: "Publish bags with their own timing and quality of service",
		Long: `Publish the messages of a bag with the timing and the quality of service they were recorded with. BAG is a bag
directory or a single storage file; it goes before the list flags (--topics, --exclude-topics, --remap, …), which take
every word up to the next flag. Several bags, also each with -i, are merged by time.

Topics, the events of services and the topics of actions are chosen independently of each other, as in ros2 bag:
--topics /a plays /a and, unless --services, --actions or --regex say otherwise, all services and actions.

Topics that have a live publisher elsewhere are named and play refuses, unless --allow-live is given.

Keys on a terminal: SPACE pause and resume, → play the next message (while paused), ↑ rate +0.1, ↓ rate -0.1.`,
		Example: `  gobag play run1
  gobag play run1 -r 2 --topics /tf /scan
  gobag play run1 --remap /scan:=/scan_recorded --start-offset 30 --playback-duration 10`,
		RunE: func(_ *cobra.Command, words []string) error {
			if err := f.bags("play", words); err != nil {
				return err
			}
			return runPlay(a, &f)
		},
		ValidArgsFunction: completeBag,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	listFlag(fs, &f.inputs, "input", "i", "bag to play, and its storage format where it is not to be recognised, `BAG [ID]`", false)
	fs.StringVarP(&f.storage, "storage", "s", "", "storage format `ID` (default: recognised by its first bytes)")
	fs.StringVar(&f.configFile, "storage-config-file", "", "YAML `FILE` with settings of the storage format")
	fs.Float64VarP(&f.rate, "rate", "r", 1, "how fast: `FACTOR`, 1 = as recorded")
	switchFlag(fs, &f.loop, "loop", "l", "begin again at the end")
	listFlag(fs, &f.topics, "topics", "", "`TOPIC...` to play, of the topics (default all)", true)
	listFlag(fs, &f.services, "services", "", "`SERVICE...` whose events to play, of the services (default all)", true)
	listFlag(fs, &f.actions, "actions", "", "`ACTION...` to play, of the actions (default all)", true)
	listFlag(fs, &f.excludeTopics, "exclude-topics", "", "`TOPIC...` to leave out", true)
	listFlag(fs, &f.excludeServices, "exclude-services", "", "`SERVICE...` to leave out", true)
	listFlag(fs, &f.excludeActions, "exclude-actions", "", "`ACTION...` to leave out", true)
	fs.StringVarP(&f.regex, "regex", "e", "", "play what is named and what has a name that this ECMAScript regular expression, `RE`, matches whole")
	fs.StringVarP(&f.excludeRegex, "exclude-regex", "x", "", "leave out what has a name that `RE` matches whole")
	listFlag(fs, &f.remap, "remap", "m", "`OLD:=NEW...` topic names", false)
	fs.Var(&f.startOffset, "start-offset", "begin this long after the start of the bag")
	fs.VarP(&f.delay, "delay", "d", "wait this long before the first message")
	fs.Float64Var(&f.playbackDuration, "playback-duration", -1, "stop after this many `SECONDS` of the bag, -1 = at its end")
	fs.Float64Var(&f.untilSec, "playback-until-sec", -1, "stop behind this stamp in `SECONDS`; with --playback-duration the later of both counts")
	fs.Int64Var(&f.untilNsec, "playback-until-nsec", -1, "the same in `NANOSECONDS`")
	fs.StringVar(&f.messageOrder, "message-order", "received", "`ORDER` and times of messages: received, or sent (by the publishers' stamps, within what is read ahead)")
	fs.Float64Var(&f.clock, "clock", 0, "publish the bag's time on /clock, `HZ` times a second (40 where none is given)")
	optionalNumber(fs, "clock", "40")
	listFlag(fs, &f.clockTopics, "clock-topics", "", "publish /clock just before each message of `TOPIC...`", true)
	switchFlag(fs, &f.clockAll, "clock-topics-all", "", "publish /clock just before every message")
	switchFlag(fs, &f.callServices, "publish-service-requests", "", "call services with the recorded requests, instead of publishing their events")
	switchFlag(fs, &f.asClient, "send-actions-as-client", "", "the same for the services of actions; feedback and status are left out")
	fs.StringVar(&f.requestsSource, "service-requests-source", "service_introspection", "whose events hold those requests, `SIDE`: service_introspection or client_introspection")
	fs.Int64Var(&f.waitAcked, "wait-for-all-acked", -1, "wait at the end until reliable subscriptions have acknowledged everything, at most `MS`;\n0 = for ever, -1 = do not wait")
	fs.IntVar(&f.readAhead, "read-ahead-queue-size", 1000, "`N` messages read ahead")
	switchFlag(fs, &f.startPaused, "start-paused", "p", "begin paused")
	switchFlag(fs, &f.allowLive, "allow-live", "", "play also where a topic has a live publisher")
	fs.StringVar(&f.qosFile, "qos-profile-overrides-path", "", "YAML `FILE`: topic to QoS profile")
	switchFlag(fs, &f.noKeyboard, "disable-keyboard-controls", "", "do not read the terminal")
	fs.StringVar(&f.excludeRegex, "exclude", "", "old name of --exclude-regex")
	switchFlag(fs, &f.noLoan, "disable-loan-message", "", "taken for rosbag2's sake: messages are never loaned")
	fs.Float64Var(&f.progressRate, "progress-bar-update-rate", 3, "`HZ` of the progress line, 0 = none, negative = as often as can be seen")
	fs.IntVar(&f.progressLines, "progress-bar-separation-lines", 2, "taken for rosbag2's sake: the progress line stays below the log by itself")
	hide(fs, "exclude", "disable-loan-message", "progress-bar-separation-lines")
	f.node.define(fs, "rosbag2_player")
	f.ros1.define(fs, false)
	f.control.define(fs)
	f.metrics.define(fs)
	fs.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`: debug, info, warn, error or fatal")
	completeFlag(cmd, "storage", completeStorage)
	for kind, flag := range map[nameKind]string{kindTopic: "topics", kindService: "services", kindAction: "actions"} {
		completeFlag(cmd, flag, completeNames(kind))
		completeFlag(cmd, "exclude-"+flag, completeNames(kind))
	}
	completeFlag(cmd, "log-level", completeLevel)
	return cmd
}

// bags takes the bags to play from the words and from -i.
func (f *playFlags) bags(verb string, words []string) error {
	switch {
	case len(words) > 0 && len(f.inputs) > 0:
		return usageError("%s: bags as words and with -i: one of them", verb)
	case len(words)+len(f.inputs) == 0:
		return usageError("%s: one bag directory or storage file is needed, before the list flags (see \"gobag %s --help\")", verb, verb)
	}
	f.inputs = append(words, f.inputs...)
	return nil
}

// newBurst is the verb burst: play that begins paused and sends messages at once.
func newBurst(a *app) *cobra.Command {
	f := playFlags{rate: 1, waitAcked: -1, playbackDuration: -1, untilSec: -1, untilNsec: -1, messageOrder: "received",
		requestsSource: "service_introspection", progressRate: 3}
	cmd := &cobra.Command{
		Use:   "burst BAG",
		Short: "Publish messages of a bag at once, whatever their times, and stay paused",
		Long: `Publish the first messages of a bag as fast as they go, whatever their times, then stay paused: SPACE plays on from there, →
plays the next message, Ctrl-C ends.`,
		Example: `  gobag burst run1 -n 100
  gobag burst run1 --topics /map /tf_static`,
		RunE: func(_ *cobra.Command, words []string) error {
			if f.burst < 0 {
				return usageError("burst: --num-messages %d is negative", f.burst)
			}
			if err := f.bags("burst", words); err != nil {
				return err
			}
			f.startPaused = true
			return runPlay(a, &f)
		},
		ValidArgsFunction: completeBag,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Int64VarP(&f.burst, "num-messages", "n", 0, "`N` messages to publish, 0 = all")
	fs.StringVarP(&f.storage, "storage", "s", "", "storage format `ID` (default: recognised by its first bytes)")
	fs.StringVar(&f.configFile, "storage-config-file", "", "YAML `FILE` with settings of the storage format")
	listFlag(fs, &f.topics, "topics", "", "`TOPIC...` to play, of the topics (default all)", true)
	listFlag(fs, &f.services, "services", "", "`SERVICE...` whose events to play, of the services (default all)", true)
	listFlag(fs, &f.actions, "actions", "", "`ACTION...` to play, of the actions (default all)", true)
	listFlag(fs, &f.remap, "remap", "m", "`OLD:=NEW...` topic names", false)
	fs.Var(&f.startOffset, "start-offset", "begin this long after the start of the bag")
	fs.IntVar(&f.readAhead, "read-ahead-queue-size", 1000, "`N` messages read ahead")
	switchFlag(fs, &f.allowLive, "allow-live", "", "play also where a topic has a live publisher")
	fs.StringVar(&f.qosFile, "qos-profile-overrides-path", "", "YAML `FILE`: topic to QoS profile")
	switchFlag(fs, &f.noKeyboard, "disable-keyboard-controls", "", "do not read the terminal")
	f.node.define(fs, "rosbag2_player")
	f.ros1.define(fs, false)
	f.control.define(fs)
	fs.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`: debug, info, warn, error or fatal")
	completeFlag(cmd, "storage", completeStorage)
	completeFlag(cmd, "log-level", completeLevel)
	return cmd
}

// spanOf is a number of seconds as a duration; negative numbers stay negative.
func spanOf(seconds float64) (time.Duration, error) {
	if seconds < 0 {
		return -1, nil
	}
	return parseSpan(strconv.FormatFloat(seconds, 'g', -1, 64), time.Second)
}
