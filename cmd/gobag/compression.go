package main

import (
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// compressionFlags are rosbag2's flags of compression, as typed.
type compressionFlags struct {
	mode, format   string
	queue, threads int
	priority       int
}

func (f *compressionFlags) define(cmd *cobra.Command, fs *pflag.FlagSet) {
	fs.StringVar(&f.mode, "compression-mode", "none", "`MODE`: none, file (each file after it is closed) or message (each payload)")
	fs.StringVar(&f.format, "compression-format", "", "`FORMAT`: zstd")
	fs.IntVar(&f.threads, "compression-threads", 0, "`N` compressors at the same time, 0 = one for each CPU")
	fs.IntVar(&f.queue, "compression-queue-size", 0, "`N` files that may wait for a compressor: when more do, the oldest stays uncompressed; 0 = any number.\nMessages wait in the cache, by its rules")
	fs.IntVar(&f.priority, "compression-threads-priority", 0, "nice value `N` of the compressors, on Windows -2 to 0")
	completeFlag(cmd, "compression-mode", cobra.FixedCompletions([]cobra.Completion{"none", "file", "message"}, cobra.ShellCompDirectiveNoFileComp))
	completeFlag(cmd, "compression-format", cobra.FixedCompletions([]cobra.Completion{"zstd"}, cobra.ShellCompDirectiveNoFileComp))
}

// options turns the flags into a bag's.
func (f *compressionFlags) options(verb string) (bag.Compression, error) {
	c, err := bag.ParseCompression(f.mode, f.format)
	if err != nil {
		return c, usageError("%s: %w", verb, err)
	}
	if f.queue < 0 {
		return c, usageError("%s: --compression-queue-size %d is negative", verb, f.queue)
	}
	if f.threads < 0 {
		return c, usageError("%s: --compression-threads %d is negative", verb, f.threads)
	}
	c.Threads, c.Queue, c.Priority = f.threads, f.queue, f.priority
	return c, nil
}

// warn says what has no effect.
func (f *compressionFlags) warn(a *app) {
	if note := f.note(); note != "" {
		a.logger.Warn(note)
	}
}

// note says what has no effect, "" if all has.
func (f *compressionFlags) note() string {
	switch {
	case strings.EqualFold(f.mode, bag.CompressionMessage) && f.queue > 0:
		return "--compression-queue-size has no effect on messages: what waits for a compressor waits in the cache (--max-cache-size), and is dropped by its rules only"
	case (f.mode == "" || strings.EqualFold(f.mode, "none")) && (f.queue > 0 || f.threads > 0 || f.priority != 0):
		return "without --compression-mode nothing is compressed: --compression-threads, --compression-threads-priority and --compression-queue-size have no effect"
	}
	return ""
}
