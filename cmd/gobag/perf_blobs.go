package main

import (
	"github.com/gobag/gobag/perf"
	"github.com/spf13/cobra"
)

func newPerfBlobs(a *app) *cobra.Command {
	var f storageFlags
	count := 0
	cmd := &cobra.Command{
		Use:   "blobs",
		Short: "Measure blobs in a storage format beside one file for each",
		Long: `Repeats SQLite's "faster than the file system": blobs in one storage, and one file for each. They are written (the
experiment that SQLite left open), then read in sequence by one scan, in order each by itself, and at random; from the page
cache. The sizes beside 10 KB show where files get ahead.`,
		Example: `  gobag perf blobs --quick
  gobag perf blobs --size 10KB --count 100000 --csv out.csv`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error {
			o, err := blobOptions(&f, count)
			if err != nil {
				return usageError("perf blobs: %w", err)
			}
			return runPerfStorage(a, &f, o, perf.StorageReport.WriteBlobText)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	listFlag(fs, &f.sizes, "size", "", "`BYTES...` of a blob (default 1KB to 1MB)", true)
	fs.IntVar(&count, "count", 100_000, "at most `N` blobs of each size")
	listFlag(fs, &f.targets, "target", "", "what to measure, `NAME[:PRESET]...` (default files, files-raw and every format)", true)
	listFlag(fs, &f.presets, "preset", "", "presets `NAME...` of the formats, without --target (default resilient,fast)", true)
	f.common(cmd)
	fs.Lookup("bytes").Usage = "payload of each measurement at most (default 1GB)"
	return cmd
}

func blobOptions(f *storageFlags, count int) (perf.StorageOptions, error) {
	sizes, targets := f.sizes, f.targets
	f.buffers = []string{"0"}
	o, err := f.options()
	if err != nil {
		return o, err
	}
	o.Steps = perf.BlobSteps
	if sizes == nil {
		o.Sizes = perf.BlobSizes
	}
	if targets == nil {
		o.Targets = append(perf.BlobTargets(f.presets), o.Targets[len(perf.DefaultStorageTargets(f.presets)):]...) // the peers stay
	}
	switch {
	case f.quick:
		o.MaxCount = min(count, 2_000)
		if sizes == nil {
			o.Sizes = []int{1_000, 10_000, 100_000}
		}
	case count < 1:
		return o, usageError("--count %d: not above 0", count)
	default:
		o.MaxCount = count
		if o.Bytes == 0 {
			o.Bytes = 1_000_000_000
		}
	}
	return o, nil
}
