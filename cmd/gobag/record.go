package main

import (
	"time"

	"github.com/spf13/cobra"
)

// recordFlags are the flags of `record`, as typed.
type recordFlags struct {
	output, storage, preset, configFile string
	all, allTopics                      bool
	allServices, allActions             bool
	topics, services, actions           []string
	topicTypes                          []string
	regex, excludeRegex                 string
	excludeTopics, excludeTopicTypes    []string
	excludeServices, excludeActions     []string
	msgPath                             []string
	includeHidden, includeUnpublished   bool
	noDiscovery                         bool
	polling                             millisValue
	qosFile                             string

	maxBagSize, maxCacheSize, minFreeSpace bytesValue
	maxBagDuration, syncInterval, duration secondsValue
	maxMessages                            uint64
	compat                                 string
	customData, priority, throttle         []string
	backpressure                           []string
	profile                                string
	compression                            compressionFlags

	maxBagFiles      int
	maxTotalSize     bytesValue
	maxCacheDuration secondsValue
	snapshotMode     bool
	postRoll         secondsValue
	triggers         []string
	repeat           []string
	repeatAll        int
	startPaused      bool
	useSimTime       bool
	ros1             ros1Flags
	staticTopics     string
	ignoreLeaf       bool
	watchdog         secondsValue
	statsRate        float64
	cacheSet         bool // --max-cache-size was given
	control          controlFlags
	metrics          metricsFlag

	node             nodeFlags
	logLevel         string
	serialization    string // must be "" or "cdr"
	noKeyboard       bool
	untilStdinCloses bool
	dryRun           bool
	minFreeSet       bool // --min-free-space was given
}

func newRecord(a *app) *cobra.Command {
	return newRecordVerb(func(f *recordFlags) error { return runRecord(a, f) })
}

// newRecordVerb is a verb with the flags of record.
func newRecordVerb(run func(*recordFlags) error) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record [TOPIC…]",
		Short: "Record topics, services and actions into a bag",
		Long: `Record topics, services and actions into a bag until Ctrl-C, SIGTERM or a limit. At least one of -a, --all-topics,
--all-services, --all-actions, --topics, --services, --actions, --topic-types, --regex or a positional topic is needed.

A service is recorded by the events of its introspection, which must be switched on in its client or server; an action
by its feedback, its status and the events of its three services. Topics, services and actions are chosen independently
of each other; exclusions win.

A full queue never blocks a publisher: the largest topics by bandwidth give way first, --priority orders the rest, and
every message that is not in the bag is counted: lost on the wire, at the queue, or by the storage. The table at the end
shows it, and the bag keeps it. Only topics of --backpressure are not acknowledged while the queue has no room.

The last messages of latched topics (transient local) are repeated at the head of each further file and of each snapshot,
so that every file has the map and the static transforms.

With --snapshot-mode the last messages are kept in memory, 80 % of --max-cache-size and at most --max-cache-duration of
them, and written when "gobag ctl snapshot", the service ~/snapshot or a --trigger asks for it: each time into a bag of its
own below DIR, which goes on for --post-roll.

Key on a terminal: SPACE pauses and resumes.

List flags take several words, commas or repetition: --topics /a /b, --topics /a,/b, --topics /a --topics /b.
Times are seconds ("30", "1.5") or have a unit ("500ms", "5m"); sizes are bytes or have a unit ("100MB", "1GiB").

The definitions of message types go into the bag: from --msg-path, $AMENT_PREFIX_PATH, /opt/ros, ./install or a built-in
table, else from the node that publishes the type. Unknown types are recorded all the same.

Exit codes: 0 done, 1 failed, 2 usage, 3 something named never appeared or no message came, 4 the disk fell below
--min-free-space.`,
		Example: `  gobag record -a
  gobag record /scan /tf -o run1
  gobag record --topics /camera/image_raw /imu/data -b 1GB --priority /imu/data=10
  gobag record --services /add_two_ints --actions /navigate_to_pose --topics /tf
  gobag record -e '^/robot1/' -x '/debug' --duration 60`,
		RunE: func(cmd *cobra.Command, words []string) error {
			f.topics = append(f.topics, words...)
			f.minFreeSet, f.cacheSet = cmd.Flags().Changed("min-free-space"), cmd.Flags().Changed("max-cache-size")
			return run(&f)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	switchFlag(fs, &f.all, "all", "a", "record all topics, services and actions, hidden ones excepted")
	switchFlag(fs, &f.allTopics, "all-topics", "", "record all topics")
	switchFlag(fs, &f.allServices, "all-services", "", "record all services that have introspection switched on")
	switchFlag(fs, &f.allActions, "all-actions", "", "record all actions")
	listFlag(fs, &f.topics, "topics", "", "`TOPIC...` to record", true)
	listFlag(fs, &f.services, "services", "", "`SERVICE...` to record", true)
	listFlag(fs, &f.actions, "actions", "", "`ACTION...` to record", true)
	listFlag(fs, &f.topicTypes, "topic-types", "", "record every topic of these types, `TYPE...`", true)
	fs.StringVarP(&f.regex, "regex", "e", "", "record what has a name in which this ECMAScript regular expression, `RE`, is found;\nwhere --all-… takes everything it has no effect")
	fs.StringVarP(&f.excludeRegex, "exclude-regex", "x", "", "leave out what has a name in which `RE` is found")
	listFlag(fs, &f.excludeTopics, "exclude-topics", "", "`TOPIC...` to leave out", true)
	listFlag(fs, &f.excludeServices, "exclude-services", "", "`SERVICE...` to leave out", true)
	listFlag(fs, &f.excludeActions, "exclude-actions", "", "`ACTION...` to leave out", true)
	listFlag(fs, &f.excludeTopicTypes, "exclude-topic-types", "", "leave out topics of these types, `TYPE...`", true)
	switchFlag(fs, &f.includeHidden, "include-hidden-topics", "", "also topics with a name part that starts with '_'")
	switchFlag(fs, &f.includeUnpublished, "include-unpublished-topics", "", "also topics that have only subscribers")
	switchFlag(fs, &f.ignoreLeaf, "ignore-leaf-topics", "", "leave out topics that nobody else subscribes to")
	fs.StringVar(&f.staticTopics, "static-topics-path", "", "YAML `FILE` with static_topics_and_types_list: [[NAME, TYPE], …], subscribed at once")
	switchFlag(fs, &f.noDiscovery, "no-discovery", "", "look for topics once, at the start")
	f.polling = millisValue(100 * time.Millisecond)
	fs.VarP(&f.polling, "polling-interval", "p", "longest time between two looks at the graph")

	fs.StringVarP(&f.output, "output", "o", "", "bag directory `DIR` to create (default rosbag2_YYYY_MM_DD-HH_MM_SS)")
	fs.StringVarP(&f.storage, "storage", "s", "", "storage format `ID`, see 'gobag list storage' (default "+defaultStorage+"; sqlite3 for Humble); null keeps nothing, to measure")
	fs.StringVar(&f.preset, "storage-preset-profile", "", "`NAME`: resilient (default): a crash or power cut costs at most one sync interval;\nfast: fewer syncs; small: compressed; none: rosbag2's settings, see 'gobag list storage -v'")
	fs.StringVar(&f.configFile, "storage-config-file", "", "YAML `FILE` with settings of the storage format")
	fs.VarP(&f.maxBagSize, "max-bag-size", "b", "begin a new file at this size (default never)")
	fs.VarP(&f.maxBagDuration, "max-bag-duration", "d", "begin a new file after this time (default never)")
	fs.IntVar(&f.maxBagFiles, "max-bag-files", 0, "keep `N` files, of a bag that is split, and delete the oldest (default all)")
	fs.Var(&f.maxTotalSize, "max-total-size", "delete the oldest files when the bag is larger, in snapshot mode the oldest snapshots\nthat are not protected (default never)")
	f.syncInterval = secondsValue(time.Second)
	fs.Var(&f.syncInterval, "sync-interval", "what a crash or power cut may cost: a message is on the disk this long after it came")
	fs.StringVar(&f.compat, "compat", "auto", "`ROS` whose tools must open the bag: auto, humble or jazzy (jazzy and later)")
	f.compression.define(cmd, fs)
	listFlag(fs, &f.customData, "custom-data", "", "`KEY=VALUE...` to store in the bag's metadata", false)

	fs.Var(&f.maxCacheSize, "max-cache-size", "memory for messages not yet written (default the smaller of 100 MiB and 5 % of RAM)")
	fs.StringVar(&f.profile, "profile", "", "`NAME` of how to behave beside others: robot gives way to the robot's own programs (nice value, two threads,\nfirst to go when memory runs out)")
	listFlag(fs, &f.throttle, "throttle", "", "`TOPIC=HZ...`: record at most HZ messages a second of a topic; the rest is counted as skipped", false)
	listFlag(fs, &f.backpressure, "backpressure", "", "`TOPIC...` whose reliable publishers wait for the disk instead of losing; all others are never held", true)
	listFlag(fs, &f.priority, "priority", "", "`TOPIC=N...`: topics with a higher N are dropped later when the queue is full", false)
	fs.Var(&f.maxCacheDuration, "max-cache-duration", "longest time between the oldest and the newest message in that memory (default any)")
	switchFlag(fs, &f.snapshotMode, "snapshot-mode", "", "keep the last messages in memory and write them when asked to")
	fs.Var(&f.postRoll, "post-roll", "how long a snapshot goes on after it was asked for")
	listFlag(fs, &f.triggers, "trigger", "", "take a snapshot when a message matches, `'TOPIC FIELD>=VALUE'`: '/diagnostics level>=2'", false)
	listFlag(fs, &f.repeat, "repeat-transient-local", "", "`TOPIC[=DEPTH]...`: repeat the last DEPTH (1) messages at the head of each file and snapshot", false)
	fs.IntVar(&f.repeatAll, "repeat-all-transient-local", 1, "the same for every latched topic, `DEPTH` messages; 0 = none")
	optionalNumber(fs, "repeat-all-transient-local", "1")
	switchFlag(fs, &f.startPaused, "start-paused", "", "begin paused")
	switchFlag(fs, &f.useSimTime, "use-sim-time", "", "stamp messages by /clock; nothing is recorded before its first message")
	fs.Var(&f.duration, "duration", "stop after this time")
	fs.Uint64Var(&f.maxMessages, "max-messages", 0, "stop after `N` messages")
	fs.Var(&f.minFreeSpace, "min-free-space", "stop when the disk has less left, 0 = never (default the larger of 500 MB and 2 %)")

	listFlag(fs, &f.msgPath, "msg-path", "", "look for message definitions here first, `DIR...`: an install prefix, workspace or folder of packages", true)
	fs.StringVar(&f.qosFile, "qos-profile-overrides-path", "", "YAML `FILE`: topic to QoS profile")
	f.node.define(fs, "rosbag2_recorder")
	f.ros1.define(fs, true)
	f.control.define(fs)
	f.metrics.define(fs)
	fs.Float64Var(&f.statsRate, "stats_max_publishing_rate", 1, "`HZ` at most of events/rosbag2_messages_lost, 0 = never")
	f.watchdog = secondsValue(30 * time.Second)
	fs.Var(&f.watchdog, "watchdog", "messages come but nothing reaches the disk for so long: an error, and exit code 1 at the end; 0 = never")
	switchFlag(fs, &f.dryRun, "dry-run", "", "listen for 5 s, measure the disk, say what would be recorded and whether it fits (exit code 1 if not), and leave nothing")
	fs.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`: debug, info, warn, error or fatal")
	switchFlag(fs, &f.untilStdinCloses, "until-stdin-closes", "", "stop when standard input ends")
	fs.StringVar(&f.excludeRegex, "exclude", "", "old name of --exclude-regex")
	fs.StringVarP(&f.serialization, "serialization-format", "f", "", "only what comes off the wire: cdr")
	switchFlag(fs, &f.noKeyboard, "disable-keyboard-controls", "", "do not read the terminal")
	hide(fs, "until-stdin-closes", "exclude", "serialization-format")
	completeFlag(cmd, "storage", completeStorage)
	completeFlag(cmd, "storage-preset-profile", cobra.FixedCompletions([]cobra.Completion{"resilient", "fast", "small", "none"}, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "compat", cobra.FixedCompletions([]cobra.Completion{"auto", "humble", "jazzy"}, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "log-level", completeLevel)
	completeFlag(cmd, "output", cobra.NoFileCompletions)
	return cmd
}
