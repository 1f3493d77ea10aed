package main

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// playFlags are the flags of `play`, as typed.
type playFlags struct {
	bag                   string
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

	node     nodeFlags
	logLevel string
}

func newPlay(a *app) *cobra.Command {
	var f playFlags
	cmd := &cobra.Command{
		Use:   "play BAG",
		Short: "Publish a bag with its own timing and quality of service",
		Long: `Publish the messages of a bag with the timing and the quality of service they were recorded with. BAG is a bag
directory or a single storage file; it goes before the list flags (--topics, --exclude-topics, --remap, …), which take
every word up to the next flag.

Topics, the events of services and the topics of actions are chosen independently of each other, as in ros2 bag:
--topics /a plays /a and, unless --services, --actions or --regex say otherwise, all services and actions.

Topics that have a live publisher elsewhere are named and play refuses, unless --allow-live is given.

Keys on a terminal: SPACE pause and resume, → play the next message (while paused), ↑ rate +0.1, ↓ rate -0.1.`,
		Example: `  gobag play run1
  gobag play run1 -r 2 --topics /tf /scan
  gobag play run1 --remap /scan:=/scan_recorded --start-offset 30 --playback-duration 10`,
		Args: args(cobra.ExactArgs(1), "one bag directory or storage file is needed, before the list flags"),
		RunE: func(_ *cobra.Command, words []string) error {
			f.bag = words[0]
			return runPlay(a, &f)
		},
		ValidArgsFunction: completeBag,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
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
	fs.Int64Var(&f.waitAcked, "wait-for-all-acked", -1, "wait at the end until reliable subscriptions have acknowledged everything, at most `MS`;\n0 = for ever, -1 = do not wait")
	fs.IntVar(&f.readAhead, "read-ahead-queue-size", 1000, "`N` messages read ahead")
	switchFlag(fs, &f.startPaused, "start-paused", "p", "begin paused")
	switchFlag(fs, &f.allowLive, "allow-live", "", "play also where a topic has a live publisher")
	fs.StringVar(&f.qosFile, "qos-profile-overrides-path", "", "YAML `FILE`: topic to QoS profile")
	switchFlag(fs, &f.noKeyboard, "disable-keyboard-controls", "", "do not read the terminal")
	fs.StringVar(&f.excludeRegex, "exclude", "", "old name of --exclude-regex")
	hide(fs, "exclude")
	f.node.define(fs, "gobag_player")
	fs.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`: debug, info, warn, error or fatal")
	completeFlag(cmd, "storage", completeStorage)
	for kind, flag := range map[nameKind]string{kindTopic: "topics", kindService: "services", kindAction: "actions"} {
		completeFlag(cmd, flag, completeNames(kind))
		completeFlag(cmd, "exclude-"+flag, completeNames(kind))
	}
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
