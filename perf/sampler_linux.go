package perf

import (
	"bytes"
	"os"
	"strconv"
	"strings"
)

// clockTick is the unit of times in /proc, seconds: USER_HZ is 100 on every architecture that Go has.
const clockTick = 0.01

// processUsage is the CPU time of a running process so far, seconds, and its resident set, bytes; 0 unknown.
func processUsage(pid int) (cpu float64, rss int64) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0
	}
	// The name, in parentheses, may hold anything; the fields behind it are numbered from 3 in proc(5).
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 22 {
		return 0, 0
	}
	number := func(field int) int64 {
		n, _ := strconv.ParseInt(string(f[field-3]), 10, 64)
		return n
	}
	return float64(number(14)+number(15)) * clockTick, number(24) * int64(os.Getpagesize())
}

// coreTimes is the busy and whole time of each core so far, in ticks.
type coreTimes [][2]float64

// readCores reads the times of the machine's cores; nil unknown.
func readCores() (all coreTimes) {
	for line := range strings.Lines(readText("/proc/stat")) {
		f := strings.Fields(line)
		if len(f) < 6 || !strings.HasPrefix(f[0], "cpu") || f[0] == "cpu" {
			continue
		}
		var busy, whole float64
		for i, text := range f[1:min(len(f), 9)] { // guest time is in user time already
			v, _ := strconv.ParseFloat(text, 64)
			whole += v
			if i != 3 && i != 4 { // idle, iowait
				busy += v
			}
		}
		all = append(all, [2]float64{busy, whole})
	}
	return all
}

// coresSince is the load of each core since before, percent.
func coresSince(before coreTimes) (percent []float64) {
	now := readCores()
	for i := range min(len(before), len(now)) {
		p := 0.0
		if whole := now[i][1] - before[i][1]; whole > 0 {
			p = 100 * (now[i][0] - before[i][0]) / whole
		}
		percent = append(percent, float64(int(p*10+0.5))/10)
	}
	return percent
}
