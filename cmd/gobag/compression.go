package main

import (
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
	fs.IntVar(&f.queue, "compression-queue-size", 1, "taken for rosbag2's sake: what waits for a compressor waits in the cache, by its rules")
	fs.IntVar(&f.priority, "compression-threads-priority", 0, "taken for rosbag2's sake: compressors run as the rest does")
	hide(fs, "compression-queue-size", "compression-threads-priority")
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
	c.Threads = f.threads
	return c, nil
}
