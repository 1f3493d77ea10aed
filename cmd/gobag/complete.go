package main

import (
	"context"

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

// completeBag lets the shell complete one path: a bag is a directory or a file.
func completeBag(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(words) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// completeTopics offers the topics of the bag that stands on the command line already.
func completeTopics(_ *cobra.Command, words []string, _ string) ([]string, cobra.ShellCompDirective) {
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
		names = append(names, t.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
