package main

import (
	"errors"
	"fmt"
	"strings"
)

// Exit codes. They are part of the command line: scripts test for them.
const (
	exitOK       = 0
	exitFailure  = 1 // the work failed
	exitUsage    = 2 // the command line makes no sense
	exitNothing  = 3 // record: a named topic never appeared, or not one message came
	exitDiskFull = 4 // record: the disk fell below --min-free-space
)

// exitError carries an exit code with an error. A nil Err means that everything was said already.
type exitError struct {
	Code int
	Err  error
}

func (e *exitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *exitError) Unwrap() error { return e.Err }

// usageError is a mistake in the command line.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// explain turns what a verb returned into an exit code and a line for the user ("" when there is nothing to add).
func explain(err error) (code int, text string) {
	if err == nil {
		return exitOK, ""
	}
	var e *exitError
	if errors.As(err, &e) {
		if e.Err == nil {
			return e.Code, ""
		}
		return e.Code, inOneLine(err.Error())
	}
	return exitFailure, inOneLine(err.Error())
}

// inOneLine joins the lines of a text: joined errors come one a line.
func inOneLine(s string) string {
	return printable(strings.ReplaceAll(strings.TrimSpace(s), "\n", "; "))
}
