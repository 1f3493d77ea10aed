package main

import (
	"reflect"

	"github.com/gobag/gobag/convert"
	"github.com/spf13/cobra"
)

// The verbs below are convert with fewer flags, named after what people want to do.

func newFilter(a *app) *cobra.Command {
	return convertForm(a, "filter BAG -o OUT", "Make a bag of some topics of another",
		`Make a bag of some topics of another: "gobag convert" with one input and the flags that choose. Everything about the messages
that are taken stays as it is.`,
		`  gobag filter run1 -o small --exclude-topics /camera/image_raw
  gobag filter run1 -o tf --topics /tf /tf_static`, true, func(f *convertFlags) error {
			if len(f.inputs) != 1 {
				return usageError("filter: one bag is needed")
			}
			if reflect.DeepEqual(f.filter, convert.Filter{}) {
				return usageError("filter: say what to take or to leave out: --topics, --exclude-topics, --regex, …")
			}
			return nil
		})
}

func newMerge(a *app) *cobra.Command {
	return convertForm(a, "merge BAG BAG… -o OUT", "Merge bags into one, by time",
		`Merge bags into one by the stamps of reception: "gobag convert" with several inputs. Of messages with equal stamps those of the
bag that is named first come first; latched messages that a later bag only repeats are left out.`,
		`  gobag merge run1 run2 -o both`, false, func(f *convertFlags) error {
			if len(f.inputs) < 2 {
				return usageError("merge: at least two bags are needed")
			}
			return nil
		})
}

func newCut(a *app) *cobra.Command {
	return convertForm(a, "cut BAG -o OUT --start TIME --end TIME", "Make a bag of a part of another's time",
		`Make a bag of a part of another's time: "gobag convert" with one input and --start or --end, stamps of reception, both included:
seconds since 1970 ("1700000000.5"), nanoseconds (16 digits and more), RFC 3339 ("2026-03-01T10:00:00Z"), or a span behind
the start of the bag ("+30", "+5m").`,
		`  gobag cut run1 -o crash --start +30 --end +90`, true, func(f *convertFlags) error {
			if len(f.inputs) != 1 {
				return usageError("cut: one bag is needed")
			}
			if f.start == "" && f.end == "" {
				return usageError("cut: --start, --end or both are needed")
			}
			return nil
		})
}

// convertForm is convert under another name, with a check of what is given. Its flags are those of convert.
func convertForm(a *app, use, short, long, example string, one bool, check func(*convertFlags) error) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example,
		RunE: func(_ *cobra.Command, words []string) error {
			f.inputs = append(words, f.inputs...)
			if err := check(&f); err != nil {
				return err
			}
			if isYAML(f.output) {
				return usageError("%s: -o is a directory here; \"gobag convert\" takes a file", f.verb)
			}
			return runConvert(a, &f)
		},
		ValidArgsFunction: completeBag,
	}
	f.verb = cmd.Name()
	f.define(cmd)
	if one {
		hide(cmd.Flags(), "input", "input-options")
	}
	return cmd
}
