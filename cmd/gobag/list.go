package main

import (
	"fmt"
	"strings"

	"github.com/gobag/gobag/plugin"
	"github.com/spf13/cobra"
)

func newList(a *app) *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:       "list storage",
		Short:     "Name the storage formats there are",
		Args:      args(cobra.ExactArgs(1), "say what to list: storage"),
		ValidArgs: []string{"storage"},
		RunE: func(cmd *cobra.Command, words []string) error {
			if words[0] != "storage" {
				return usageError("list %s: there is only: storage", words[0])
			}
			return listStorage(a, verbose)
		},
	}
	switchFlag(cmd.Flags(), &verbose, "verbose", "v", "add extension, abilities and presets")
	return cmd
}

func listStorage(a *app, verbose bool) error {
	var b strings.Builder
	for _, d := range plugin.Drivers() {
		fmt.Fprintln(&b, d.Name())
		if !verbose {
			continue
		}
		f := d.Features()
		fmt.Fprintf(&b, "  extension:      %s\n", d.Extension())
		fmt.Fprintf(&b, "  keeps:          %s\n", strings.Join(abilities(f), ", "))
		if f.ReadOnly {
			b.WriteString("  read only:      info, convert and play read it; nothing writes it\n")
		}
		if f.MinSplitSize > 0 {
			fmt.Fprintf(&b, "  smallest split: %d bytes\n", f.MinSplitSize)
		}
		if f.MaxMessageSize > 0 {
			fmt.Fprintf(&b, "  largest message: %d bytes\n", f.MaxMessageSize)
		}
		fmt.Fprintf(&b, "  own buffers:    %s\n", fileSize(f.Buffers))
		for _, p := range f.Presets {
			fmt.Fprintf(&b, "  preset %-9s %s\n", p.Name+":", p.Help)
		}
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

func abilities(f plugin.Features) []string {
	names := []string{"payload", "receive time"}
	for _, x := range []struct {
		has  bool
		name string
	}{{f.SendTime, "send time"}, {f.Source, "writer and sequence number"}, {f.Definitions, "message definitions"}, {f.Metadata, "metadata"}} {
		if x.has {
			names = append(names, x.name)
		}
	}
	return names
}
