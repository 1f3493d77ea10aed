package main

import (
	"fmt"
	"io"

	"github.com/gobag/gobag/bag"
	"github.com/spf13/cobra"
)

func newReindex(a *app) *cobra.Command {
	var storage string
	cmd := &cobra.Command{
		Use:   "reindex BAG",
		Short: "Make metadata.yaml anew from the storages",
		Long: `Make the metadata.yaml of a bag directory anew from its storages, which are only read. What storages cannot know, such as
the quality of service in bags of old distributions and custom data, is taken from the metadata.yaml that is there; that is
kept as metadata.yaml.bak. Storages that cannot be opened are left out and named, and the exit code is 1: "gobag repair"
saves what is in them.`,
		Example: `  gobag reindex run1`,
		Args:    args(cobra.ExactArgs(1), "one bag directory is needed"),
		RunE: func(_ *cobra.Command, words []string) error {
			res, err := bag.Reindex(a.ctx, words[0], storage)
			if err != nil {
				return err
			}
			for _, w := range res.Warnings {
				a.logger.Warn(w)
			}
			text := fmt.Sprintf("%s: %d messages on %d topics in %s\n", printable(words[0]), res.Metadata.MessageCount, len(res.Metadata.Topics), countFiles(len(res.Metadata.Files)))
			if res.Backup != "" {
				text += fmt.Sprintf("the metadata.yaml that was there is kept as %s\n", res.Backup)
			}
			if _, err := io.WriteString(a.out, text); err != nil {
				return err
			}
			for _, s := range res.Skipped {
				a.logger.Error(fmt.Sprintf("left out: %v", s.Err))
			}
			if n := len(res.Skipped); n > 0 {
				return fmt.Errorf("reindex %s: %s left out, since they cannot be opened; gobag repair %s -o OUT saves what is in them", words[0], countFiles(n), words[0])
			}
			return nil
		},
		ValidArgsFunction: completeBag,
	}
	cmd.Flags().StringVarP(&storage, "storage", "s", "", "storage format `ID` (default: recognised by its first bytes)")
	completeFlag(cmd, "storage", completeStorage)
	return cmd
}
