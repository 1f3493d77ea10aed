package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
)

// app is what every verb shares: the three streams, the environment and the console they are shown on.
type app struct {
	ctx    context.Context
	in     io.Reader
	out    io.Writer // results: info, tables, JSON
	con    *console  // log lines, errors and the status line
	env    func(string) string
	level  slog.LevelVar
	logger *slog.Logger
	rosout atomic.Pointer[rosout] // of a node of ROS 1; nil = there is none
}

func newApp(stdin io.Reader, stdout, stderr io.Writer, env func(string) string) *app {
	a := &app{ctx: context.Background(), in: stdin, out: stdout, env: env}
	a.con = newConsole(stderr, env("TERM") != "dumb" && isTerminal(stderr))
	a.logger = slog.New(&logHandler{w: a.con, level: &a.level, also: &a.rosout})
	return a
}

// nodeLogger is a logger that does not go to /rosout.
func (a *app) nodeLogger() *slog.Logger { return slog.New(&logHandler{w: a.con, level: &a.level}) }

// newRoot builds the command tree.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "gobag",
		Short: "Record, inspect and play ROS 2 bags, without ROS installed",
		Long: `gobag records ROS 2 topics straight off the DDS-RTPS wire into a bag, shows and plays bags, and measures how much
of the traffic was kept. Verbs and flags are those of "ros2 bag"; ROS need not be installed.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("unknown verb %q%s (see \"gobag --help\")", args[0], didYouMean(cmd, args[0]))
			}
			fmt.Fprint(cmd.ErrOrStderr(), cmd.UsageString())
			return usageError("no verb given")
		},
	}
	root.SetFlagErrorFunc(flagError)
	setTemplates(root)
	root.AddCommand(newRecord(a), newPlay(a), newInfo(a), newConvert(a), newFilter(a), newMerge(a), newCut(a), newCheck(a), newBurst(a), newCtl(a), newConfig(a), newOffload(a), newReindex(a), newRepair(a), newList(a), newTopic(a), newSQL(a), newDoctor(a), newDemo(a), newPerf(a), newVersion(a))
	addConfig(root)
	return root
}

// verbName is the command's name as the user typed it, without the program's: "perf record".
func verbName(cmd *cobra.Command) string {
	_, verb, ok := strings.Cut(cmd.CommandPath(), " ")
	if !ok {
		return cmd.Name()
	}
	return verb
}

func didYouMean(cmd *cobra.Command, word string) string {
	cmd.SuggestionsMinimumDistance = 2
	if s := cmd.SuggestionsFor(word); len(s) > 0 {
		return fmt.Sprintf(", did you mean %q?", s[0])
	}
	return ""
}

// args wraps a positional-argument check so that its failure is a usage error that names the verb.
func args(check cobra.PositionalArgs, hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, words []string) error {
		if err := check(cmd, words); err != nil {
			return usageError("%s: %s (see %q)", verbName(cmd), hint, cmd.CommandPath()+" --help")
		}
		return nil
	}
}

// setLevel sets the log level from a --log-level word.
func (a *app) setLevel(word string) error {
	switch strings.ToLower(word) {
	case "debug":
		a.level.Set(slog.LevelDebug)
	case "info", "":
		a.level.Set(slog.LevelInfo)
	case "warn", "warning":
		a.level.Set(slog.LevelWarn)
	case "error":
		a.level.Set(slog.LevelError)
	case "fatal":
		a.level.Set(levelFatal)
	default:
		return usageError("--log-level %q: not one of debug, info, warn, error, fatal", word)
	}
	return nil
}

// exists reports whether there is anything at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, os.ErrNotExist)
}
