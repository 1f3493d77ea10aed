package main

import "github.com/spf13/cobra"

func newPerf(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Measure how much of a load is kept, what storage formats do, and what it costs",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, words []string) error {
			if len(words) > 0 {
				return usageError("perf: unknown verb %q (see \"gobag perf --help\")", words[0])
			}
			return usageError("perf: say what to measure: record, board, storage, insert, tsbs-cpu, tsbs-iot, transport or blobs (see \"gobag perf --help\")")
		},
	}
	cmd.AddCommand(newPerfRecord(a), newPerfStorage(a), newPerfBlobs(a), newPerfColumnar(a), newPerfInsert(a), newPerfTSBSCPU(a), newPerfTSBSIoT(a), newPerfTransport(a), newPerfCompare(a), newPerfBoard(a), newPerfDocs(a), newPerfPublish(a), newPerfNoTransport(a), newPerfStorageTask(a), newPerfTransportTask(a), newPerfInsertTask(a), newPerfTSBSTask(a), newPerfTSBSQueries(a))
	return cmd
}
