package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/spf13/cobra"
)

func newCheck(a *app) *cobra.Command {
	var storage, configFile string
	cmd := &cobra.Command{
		Use:   "check BAG",
		Short: "Read all of a bag and say what is wrong with it",
		Long: `Read every message of a bag and compare: the order of messages, their number with what files, metadata.yaml and the ledger
say, checksums where the format has them, quality of service, definitions and type hashes, gaps in the writers' sequence
numbers. What is wrong is an error and makes the exit code 1; what is only noteworthy, such as losses that the recorder
counted, is a note.`,
		Example: `  gobag check run1 && rsync -a run1 archive:`,
		Args:    args(cobra.ExactArgs(1), "one bag directory or storage file is needed"),
		RunE: func(_ *cobra.Command, words []string) error {
			config, err := readYAML(configFile)
			if err != nil {
				return fmt.Errorf("--storage-config-file: %w", err)
			}
			stop := newStopper(a.ctx, nil)
			defer stop.Close()
			r, err := openBag(stop.ctx, words[0], bag.ReaderOptions{StorageID: storage, Config: config})
			if err != nil {
				return err
			}
			defer r.Close()
			c := newChecker(r)
			c.run(stop.ctx)
			if _, err := io.WriteString(a.out, c.text(words[0])); err != nil {
				return err
			}
			if n := len(c.errors); n > 0 {
				return fmt.Errorf("%s: %s wrong", words[0], strings.Replace(plural(uint64(n), "thing"), "1 thing", "1 thing is", 1))
			}
			return nil
		},
		ValidArgsFunction: completeBag,
	}
	cmd.Flags().StringVarP(&storage, "storage", "s", "", "storage format `ID` (default: recognised by its first bytes)")
	cmd.Flags().StringVar(&configFile, "storage-config-file", "", "YAML `FILE` with settings of the storage format")
	completeFlag(cmd, "storage", completeStorage)
	return cmd
}
