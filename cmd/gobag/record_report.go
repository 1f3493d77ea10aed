package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/gobag/gobag/recorder"
)

// recordStatus is the live line of a recording: the most important first, since a narrow terminal cuts it.
func recordStatus(s recorder.Snapshot) string {
	if s.State == recorder.StateNew {
		return ""
	}
	var b strings.Builder
	switch {
	case s.State == recorder.StateStopping:
		b.WriteString("stopping | ")
	case s.Paused:
		b.WriteString("PAUSED | ")
	}
	fmt.Fprintf(&b, "%s | %s/s, %s | %d recorded", clock(s.Elapsed), count(s.Rate), rate(s.ByteRate), s.Messages)
	if s.Lost.Wire+s.Lost.Queue+s.Lost.Storage == 0 {
		b.WriteString(" | lost 0")
	} else {
		fmt.Fprintf(&b, " | LOST wire %d queue %d storage %d", s.Lost.Wire, s.Lost.Queue, s.Lost.Storage)
	}
	if s.Stalled > 0 {
		fmt.Fprintf(&b, " | DISK SILENT %.0f s", s.Stalled.Seconds())
	}
	fmt.Fprintf(&b, " | queue %.0f %%", 100*float64(s.Queue.Bytes)/float64(max(s.Queue.MaxBytes, 1)))
	if s.File != "" || s.DiskBytes > 0 {
		fmt.Fprintf(&b, " | bag %s", fileSize(s.DiskBytes))
	}
	if s.Taken > 0 {
		fmt.Fprintf(&b, " | %s", plural(uint64(s.Taken), "snapshot"))
	}
	if s.FreeBytes > 0 {
		fmt.Fprintf(&b, ", free %s", fileSize(s.FreeBytes))
	}
	if n := len(s.Missing); n > 0 {
		fmt.Fprintf(&b, " | %d missing", n)
	}
	return b.String()
}

// clock is an elapsed time: 00:01:02.
func clock(d time.Duration) string {
	s := int64(d.Seconds())
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

func count(perSecond float64) string {
	if perSecond < 10 {
		return fmt.Sprintf("%.1f", perSecond)
	}
	return fmt.Sprintf("%.0f", perSecond)
}

// recordReport is what record prints at the end: what became of every message.
func recordReport(r recorder.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nRecorded %s, %s, in %.1f s into %s", plural(r.Messages, "message"), fileSize(int64(r.Bytes)), r.Elapsed.Seconds(), into(r))
	if r.Files > 1 {
		fmt.Fprintf(&b, " (%d files)", r.Files)
	}
	switch r.Reason {
	case recorder.StopDuration:
		b.WriteString(", stopped by --duration")
	case recorder.StopMessages:
		b.WriteString(", stopped by --max-messages")
	case recorder.StopDisk:
		b.WriteString(", stopped since the disk is nearly full")
	case recorder.StopFailure:
		b.WriteString(", stopped since the storage failed")
	}
	b.WriteString("\n")
	if len(r.Topics) > 0 {
		b.WriteString("\n" + ledgerTable(r.Topics))
	}
	for _, s := range r.Snapshots {
		fmt.Fprintf(&b, "snapshot %s: %s (%s)\n", printable(s.Dir), plural(s.Messages, "message"), printable(s.Reason))
	}
	for _, w := range r.Missing {
		fmt.Fprintf(&b, "%s never appeared\n", printable(w.String()))
	}
	for _, s := range r.ClockSteps {
		fmt.Fprintf(&b, "The wall clock was set by %+.3f s after %.1f s of recording.\n", float64(s.After-s.Before)/1e9, s.Monotonic.Seconds())
	}
	return b.String()
}

// into says where the messages are.
func into(r recorder.Result) string {
	if r.Storage == recorder.StorageNull {
		return "nothing (storage null)"
	}
	return r.Output
}

// ledgerTable is one line per topic: what came, what of it is in the bag, what was lost where.
func ledgerTable(topics []recorder.TopicSnapshot) string {
	t := table{header: []string{"Topic", "recorded", "share", "lost: wire", "queue", "storage"},
		right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true}}
	unknown := false
	var sum recorder.TopicSnapshot
	for _, s := range topics {
		wire := fmt.Sprint(s.Lost.Wire)
		if s.UnknownWriters > 0 {
			unknown = true
			wire += " + ?"
		}
		t.add(printable(s.Name), fmt.Sprint(s.Recorded), percent(s.Recorded, s.Received-s.Skipped+s.Lost.Wire), wire, fmt.Sprint(s.Lost.Queue), fmt.Sprint(s.Lost.Storage))
		sum.Recorded += s.Recorded
		sum.Received += s.Received
		sum.Skipped += s.Skipped
		sum.Deleted += s.Deleted
		sum.Lost.Wire += s.Lost.Wire
		sum.Lost.Queue += s.Lost.Queue
		sum.Lost.Storage += s.Lost.Storage
	}
	if len(topics) > 1 {
		t.add("all", fmt.Sprint(sum.Recorded), percent(sum.Recorded, sum.Received-sum.Skipped+sum.Lost.Wire), fmt.Sprint(sum.Lost.Wire), fmt.Sprint(sum.Lost.Queue),
			fmt.Sprint(sum.Lost.Storage))
	}
	text := t.String()
	if sum.Skipped > 0 {
		text += fmt.Sprintf("%s came and were not to be recorded (throttled, paused, before /clock, or out of memory's ring before anybody asked for a snapshot).\n", plural(sum.Skipped, "message"))
	}
	if sum.Deleted > 0 {
		text += fmt.Sprintf("%s were deleted again with the oldest files.\n", plural(sum.Deleted, "message"))
	}
	if unknown {
		text += "?: a best-effort writer's losses before the first and after the last message that came are unknown.\n"
	}
	return text
}
