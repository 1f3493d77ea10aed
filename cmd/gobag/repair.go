package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/spf13/cobra"
)

func newRepair(a *app) *cobra.Command {
	var output, storage string
	cmd := &cobra.Command{
		Use:   "repair BAG -o OUT",
		Short: "Save what can be read of a damaged bag into a new one",
		Long: `Save what can be read of a damaged bag, or of a single storage file, into a new bag. The original is only read. Storages
that are whole are taken over as they are; in damaged ones everything is looked for that the format allows to find, behind
the damage too. What was kept and what is lost is listed by file and topic. Exit code 1 when anything is lost.`,
		Example: `  gobag repair run1 -o run1-repaired`,
		Args:    args(cobra.ExactArgs(1), "one bag directory or storage file is needed"),
		RunE: func(_ *cobra.Command, words []string) error {
			if output == "" {
				return usageError("repair: -o is needed: the directory to create")
			}
			return runRepair(a, words[0], output, storage)
		},
		ValidArgsFunction: completeBag,
	}
	fs := cmd.Flags()
	fs.StringVarP(&output, "output", "o", "", "directory `DIR` to create")
	fs.StringVarP(&storage, "storage", "s", "", "storage format `ID` of the damaged bag (default: recognised by its first bytes)")
	completeFlag(cmd, "storage", completeStorage)
	return cmd
}

func runRepair(a *app, path, output, storage string) error {
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	rep, err := bag.Repair(stop.ctx, path, output, bag.RepairOptions{StorageID: storage, Writer: bag.WriterOptions{Logger: a.logger}})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(a.out, repairReport(rep, output)); err != nil {
		return err
	}
	if !rep.Complete() {
		return fmt.Errorf("repair %s: %d messages are kept, %s; %s holds what is left", path, rep.Kept, repairLoss(rep), output)
	}
	return nil
}

func repairLoss(rep bag.RepairReport) string {
	for _, f := range rep.Files {
		if f.Unreadable && f.Lost == 0 {
			return fmt.Sprintf("%d and an unknown number more are lost", rep.Lost)
		}
	}
	return fmt.Sprintf("%d are lost", rep.Lost)
}

// repairReport lists files and topics with what was kept and lost.
func repairReport(rep bag.RepairReport, output string) string {
	var b strings.Builder
	for _, n := range rep.Notes {
		fmt.Fprintf(&b, "%s\n", printable(n))
	}
	for _, f := range rep.Files {
		fmt.Fprintf(&b, "File: %s | Kept: %d | Lost: %d | %s\n", printable(f.Path), f.Kept, f.Lost, f.How)
		for _, n := range f.Notes {
			fmt.Fprintf(&b, "      %s\n", printable(n))
		}
	}
	for _, t := range rep.Topics {
		fmt.Fprintf(&b, "Topic: %s | Type: %s | Kept: %d | Lost: %d\n", printable(t.Name), printable(t.Type), t.Kept, t.Lost)
	}
	fmt.Fprintf(&b, "%s: %d messages kept, %s\n", printable(output), rep.Kept, repairLoss(rep))
	return b.String()
}
