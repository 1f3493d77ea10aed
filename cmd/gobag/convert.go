package main

import (
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gobag/gobag/convert"
	"github.com/spf13/cobra"
)

// convertFlags are the flags of `convert`, as typed.
type convertFlags struct {
	verb               string // "convert", or one of its forms
	inputs             []string
	inputOptions       string
	output             string
	storage, preset    string
	configFile, compat string
	start, end         string
	maxBagSize         bytesValue
	maxBagDuration     secondsValue
	filter             convert.Filter
	customData         []string
	qosFile, logLevel  string
	compression        compressionFlags
	to                 string
}

func newConvert(a *app) *cobra.Command {
	f := convertFlags{verb: "convert"}
	cmd := &cobra.Command{
		Use:   "convert BAG… -o OUT",
		Short: "Merge, filter, cut, split, compress bags or change their storage format",
		Long: `Make bags out of bags: merged by time, filtered, cut, split, compressed, or in another storage format. Payload bytes,
stamps, send times, writers, sequence numbers, quality of service, type hashes, definitions, custom data and the order of
equal stamps stay as they are. The inputs are only read. Where anything fails, nothing half-written is left.

-o names the directory to create; the flags below say how it is written and what goes in. Or it names a YAML file in the
form of "ros2 bag convert": output_bags, a list of maps with the keys of storage and record options, each a bag to make.

Inputs are named first, or each with -i and, as in ros2 bag, its storage format: -i run1 -i run2 sqlite3. Of messages with
equal stamps those of the input that is named first come first.

Where nothing is chosen everything is taken; --topics and the others take what they name and nothing else. Exclusions win.

--start and --end are stamps of reception, both included: seconds since 1970 ("1700000000.5"), nanoseconds (16 digits and
more), RFC 3339 ("2026-03-01T10:00:00Z"), or a span behind the start of the earliest input ("+30", "+5m").`,
		Example: `  gobag convert run1 -o run1-mcap -s mcap
  gobag convert run1 run2 -o both --exclude-topics /debug
  gobag convert run1 -o part --start +30 --end +90 --topics /tf /scan
  gobag convert run1 -o small --compression-mode file -b 1GB
  gobag convert -i run1 -i run2 -o out.yaml`,
		RunE: func(_ *cobra.Command, words []string) error {
			f.inputs = append(words, f.inputs...)
			return runConvert(a, &f)
		},
		ValidArgsFunction: completeBag,
	}
	f.define(cmd)
	return cmd
}

// define makes the flags.
func (f *convertFlags) define(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	listFlag(fs, &f.inputs, "input", "i", "bag to read, and its storage format where it is not to be recognised, `BAG [ID]`", false)
	fs.StringVar(&f.to, "to", "", "`FORMAT` that payloads are turned into: cdr (of ROS 2) or ros1; default: they stay as they are")
	fs.StringVar(&f.inputOptions, "input-options", "", "YAML `FILE` with input_bags instead of -i")
	fs.StringVarP(&f.output, "output", "o", "", "directory `DIR` to create, or a .yaml file with output_bags")
	fs.StringVar(&f.output, "output-options", "", "the same")
	hide(fs, "output-options")
	fs.StringVarP(&f.storage, "storage", "s", "", "storage format `ID` to write, see 'gobag list storage' (default "+defaultStorage+"; sqlite3 for Humble)")
	fs.StringVar(&f.preset, "storage-preset-profile", "", "`NAME`: resilient (default), fast, small or none, see 'gobag list storage -v'")
	fs.StringVar(&f.configFile, "storage-config-file", "", "YAML `FILE` with settings of the storage format")
	fs.StringVar(&f.compat, "compat", "auto", "`ROS` whose tools must open the bag: auto (humble where no topic has a type hash), humble or jazzy")
	listFlag(fs, &f.filter.Topics, "topics", "", "`TOPIC...` to take", true)
	listFlag(fs, &f.filter.Services, "services", "", "`SERVICE...` whose events to take", true)
	listFlag(fs, &f.filter.Actions, "actions", "", "`ACTION...` to take", true)
	listFlag(fs, &f.filter.TopicTypes, "topic-types", "", "take every topic of these types, `TYPE...`", true)
	switchFlag(fs, &f.filter.AllTopics, "all-topics", "", "take all topics")
	switchFlag(fs, &f.filter.AllServices, "all-services", "", "take the events of all services")
	switchFlag(fs, &f.filter.AllActions, "all-actions", "", "take all actions")
	fs.StringVarP(&f.filter.Regex, "regex", "e", "", "take what has a name in which this ECMAScript regular expression, `RE`, is found")
	fs.StringVarP(&f.filter.ExcludeRegex, "exclude-regex", "x", "", "leave out what has a name in which `RE` is found")
	listFlag(fs, &f.filter.ExcludeTopics, "exclude-topics", "", "`TOPIC...` to leave out", true)
	listFlag(fs, &f.filter.ExcludeServices, "exclude-services", "", "`SERVICE...` to leave out", true)
	listFlag(fs, &f.filter.ExcludeActions, "exclude-actions", "", "`ACTION...` to leave out", true)
	listFlag(fs, &f.filter.ExcludeTopicTypes, "exclude-topic-types", "", "leave out topics of these types, `TYPE...`", true)
	fs.StringVar(&f.start, "start", "", "first `TIME` to take")
	fs.StringVar(&f.end, "end", "", "last `TIME` to take")
	fs.VarP(&f.maxBagSize, "max-bag-size", "b", "begin a new file at this size (default never)")
	fs.VarP(&f.maxBagDuration, "max-bag-duration", "d", "begin a new file after this time of the bag (default never)")
	f.compression.define(cmd, fs)
	listFlag(fs, &f.customData, "custom-data", "", "`KEY=VALUE...` to store in the bag's metadata beside that of the inputs", false)
	fs.StringVar(&f.qosFile, "qos-profile-overrides-path", "", "YAML `FILE`: topic to the QoS profile to store")
	fs.StringVar(&f.logLevel, "log-level", "info", "`LEVEL`: debug, info, warn, error or fatal")
	completeFlag(cmd, "storage", completeStorage)
	completeFlag(cmd, "storage-preset-profile", cobra.FixedCompletions([]cobra.Completion{"resilient", "fast", "small", "none"}, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "compat", cobra.FixedCompletions([]cobra.Completion{"auto", "humble", "jazzy"}, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "log-level", completeLevel)
}

// runConvert makes the bags and says what they hold.
func runConvert(a *app, f *convertFlags) error {
	if err := a.setLevel(f.logLevel); err != nil {
		return err
	}
	o, err := f.options(a)
	if err != nil {
		return err
	}
	if err := f.turn(a, &o); err != nil {
		return err
	}
	f.compression.warn(a)
	o.Logger = a.logger
	var at atomic.Pointer[convert.Progress]
	at.Store(&convert.Progress{})
	o.Progress = func(p convert.Progress) { at.Store(&p) }
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	begun := time.Now()
	live := startLive(a.con, 500*time.Millisecond, func() string { return convertStatus(*at.Load(), time.Since(begun)) })
	res, err := convert.Run(stop.ctx, o)
	live.Stop()
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, out := range res.Outputs {
		fmt.Fprintf(&b, "%s: %d messages on %d topics, %s in %s (%s)\n", printable(out.Dir), out.Messages, out.Topics, fileSize(out.Size), countFiles(out.Files), out.Storage)
	}
	_, err = io.WriteString(a.out, b.String())
	return err
}

func convertStatus(p convert.Progress, took time.Duration) string {
	share := 100.0
	if p.Total > 0 {
		share = min(100, 100*float64(p.Read)/float64(p.Total))
	}
	return fmt.Sprintf("%.0f %% | %d of %d messages | %s", share, p.Read, p.Total, rate(float64(p.Bytes)/max(took.Seconds(), 0.001)))
}

func countFiles(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
