package plugintest

import (
	"os"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// Options adapt the suite to a format. The zero value works.
type Options struct {
	Create plugin.WriteOptions // preset, configuration and generation that the storages of most cases are made with
	Kills  int                 // how often the crash cases kill their child process; 0 = 4
	Damage []Damage            // what must come of damaged storages

	fault fault  // handed to the child process
	test  string // the test that the child process is to run; "" = the one that runs the suite
}

func (o Options) withDefaults() Options {
	if o.Kills == 0 {
		o.Kills = 4
	}
	return o
}

// T is what the cases need of *testing.T.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	TempDir() string
}

// testCase is one obligation.
type testCase struct {
	name string
	run  func(t T, d plugin.Driver, o Options)
}

// cases are all obligations of the contract. bites_test.go holds, for each, the faults that it must catch.
var cases = []testCase{
	{"empty storage", emptyStorage},
	{"round trip", roundTrip},
	{"counts and bounds", countsAndBounds},
	{"stamps out of order", stampsOutOfOrder},
	{"extreme stamps", extremeStamps},
	{"equal stamps in a topic", equalStampsInTopic},
	{"equal stamps across topics", equalStampsAcrossTopics},
	{"order numbers", orderNumbers},
	{"topic names", topicNames},
	{"topics without messages", topicsWithoutMessages},
	{"topic updates", topicUpdates},
	{"definitions", definitions},
	{"send time and source", sendTimeAndSource},
	{"empty payload", emptyPayload},
	{"big payload", bigPayload},
	{"message too large", messageTooLarge},
	{"batch is not kept", batchIsNotKept},
	{"unknown topic", unknownTopic},
	{"size", size},
	{"sync and size while writing", syncAndSizeWhileWriting},
	{"close", closing},
	{"metadata", metadata},
	{"presets", presets},
	{"configuration", configuration},
	{"generations", generations},
	{"context", contextDone},
	{"exists", exists},
	{"detect", detect},
	{"not a storage", notAStorage},
	{"query topics", queryTopics},
	{"query range", queryRange},
	{"query reverse", queryReverse},
	{"end of iteration", endOfIteration},
	{"two iterators", twoIterators},
	{"concurrent readers", concurrentReaders},
	{"reading changes nothing", readingChangesNothing},
	{"reading while writing", readingWhileWriting},
	{"reading another process", readingAnotherProcess},
	{"killed after sync", killedAfterSync},
	{"killed without sync", killedWithoutSync},
	{"random operations", randomOperations},
	{"damage", damage},
}

// Run checks d against the contract of package plugin, one subtest for each obligation. It must be called by the
// top-level test itself: the crash cases start the test binary again to run the same test as a child process, where
// Run writes until it is killed.
func Run(t *testing.T, d plugin.Driver, o Options) { run(t, d, o, func(testCase) bool { return true }) }

// Crash runs only the crash cases of Run.
func Crash(t *testing.T, d plugin.Driver, o Options) {
	run(t, d, o, func(c testCase) bool { return strings.HasPrefix(c.name, "killed") })
}

func run(t *testing.T, d plugin.Driver, o Options, want func(testCase) bool) {
	if isChild() {
		os.Exit(child(d))
	}
	o = o.withDefaults()
	if o.test == "" {
		o.test = t.Name()
	}
	for _, c := range cases {
		if want(c) {
			t.Run(c.name, func(t *testing.T) { c.run(t, d, o) })
		}
	}
}
