//go:build !linux

package perf

// coreTimes is not known here.
type coreTimes struct{}

// processUsage is not known here while a process runs; what it cost in all is.
func processUsage(int) (cpu float64, rss int64) { return 0, 0 }

func readCores() coreTimes { return coreTimes{} }

func coresSince(coreTimes) []float64 { return nil }
