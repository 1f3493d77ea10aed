package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
)

// offloadFlags are the flags of offload, as typed.
type offloadFlags struct {
	to     string
	remove bool
	follow bool
	period secondsValue
	level  string
}

func newOffload(a *app) *cobra.Command {
	f := offloadFlags{period: secondsValue(2 * time.Second)}
	cmd := &cobra.Command{
		Use:   "offload BAG… --to DIR",
		Short: "Copy finished files of bags elsewhere, verify them, and free the disk",
		Long: `Copy the finished files of bags into directories of the same names below DIR, on another disk say, while they are still
being recorded or later. Each copy is read back from DIR and its checksum compared with that of the file; only then it gets
its name, and only then, with --delete, the file is deleted. What was copied before is not copied again: after any
interruption the same command goes on. The file that is being written is left for later.

A checksum list, SHA256SUMS, stands beside the copies. metadata.yaml goes last, so that a directory that has it is whole.

Of snapshots (record --snapshot-mode) name the directories, or the directory above them.`,
		Example: `  gobag offload run1 --to /mnt/nas/robot7
  gobag offload run1 --to /mnt/nas/robot7 --follow --delete`,
		RunE: func(_ *cobra.Command, words []string) error {
			if len(words) == 0 || f.to == "" {
				return usageError("offload: want the bags, and --to with the directory to copy them to")
			}
			if err := a.setLevel(f.level); err != nil {
				return err
			}
			stop := newStopper(a.ctx, nil)
			defer stop.Close()
			o := &offloader{to: f.to, remove: f.remove, log: a.logger}
			for {
				open, err := o.pass(stop.ctx, words)
				if err != nil {
					return err
				}
				if !f.follow || !open {
					break
				}
				select {
				case <-stop.ctx.Done():
				case <-time.After(time.Duration(f.period)):
					continue
				}
				break
			}
			text := fmt.Sprintf("%s copied, %s; %d were there already", plural(uint64(o.copied), "file"), fileSize(o.bytes), o.kept)
			if f.remove {
				text += fmt.Sprintf("; %d deleted here", o.deleted)
			}
			_, err := io.WriteString(a.out, text+"\n")
			return err
		},
		ValidArgsFunction: completeBag,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.to, "to", "", "directory `DIR` that the bags' directories are made in")
	switchFlag(fs, &f.remove, "delete", "", "delete files here once their copies are verified; metadata.yaml stays")
	switchFlag(fs, &f.follow, "follow", "", "go on until the bags are closed")
	fs.Var(&f.period, "interval", "with --follow: time between two looks")
	fs.StringVar(&f.level, "log-level", "info", "`LEVEL`: debug, info, warn, error or fatal")
	completeFlag(cmd, "log-level", completeLevel)
	return cmd
}
