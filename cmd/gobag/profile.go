package main

import (
	"runtime"
	"strings"
)

// What `--profile robot` gives away, so that the robot's own programs come first: CPU under load, and life when memory runs
// out. Reception suffers last, since it takes little CPU and the sockets hold what comes meanwhile.
const (
	robotNice     = 5   // of 19
	robotOOMScore = 500 // of 1000: rather the recorder than the robot's programs
	robotThreads  = 2   // that run Go code at a time
)

// applyProfile makes this process what --profile asks for.
func applyProfile(a *app, name string) error {
	switch name {
	case "":
		return nil
	case "robot":
	default:
		return usageError("record: --profile %q: not one of robot", name)
	}
	if runtime.GOMAXPROCS(0) > robotThreads && a.env("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(robotThreads)
	}
	if err := yieldToOthers(robotNice, robotOOMScore); err != nil {
		a.logger.Warn("--profile robot: " + strings.TrimSpace(err.Error()))
	}
	return nil
}
