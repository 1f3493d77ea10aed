package main

import (
	"github.com/spf13/cobra"
)

// flagError is a mistake in the flags.
func flagError(cmd *cobra.Command, err error) error {
	return usageError("%s: %w (see %q)", verbName(cmd), err, cmd.CommandPath()+" --help")
}
