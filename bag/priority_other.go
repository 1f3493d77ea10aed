//go:build !linux && !windows

package bag

import "errors"

const (
	leastPriority = -20
	mostPriority  = 19
)

// setThreadPriority does nothing where priorities are of processes, not of threads.
func setThreadPriority(int) error { return errors.ErrUnsupported }
