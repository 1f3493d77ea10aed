package main

import "github.com/spf13/pflag"

// hide takes flags out of the help.
func hide(fs *pflag.FlagSet, names ...string) {
	for _, n := range names {
		if err := fs.MarkHidden(n); err != nil {
			panic(err) // no such flag: a slip of ours
		}
	}
}
