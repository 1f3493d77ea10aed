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
		Use:   "list storage|converter|compressor|decompressor",
		Short: "Name the storage formats and other parts there are",
		Long: `Name the storage formats, the converters between serialization formats, and the compressors and decompressors. Nothing is
loaded at run time: all of them are part of this program.`,
		Args:      args(cobra.ExactArgs(1), "say what to list: storage, converter, compressor or decompressor"),
		ValidArgs: []string{"storage", "converter", "compressor", "decompressor"},
		RunE: func(cmd *cobra.Command, words []string) error {
			switch words[0] {
			case "storage":
				return listStorage(a, verbose)
			case "converter", "compressor", "decompressor":
				return listParts(a, words[0], verbose)
			}
			return usageError("list %s: there is only: storage, converter, compressor, decompressor", words[0])
		},
	}
	switchFlag(cmd.Flags(), &verbose, "verbose", "v", "add what each can do")
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

// parts are what rosbag2 has as plugins beside storages, with a line of description each.
var parts = map[string][][2]string{
	"converter":    {{"cdr", "messages as they come off the wire and are stored; nothing is converted"}},
	"compressor":   {{"zstd", "--compression-format zstd, of whole files or each message, as rosbag2's zstd compressor"}},
	"decompressor": {{"zstd", "undone by info, play and convert by themselves"}},
}

func listParts(a *app, what string, verbose bool) error {
	var b strings.Builder
	for _, p := range parts[what] {
		fmt.Fprintln(&b, p[0])
		if verbose {
			fmt.Fprintf(&b, "  %s\n", p[1])
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
