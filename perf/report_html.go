package perf

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"
	"time"
)

// reportCSS is the style of the page: light and dark, wide and narrow.
//
//go:embed report.css
var reportCSS string

// WriteHTML writes the report as one page that needs nothing else: no script, no font, no picture from elsewhere.
func (r *Report) WriteHTML(w io.Writer) error {
	p := page{r: r}
	p.head()
	p.facts()
	p.shares()
	p.table()
	p.overTime()
	p.foot()
	_, err := io.WriteString(w, p.b.String())
	return err
}

// page is the HTML page of a report.
type page struct {
	r *Report
	b strings.Builder
}

// f appends formatted HTML; strings among the arguments are escaped.
func (p *page) f(format string, args ...any) {
	for i, a := range args {
		if s, ok := a.(string); ok {
			args[i] = html.EscapeString(s)
		}
	}
	fmt.Fprintf(&p.b, format, args...)
}

func (p *page) title() string {
	if p.r.Scenario == "" {
		return "gobag perf record"
	}
	return "gobag perf record: " + p.r.Scenario
}

func (p *page) head() {
	p.f("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n")
	p.f("<meta name=\"color-scheme\" content=\"light dark\"/>\n<link rel=\"icon\" href=\"data:,\"/>\n<title>%s</title>\n<style>\n", p.title())
	p.b.WriteString(reportCSS)
	p.f("</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n", p.title())
	if p.r.Emulated() {
		p.f("<p class=\"emulated\"><strong>Emulated.</strong> %s. %s</p>\n", p.r.Device.String(), p.r.Device.Limits)
	}
}

// facts are the totals and the machine.
func (p *page) facts() {
	var sent, recorded uint64
	var lost Lost
	failed := 0
	for i := range p.r.Cells {
		c := &p.r.Cells[i]
		sent += c.Publisher.Sent
		recorded += c.Recorded
		lost.add(c.Lost)
		if c.Failed() != "" {
			failed++
		}
	}
	p.f("<dl class=\"tiles\">\n")
	tile := func(name, value, class string) {
		p.f("<div class=\"%s\"><dt>%s</dt><dd>%s</dd></div>\n", class, name, value)
	}
	tile("messages sent", grouped(sent), "")
	tile("recorded", share(recorded, sent), "")
	tile("lost on the wire", grouped(lost.Wire), "")
	tile("lost at the queue", grouped(lost.Queue), "")
	tile("lost by the storage", grouped(lost.Storage), "")
	class := ""
	if failed > 0 {
		class = "bad"
	}
	tile("cells failed", fmt.Sprintf("%d of %d", failed, len(p.r.Cells)), class)
	p.f("</dl>\n<p class=\"quiet\">%s gobag %s, %s, seed %d. %s</p>\n", p.r.machineText(), p.r.Version, p.r.Start.Format("2006-01-02 15:04 MST"), p.r.Seed, p.r.method())
	if p.r.Stopped {
		p.f("<p class=\"emulated\">The run was stopped before its last cell.</p>\n")
	}
	for _, n := range p.r.Notes {
		p.f("<p class=\"quiet\">%s</p>\n", n)
	}
}

// grouped is a number with thin spaces between thousands.
func grouped(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// shares is the chart of what was recorded, by load and setup.
func (p *page) shares() {
	p.f("<section>\n<h2>Recorded</h2>\n<p class=\"quiet\">Share of the messages sent, median of the runs; the thin line is their range")
	ceilings := false
	for _, c := range p.r.Cells {
		ceilings = ceilings || c.Ceiling != nil
	}
	if ceilings {
		p.f(", the mark the ceiling of the disk")
	}
	p.f(".</p>\n")
	var loads []string
	byLoad := map[string][]Row{}
	for _, row := range p.r.Rows() {
		load, _, _ := strings.Cut(row.Key, " | ")
		if len(byLoad[load]) == 0 {
			loads = append(loads, load)
		}
		byLoad[load] = append(byLoad[load], row)
	}
	for _, load := range loads {
		p.bars(load, byLoad[load])
	}
	p.f("</section>\n")
}

// barHeight is the height of a bar with its label, pixels.
const barHeight = 40

// bars draws one load: a bar for each setup, in percent of the width whatever that is.
func (p *page) bars(load string, rows []Row) {
	p.f("<h3>%s</h3>\n<svg class=\"chart bars\" width=\"100%%\" height=\"%d\" role=\"img\" aria-label=\"recorded share, %s\">\n", load, len(rows)*barHeight, load)
	for i, row := range rows {
		y := i * barHeight
		_, setup, _ := strings.Cut(row.Key, " | ")
		s := row.SpreadOf((*Cell).Percent)
		value := row.percentText()
		if len(row.Cells) > 0 {
			value += " %"
		}
		p.f("<text x=\"0\" y=\"%d\" class=\"label\">%s</text>\n<text x=\"100%%\" y=\"%d\" class=\"value\">%s</text>\n", y+14, setup, y+14, value)
		p.f("<rect x=\"0\" y=\"%d\" width=\"100%%\" height=\"10\" rx=\"2\" class=\"track\"/>\n", y+20)
		p.f("<rect x=\"0\" y=\"%d\" width=\"%.2f%%\" height=\"10\" rx=\"2\" class=\"bar\"><title>%s, %s: %s</title></rect>\n", y+20, max(0, s.Median), load, setup, value)
		if s.Max > s.Min {
			p.f("<line x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\" class=\"range\"/>\n", s.Min, s.Max, y+25, y+25)
		}
		if len(row.Cells) > 0 && row.Cells[0].Ceiling != nil {
			x := row.Cells[0].Ceiling.Percent
			p.f("<line x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%d\" y2=\"%d\" class=\"ceiling\"><title>%s</title></line>\n", x, x, y+17, y+33, row.Cells[0].Ceiling.String())
		}
	}
	p.f("</svg>\n")
}

// table is the same in numbers.
func (p *page) table() {
	p.f("<section>\n<h2>In numbers</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>load</th><th>setup</th><th>MB/s</th><th>recorded %%</th><th>ceiling %%</th><th>lost wire</th><th>queue</th><th>storage</th>" +
		"<th>recorder CPU s</th><th>RSS MiB</th><th>publisher CPU s</th><th>latency p50 ms</th><th>p99 ms</th><th>max ms</th><th>stop s</th><th>bag MB</th><th>runs</th></tr></thead>\n<tbody>\n")
	for _, row := range p.r.Rows() {
		load, setup, _ := strings.Cut(row.Key, " | ")
		p.f("<tr><td>%s</td><td>%s</td>", load, setup)
		if len(row.Cells) == 0 {
			p.f("<td class=\"bad\" colspan=\"14\">failed</td><td>0 of %d</td></tr>\n", row.All)
			continue
		}
		var lost Lost
		for _, c := range row.Cells {
			lost.add(c.Lost)
		}
		of := func(decimals int, f func(*Cell) float64) {
			s := row.SpreadOf(f)
			p.f("<td>%s</td>", s.Text(decimals))
		}
		of(1, (*Cell).MBPerSecond)
		p.f("<td>%s</td>", row.percentText())
		if c := row.Cells[0].Ceiling; c != nil {
			p.f("<td>%.1f</td>", c.Percent)
		} else {
			p.f("<td>–</td>")
		}
		p.f("<td>%d</td><td>%d</td><td>%d</td>", lost.Wire, lost.Queue, lost.Storage)
		of(2, func(c *Cell) float64 { return c.Recorder.CPUSeconds })
		of(1, func(c *Cell) float64 { return mib(c.Recorder.PeakRSS) })
		of(2, func(c *Cell) float64 { return c.Publisher.CPUSeconds })
		for _, f := range []func(*Cell) float64{func(c *Cell) float64 { return milli(c.Latency.P50) }, func(c *Cell) float64 { return milli(c.Latency.P99) },
			func(c *Cell) float64 { return milli(c.Latency.Max) }} {
			of(2, f)
		}
		of(1, func(c *Cell) float64 { return c.StopSeconds })
		of(1, func(c *Cell) float64 { return float64(c.BagBytes) / 1e6 })
		p.f("<td>%d of %d</td></tr>\n", len(row.Cells), row.All)
	}
	p.f("</tbody></table></div>\n")
	told := map[string]bool{}
	for i := range p.r.Cells {
		c := &p.r.Cells[i]
		if c.Ceiling != nil && !told[c.Ceiling.String()] {
			told[c.Ceiling.String()] = true
			p.f("<p class=\"quiet\">%s: %s.</p>\n", c.Load, c.Ceiling.String())
		}
		for _, line := range c.remarks() {
			p.f("<p class=\"quiet\">%s, run %d: %s</p>\n", c.Name(), c.Repeat, line)
		}
	}
	p.groups()
	p.f("</section>\n")
}

// groups is the table of the groups of loads that have several.
func (p *page) groups() {
	open := false
	for i := range p.r.Cells {
		c := &p.r.Cells[i]
		if len(c.Groups) < 2 || c.Error != "" {
			continue
		}
		if !open {
			open = true
			p.f("<h3>By group</h3>\n<div class=\"scroll\"><table>\n<thead><tr><th>cell</th><th>group</th><th>publishes</th><th>sent</th><th>recorded %%</th><th>lost wire</th><th>queue</th><th>storage</th><th>latency p99 ms</th></tr></thead>\n<tbody>\n")
		}
		for k, g := range c.Groups {
			name := fmt.Sprintf("%s, run %d", c.Name(), c.Repeat)
			if k > 0 {
				name = ""
			}
			p.f("<tr><td>%s</td><td>%s</td><td>%s</td><td>%d</td><td>%s</td><td>%d</td><td>%d</td><td>%d</td><td>%s</td></tr>\n", name, g.Name, g.Group.String(), g.Sent,
				strings.TrimSuffix(share(g.Recorded, g.Sent), " %"), g.Lost.Wire, g.Lost.Queue, g.Lost.Storage, ms(g.Latency.P99))
		}
	}
	if open {
		p.f("</tbody></table></div>\n")
	}
}

func milli(d time.Duration) float64 { return float64(d) / 1e6 }

// overTime draws the first good run of each row.
func (p *page) overTime() {
	p.f("<section>\n<h2>Over time</h2>\n<p class=\"quiet\">The first run of each cell; 0 is when the first message was due. Grey: the emulated disk stood still.</p>\n")
	for _, row := range p.r.Rows() {
		if len(row.Cells) == 0 || len(row.Cells[0].Series) < 2 {
			continue
		}
		c := row.Cells[0]
		p.f("<h3>%s</h3>\n<div class=\"grid\">\n", c.Name())
		p.lines(c, "CPU", "cores", line{"recorder", "one", func(x Point) float64 { return x.RecorderCPU }}, line{"publishers", "two", func(x Point) float64 { return x.PublisherCPU }})
		p.lines(c, "Resident memory", "MiB", line{"recorder", "one", func(x Point) float64 { return mib(x.RecorderRSS) }},
			line{"publishers", "two", func(x Point) float64 { return mib(x.PublisherRSS) }})
		p.lines(c, "Stalls: longest latency", "ms", line{"until received", "one", func(x Point) float64 { return float64(x.Latency) / 1e6 }},
			line{"until published", "two", func(x Point) float64 { return float64(x.Late) / 1e6 }})
		p.lines(c, "Disk: size of the bag", "MB", line{"bag", "one", func(x Point) float64 { return float64(x.BagBytes) / 1e6 }})
		p.f("</div>\n")
	}
	p.f("</section>\n")
}

func (p *page) foot() { p.f("</main>\n</body>\n</html>\n") }
