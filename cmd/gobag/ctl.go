package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/gobag/gobag/control"
	"github.com/spf13/cobra"
)

func newCtl(a *app) *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "ctl COMMAND [WORD…]",
		Short: "Steer a recorder or player that is running on this machine",
		Long: `Send a command to a "gobag record" or "gobag play" of this user and print its answer as JSON. "gobag ctl help" lists what the
one that is running takes: pause, resume, toggle, stop and status; of a recorder also split, snapshot [protect] [REASON],
start-discovery and stop-discovery; of a player also rate [FACTOR], seek TIME, next and burst [N].

The socket is found by itself while only one is there.`,
		Example: `  gobag ctl pause
  gobag ctl snapshot protect "near miss"
  gobag ctl seek +30
  gobag ctl status | jq .messages`,
		Args: args(cobra.MinimumNArgs(1), "say what: help lists it"),
		RunE: func(_ *cobra.Command, words []string) error {
			path, err := chooseSocket(a, socket)
			if err != nil {
				return err
			}
			r, err := control.Call(path, words[0], words[1:]...)
			if err != nil {
				return err
			}
			if !r.OK {
				return errors.New(r.Error)
			}
			if r.Result == nil {
				return nil
			}
			var b bytes.Buffer
			if err := json.Indent(&b, r.Result, "", "  "); err != nil {
				return fmt.Errorf("control: %w", err)
			}
			b.WriteByte('\n')
			_, err = io.Copy(a.out, &b)
			return err
		},
	}
	cmd.Flags().StringVarP(&socket, "socket", "s", "", "`PATH` of the socket (default: the only one there is)")
	return cmd
}

// chooseSocket returns the socket that is given, or the only one there is.
func chooseSocket(a *app, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	switch found := control.Sockets(a.env); len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("nothing of this user that could be steered is running (no socket in %s)", control.SocketDir(a.env))
	default:
		return "", fmt.Errorf("several are running, choose one with -s: %s", strings.Join(found, ", "))
	}
}
