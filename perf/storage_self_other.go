//go:build !linux

package perf

func resetPeakRSS() {}

func currentRSS() int64 { return 0 }

func writtenBytes() int64 { return -1 }
