package main

import (
	"context"
	"slices"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/spf13/cobra"
)

func completeStorage(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, d := range plugin.Drivers() {
		names = append(names, d.Name())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func completeLevel(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"debug", "info", "warn", "error", "fatal"}, cobra.ShellCompDirectiveNoFileComp
}

// completeFlag offers what f gives as values of a flag of cmd.
func completeFlag(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // the command has no such flag, or it is completed twice
	}
}

// completeBag lets the shell complete one path: a bag is a directory or a file.
func completeBag(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// completeNames offers what is of a kind in the bag that stands on the command line already: its topics, services or
// actions.
func completeNames(kind nameKind) cobra.CompletionFunc {
	return func(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(words) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		r, err := bag.Open(context.Background(), words[0], bag.ReaderOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer r.Close()
		var names []string
		for _, t := range r.Info().Topics {
			if k, owner, _ := classify(t.Name); k == kind && !slices.Contains(names, owner) {
				names = append(names, owner)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
