package recorder

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// Options configure a Recorder. Node and one selector (All, Topics, Regex, TopicTypes) are needed; all other fields may
// be left zero.
type Options struct {
	Node ros.Node // not closed by the recorder

	Format string // serialization format that Node delivers; "" = "cdr"

	// The bag; see bag.WriterOptions.
	Output         string // directory to create; "" = rosbag2_<local time> in the working directory, as rosbag2 does
	Storage        string // StorageNull keeps nothing
	Preset         string
	Config         map[string]any
	MaxBagSize     int64         // bytes; 0 = never split by size
	MaxBagDuration time.Duration // 0 = never split by time
	MaxBagFiles    int           // the oldest files are deleted; needs a split by size or time. 0 = keep all
	MaxTotalSize   int64         // bytes on disk: the oldest files are deleted, in snapshot mode the oldest snapshots that are not protected. 0 = no limit
	SyncInterval   time.Duration // 0 = 1 s
	Compat         plugin.Compat
	ROSDistro      string
	CustomData     map[string]string // keys that start with "gobag." are refused
	Compression    bag.Compression   // waiting for a compressor happens in the queue, where its rules say what gives way

	// What is recorded. There are three classes, as in rosbag2: topics, the introspection events of services, and the five
	// topics of each action. A topic is recorded when a selector of its class takes it and no exclusion matches. Exclusions
	// win, also over names, and need something to exclude from: All or its part for the class, Regex, or (topics) TopicTypes.
	All                bool     // all topics, services and actions; hidden ones only with IncludeHidden
	AllTopics          bool     // the parts of All, one by one
	AllServices        bool     //
	AllActions         bool     //
	Topics             []string // exact names; a missing leading slash is added. Hidden topics named here are recorded
	Services           []string // exact names of services: their /_service_event topics
	Actions            []string // exact names of actions: feedback, status and the events of their three services
	Regex              string   // ECMAScript, found anywhere in the topic's, service's or action's name; chooses in the classes that All does not take
	TopicTypes         []string // every topic of one of these types
	ExcludeRegex       string   // as Regex
	ExcludeTopics      []string // exact names
	ExcludeServices    []string
	ExcludeActions     []string
	ExcludeTopicTypes  []string
	IncludeHidden      bool          // also topics with a name part that starts with "_"
	IncludeUnpublished bool          // also topics that have only subscribers
	IgnoreLeaf         bool          // leave out topics that nobody else subscribes to
	StaticTopics       []ros.Topic   // subscribed at once, with name and type, whether somebody publishes them or not
	NoDiscovery        bool          // look at the graph once, when it has settled, and never again
	PollingInterval    time.Duration // longest time between two looks at the graph; 0 = 100 ms

	// Subscriptions ask every publisher for the most it offers, unless the topic has an override here.
	QoSOverrides map[string]ros.QoS

	// Definition returns the text that a type was generated from, for storages that keep it. hash is what the publishers
	// announce, "" if they do not; a definition with another hash must not be returned. After an error the nodes that
	// publish the type are asked, where Node is a ros.TypeDescriber; where they do not know either, the topic is recorded
	// without one. nil = look in the directories of MsgPath, then in the ROS installations of this machine, then in the
	// built-in table.
	// ErrDefinitionLater says that it will be known when a publisher's hash is.
	Definition func(typ, hash string) (plugin.Definition, error)
	MsgPath    []string // directories of interface definitions, in any layout of ROS 2; they must exist

	// The last messages of latched topics are repeated at the head of each further file and of each snapshot, marked as
	// repeats. A topic is latched when all its publishers offer transient local.
	RepeatTransientLocal    map[string]int // by topic, how many; wins over RepeatAllTransientLocal, and holds for topics that are not latched too
	RepeatAllTransientLocal int            // of every latched topic; 0 = 1, negative = none

	StartPaused bool // begin paused; see Pause
	UseSimTime  bool // stamp messages by /clock; nothing is recorded before its first message

	// SnapshotMode keeps the last messages in memory and writes them when TakeSnapshot is called or a Trigger matches:
	// each snapshot is a bag of its own in Output, which may be there already. Before the first nothing is created.
	SnapshotMode bool
	PostRoll     time.Duration // how long a snapshot goes on after it was asked for
	Triggers     []Trigger

	// Limits.
	MaxCacheDuration time.Duration      // longest time between the oldest and the newest message in memory; in snapshot mode what a snapshot begins with at most. 0 = any
	Watchdog         time.Duration      // messages come but nothing reaches the storage for so long: an error, once, and at the end ErrStalled; 0 = 30 s, negative = never
	MaxCacheSize     int64              // bytes of memory for messages not yet written, overhead included; 0 = DefaultCacheSize()
	Priority         map[string]int     // topics with a higher number are dropped later when the queue is full; default 0
	Throttle         map[string]float64 // topics of which at most so many messages a second are recorded; the others are counted as skipped
	Backpressure     []string           // topics whose reliable publishers wait for the storage instead of losing; all of them may fill half of the cache
	Duration         time.Duration      // stop after this time; 0 = never
	MaxMessages      uint64             // stop when this many are recorded, exactly; 0 = never
	MinFreeSpace     int64              // bytes; stop when the disk has less left. 0 = max(500 MB, 2 % of the disk), negative = never
	StopTimeout      time.Duration      // give up waiting for the storage at the end when it made no progress for so long; 0 = 30 s

	Now     func() int64 // wall clock, ns since the Unix epoch, watched for steps; nil = the system's
	Logger  *slog.Logger // nil = silent. Gets the events too when OnEvent is nil
	OnEvent func(Event)  // called by one goroutine of the recorder; the recording does not wait for it

	// OnSplit is called when a file was closed and the next one begun, by names relative to the bag, and with opened ""
	// when the bag was closed; in snapshot mode the names are those of the snapshots. It must not block.
	OnSplit func(closed, opened string)

	// FreeSpace returns the bytes left on and the size of the file system that holds path; nil = ask the system.
	FreeSpace func(path string) (free, total int64, err error)
}

// Trigger takes a snapshot when a message of a topic matches.
type Trigger struct {
	Topic string
	Text  string // for people: "/diagnostics level>=2"

	// Match looks at a payload, which it must not keep. It is called by the goroutine that writes, for recorded messages.
	// typ and definition are those of the topic; the definition's text is "" while it is not known.
	Match func(typ string, definition plugin.Definition, payload []byte) bool
}

// StorageNull as Options.Storage receives, queues and counts everything as ever, and keeps nothing: no directory is made.
// It measures what arrives, and what that costs.
const StorageNull = "null"

const (
	defaultWatchdog    = 30 * time.Second
	defaultPolling     = 100 * time.Millisecond
	defaultStopTimeout = 30 * time.Second
	reservedPrefix     = "gobag." // of custom data keys
)

func (o Options) withDefaults() Options {
	if o.Output == "" {
		o.Output = "rosbag2_" + time.Now().Format("2006_01_02-15_04_05")
	}
	if o.Storage == "" {
		o.Storage = bag.DefaultStorage(o.Compat)
	}
	if o.Format == "" {
		o.Format = cdrFormat
	}
	if o.PollingInterval == 0 {
		o.PollingInterval = defaultPolling
	}
	if o.Storage == StorageNull {
		o.MinFreeSpace = -1
	}
	if o.MaxCacheSize == 0 {
		o.MaxCacheSize = DefaultCacheSize()
	}
	if o.Watchdog == 0 {
		o.Watchdog = defaultWatchdog
	}
	if o.RepeatAllTransientLocal == 0 {
		o.RepeatAllTransientLocal = 1
	}
	o.Backpressure = absoluteNames(o.Backpressure)
	if o.StopTimeout == 0 {
		o.StopTimeout = defaultStopTimeout
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Definition == nil {
		o.Definition = localDefinitions(o.MsgPath)
	}
	if o.FreeSpace == nil {
		o.FreeSpace = fsx.Free
	}
	return o
}

// localDefinitions looks for definitions where package msg does, first in the given directories.
func localDefinitions(dirs []string) func(typ, hash string) (plugin.Definition, error) {
	finder := msg.NewFinder(msg.Options{Dirs: msg.SearchDirs(dirs)})
	return func(typ, hash string) (plugin.Definition, error) {
		d, err := finder.Find(typ, hash)
		return plugin.Definition{Encoding: d.Encoding, Text: d.Text}, err
	}
}

// wholeClasses says which classes are recorded whole.
func (o Options) wholeClasses() [classes]bool {
	return [classes]bool{o.All || o.AllTopics, o.All || o.AllServices, o.All || o.AllActions}
}

// Validate returns everything that is wrong with the options, joined; nil if nothing is.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Node == nil {
		bad("options: no node")
	}
	errs = append(errs, o.validateSelection()...)
	for _, name := range slices.Concat(absoluteNames(o.Topics), absoluteNames(o.Services), absoluteNames(o.Actions),
		absoluteNames(o.ExcludeTopics), absoluteNames(o.ExcludeServices), absoluteNames(o.ExcludeActions)) {
		if err := ros.ValidName(name); err != nil {
			errs = append(errs, err)
		}
	}
	if err := (msg.Options{Dirs: o.MsgPath}).Validate(); err != nil {
		errs = append(errs, err)
	}
	if _, err := newFilter(o); err != nil {
		errs = append(errs, err)
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"polling interval", int64(o.PollingInterval)}, {"cache size", o.MaxCacheSize}, {"duration", int64(o.Duration)},
		{"bag size", o.MaxBagSize}, {"bag duration", int64(o.MaxBagDuration)}, {"sync interval", int64(o.SyncInterval)},
		{"stop timeout", int64(o.StopTimeout)}, {"number of bag files", int64(o.MaxBagFiles)}, {"total size", o.MaxTotalSize},
		{"cache duration", int64(o.MaxCacheDuration)}, {"post-roll", int64(o.PostRoll)},
	} {
		if n.value < 0 {
			bad("%s must not be negative", n.name)
		}
	}
	if o.UseSimTime && o.NoDiscovery {
		bad("simulated time needs discovery, to find /clock")
	}
	if !o.SnapshotMode && (o.PostRoll != 0 || len(o.Triggers) > 0) {
		bad("triggers and post-roll need snapshot mode")
	}
	if o.SnapshotMode && (o.MaxMessages > 0 || o.MaxBagFiles > 0) {
		bad("snapshot mode: a number of messages or files cannot be asked for")
	}
	for topic, n := range o.RepeatTransientLocal {
		if n <= 0 {
			bad("topic %s: %d messages to repeat; it must be more than 0", topic, n)
		}
	}
	errs = append(errs, o.validateBackpressure()...)
	if o.Storage == StorageNull && o.SnapshotMode {
		bad("snapshot mode needs a storage that keeps what it gets")
	}
	if _, err := throttles(o.Throttle); err != nil {
		errs = append(errs, err)
	}
	for _, t := range o.StaticTopics {
		errs = append(errs, ros.ValidName(t.Name), ros.ValidType(t.Type))
	}
	for key := range o.CustomData {
		if strings.HasPrefix(key, reservedPrefix) {
			bad("custom data %q: keys that start with %q are gobag's own", key, reservedPrefix)
		}
	}
	return errors.Join(errs...)
}

// validateSelection says what is wrong with the choice of topics, by rosbag2's rules.
func (o Options) validateSelection() (errs []error) {
	all := o.wholeClasses()
	some := all != [classes]bool{} || o.Regex != ""
	if !some && len(o.Topics)+len(o.Services)+len(o.Actions)+len(o.TopicTypes)+len(o.StaticTopics) == 0 {
		errs = append(errs, errors.New("nothing to record: name topics, services or actions, or ask for all, a regular expression or types"))
	}
	for _, x := range []struct {
		what    string
		given   bool
		allowed bool
		need    string
	}{
		{"a regular expression", o.ExcludeRegex != "", some || len(o.TopicTypes) > 0, "all, a regular expression or types"},
		{"topics", len(o.ExcludeTopics) > 0, all[classTopic] || o.Regex != "" || len(o.TopicTypes) > 0, "all topics, a regular expression or types"},
		{"types", len(o.ExcludeTopicTypes) > 0, some || len(o.TopicTypes) > 0, "all, a regular expression or types"},
		{"services", len(o.ExcludeServices) > 0, all[classService] || o.Regex != "", "all services or a regular expression"},
		{"actions", len(o.ExcludeActions) > 0, all[classAction] || o.Regex != "", "all actions or a regular expression"},
	} {
		if x.given && !x.allowed {
			errs = append(errs, fmt.Errorf("excluding %s needs something to exclude from: %s", x.what, x.need))
		}
	}
	return errs
}

// absoluteNames puts the slash in front of names that lack it and removes duplicates.
func absoluteNames(names []string) []string {
	var out []string
	for _, n := range names {
		if n != "" && !strings.HasPrefix(n, "/") {
			n = "/" + n
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
