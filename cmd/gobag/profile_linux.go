package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// yieldToOthers gives every thread of the process a nice value, which its later ones inherit, and raises the score by which
// the kernel chooses whom to kill. Both may be raised without privilege.
func yieldToOthers(nice, score int) error {
	var errs []error
	for range 2 { // a thread may begin meanwhile
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("nice value: %w", err)
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			// The system call's result is 20 - nice.
			if now, err := unix.Getpriority(unix.PRIO_PROCESS, id); err == nil && 20-now >= nice {
				continue
			}
			if err := unix.Setpriority(unix.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, unix.ESRCH) {
				errs = append(errs, fmt.Errorf("nice value: %w", err))
			}
		}
	}
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(score)), 0o644); err != nil {
		errs = append(errs, fmt.Errorf("OOM score: %w", err))
	}
	return errors.Join(errs...)
}
