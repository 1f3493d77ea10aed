package main

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// infoIndent is the column at which values stand, as in rosbag2.
const infoIndent = 19

// infoWriter writes "Name:" and a value in rosbag2's columns.
type infoWriter struct{ strings.Builder }

func (w *infoWriter) field(name, value string) { w.list(name, []string{value}) }

// list writes a field of several lines. A name that fills the column still has one blank behind it.
func (w *infoWriter) list(name string, values []string) {
	column := max(infoIndent, len(name)+2)
	line := fmt.Sprintf("%-*s", column, name+":")
	for _, v := range values {
		w.WriteString(strings.TrimRight(line+v, " ") + "\n")
		line = strings.Repeat(" ", column)
	}
	if len(values) == 0 {
		w.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// infoText is the text of `info`, in the layout of rosbag2 (format_bag_metadata.cpp) where rosbag2 has the field.
func infoText(r *bag.Reader, sizes map[plugin.TopicID]topicSize, o infoOptions) string {
	info := r.Info()
	loc := o.loc
	if loc == nil {
		loc = time.Local
	}
	w := &infoWriter{}
	w.WriteString("\n")
	var files []string
	for _, f := range info.Files {
		files = append(files, printable(f.Path))
	}
	w.list("Files", files)
	w.field("Bag size", fileSize(info.Size))
	w.field("Storage id", printable(info.StorageID))
	distro := info.ROSDistro
	if distro == "" {
		distro = "unknown"
	}
	w.field("ROS Distro", printable(distro))
	w.field("Duration", durationSeconds(info.Duration))
	if info.Messages > 0 {
		w.field("Start", timePoint(info.Start, loc))
		w.field("End", timePoint(info.End, loc))
	} else {
		w.field("Start", "no messages")
		w.field("End", "no messages")
	}
	groups := group(info.Topics, o.sort)
	w.field("Messages", fmt.Sprint(groups.messages))
	if info.Compression != "" {
		w.field("Compression", printable(info.Compression))
	}
	w.list("Topic information", groups.topicLines(sizes, o.verbose))
	w.field("Services", fmt.Sprint(len(groups.services)))
	w.list("Service information", groups.serviceLines(sizes, o.verbose))
	w.field("Actions", fmt.Sprint(len(groups.actions)))
	w.list("Action information", groups.actionLines())
	w.WriteString(infoNotes(info, o))
	return w.String()
}

// infoNames is `info --topic-name`: one name a line, service events and actions left out.
func infoNames(r *bag.Reader, o infoOptions) string {
	var b strings.Builder
	for _, t := range group(r.Info().Topics, o.sort).topics {
		b.WriteString(printable(t.Name) + "\n")
	}
	return b.String()
}

// infoNotes is what rosbag2 has no field for: losses, clock steps, custom data, what is wrong with the bag.
func infoNotes(info bag.Info, o infoOptions) string {
	var b strings.Builder
	if info.StillRecording {
		b.WriteString("\nThis bag is being recorded right now.\n")
	} else if info.CutOff {
		b.WriteString("\nThe recording was cut off: it was not closed in order. What is shown is what is whole.\n")
	}
	b.WriteString(lostText(info))
	for _, s := range info.ClockSteps {
		fmt.Fprintf(&b, "\nThe wall clock was set by %+.3f s after %.1f s of recording: stamps jump there.", float64(s.After-s.Before)/1e9, s.Monotonic.Seconds())
	}
	if len(info.ClockSteps) > 0 {
		b.WriteString("\n")
	}
	var keys []string
	for k := range info.CustomData {
		if !strings.HasPrefix(k, "gobag.") {
			keys = append(keys, k)
		}
	}
	if len(keys) > 0 {
		sort.Strings(keys)
		b.WriteString("\nCustom data:\n")
		for _, k := range keys {
			fmt.Fprintf(&b, "  %s: %s\n", printable(k), printable(info.CustomData[k]))
		}
	}
	for _, s := range info.SimJumps {
		fmt.Fprintf(&b, "\n/clock went back by %.3f s after %.1f s of recording: stamps do too.\n", float64(s.Before-s.After)/1e9, s.Monotonic.Seconds())
	}
	if o.verbose {
		b.WriteString(overloads(info))
		b.WriteString(flowText(info))
		b.WriteString(verboseFiles(info))
	}
	if len(info.Warnings) > 0 {
		b.WriteString("\nWarnings:\n")
		for _, w := range info.Warnings {
			b.WriteString("  " + printable(w) + "\n")
		}
	}
	return b.String()
}

// lostText is the ledger of the bag: a sentence when nothing is lost, else the topics that lost something.
func lostText(info bag.Info) string {
	if info.Ledger == nil {
		return ""
	}
	t := table{header: []string{"  Topic", "recorded", "share", "lost: wire", "queue", "storage"}, right: map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true}}
	unknown := 0
	var names []string
	for name := range info.Ledger.Topics {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		l := info.Ledger.Topics[name]
		unknown += l.UnknownWriters
		if l.Lost.Total() > 0 {
			t.add("  "+printable(name), fmt.Sprint(l.Recorded), percent(l.Recorded, l.Recorded+l.Lost.Total()), fmt.Sprint(l.Lost.Wire), fmt.Sprint(l.Lost.Queue), fmt.Sprint(l.Lost.Storage))
		}
	}
	text := "\nLost while recording: nothing"
	if len(t.rows) > 0 {
		text = "\nLost while recording:\n" + strings.TrimRight(t.String(), "\n")
	}
	if unknown > 0 {
		text += fmt.Sprintf("\n(%s: what they lost before the first and after the last message that came is unknown)", plural(uint64(unknown), "best-effort writer"))
	}
	return text + "\n"
}

// overloads tells when the queue was full.
func overloads(info bag.Info) string {
	if len(info.Overloads) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nOverload while recording:\n")
	for _, o := range info.Overloads {
		fmt.Fprintf(&b, "  %s\n", overloadText(o))
	}
	return b.String()
}

// flowText is how evenly messages came, as the recorder saw it.
func flowText(info bag.Info) string {
	t := table{header: []string{"  Topic", "rate", "jitter", "longest gap", "at"}, right: map[int]bool{1: true, 2: true, 3: true, 4: true}}
	for _, x := range info.Topics {
		if l := x.Ledger; l != nil && l.Gap > 0 {
			rate, jitter := "-", "-"
			if l.Rate > 0 {
				rate = fmt.Sprintf("%.2f Hz", l.Rate)
			}
			if l.Jitter > 0 {
				jitter = fmt.Sprintf("%.3f ms", float64(l.Jitter)/1e6)
			}
			t.add("  "+printable(x.Name), rate, jitter, fmt.Sprintf("%.3f s", float64(l.Gap)/1e9), fmt.Sprintf("%+.3f s", float64(l.GapAt-info.Start)/1e9))
		}
	}
	if len(t.rows) == 0 {
		return ""
	}
	return "\nAs it came:\n" + t.String()
}

func verboseFiles(info bag.Info) string {
	t := table{header: []string{"  File", "size", "messages", "duration", "format"}, right: map[int]bool{1: true, 2: true, 3: true}}
	for _, f := range info.Files {
		format := f.Format
		if f.CutOff {
			format = strings.TrimSpace(format + " (cut off)")
		}
		t.add("  "+printable(f.Path), fileSize(f.Size), fmt.Sprint(f.Messages), durationSeconds(f.Duration), format)
	}
	return "\nFiles in detail:\n" + t.String()
}
