package main

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// fileSize is a size as rosbag2 prints it: one decimal and a binary unit, whole bytes below 1 KiB.
func fileSize(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	for _, u := range []string{"KiB", "MiB", "GiB"} {
		v /= 1024
		if v < 1024 {
			return fmt.Sprintf("%.1f %s", v, u)
		}
	}
	return fmt.Sprintf("%.1f TiB", v/1024)
}

// rate is bytes per second, decimal units as networks and disks are sold.
func rate(bytesPerSecond float64) string {
	switch {
	case bytesPerSecond < 1e3:
		return fmt.Sprintf("%.0f B/s", bytesPerSecond)
	case bytesPerSecond < 1e6:
		return fmt.Sprintf("%.1f kB/s", bytesPerSecond/1e3)
	}
	return fmt.Sprintf("%.1f MB/s", bytesPerSecond/1e6)
}

// durationSeconds is a duration as rosbag2 prints it: seconds with nine digits.
func durationSeconds(d time.Duration) string {
	sign := ""
	u := uint64(d)
	if d < 0 {
		sign, u = "-", -u
	}
	return fmt.Sprintf("%s%d.%09ds", sign, u/1e9, u%1e9)
}

// timePoint is a stamp as rosbag2 prints it: local time and the epoch, nine digits both.
func timePoint(ns int64, loc *time.Location) string {
	t := time.Unix(0, ns).In(loc)
	sec, nsec := ns/1e9, ns%1e9
	sign := ""
	if ns < 0 {
		sign, sec, nsec = "-", -sec, -nsec
	}
	return fmt.Sprintf("%s (%s%d.%09d)", t.Format("Jan _2 2006 15:04:05.000000000"), sign, sec, nsec)
}

// percent is part of whole with two decimals. It says 100.00 % only where nothing is missing and 0 where there is no
// whole.
func percent(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	if part == whole {
		return "100.00 %"
	}
	p := float64(part) / float64(whole) * 100
	if part < whole {
		p = math.Min(p, 99.99)
	}
	return fmt.Sprintf("%.2f %%", p)
}

// plural is "1 message", "2 messages".
func plural(n uint64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// table prints rows under a header, columns padded to the widest cell; columns named in right are aligned to the right.
type table struct {
	header []string
	right  map[int]bool
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	width := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{t.header}, t.rows...) {
		line := ""
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if t.right[i] {
				line += pad + c
			} else {
				line += c + pad
			}
			if i < len(row)-1 {
				line += "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
