package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ros2bagFlags are flags of `ros2 bag` (0.34) that have no counterpart here yet, by verb. Who types one is told so, and
// not that it does not exist.
var ros2bagFlags = map[string]string{
	"record": "static-topics-path ignore-leaf-topics max-bag-files " +
		"max-cache-duration snapshot-mode repeat-transient-local repeat-all-transient-local start-paused use-sim-time stats_max_publishing_rate",
	"play": "input clock clock-topics clock-topics-all playback-until-sec playback-until-nsec " +
		"disable-loan-message publish-service-requests send-actions-as-client service-requests-source message-order progress-bar-update-rate progress-bar-separation-lines",
}

// flagError is a mistake in the flags.
func flagError(cmd *cobra.Command, err error) error {
	verb := verbName(cmd)
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && slices.Contains(strings.Fields(ros2bagFlags[verb]), unknown.GetSpecifiedName()) {
		return usageError("%s: --%s: a flag of ros2 bag that this version of gobag does not have (see %q)", verb, unknown.GetSpecifiedName(), cmd.CommandPath()+" --help")
	}
	return usageError("%s: %w (see %q)", verb, err, cmd.CommandPath()+" --help")
}
