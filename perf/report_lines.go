package perf

import (
	"fmt"
	"math"
	"strings"
)

// line is one curve of a chart.
type line struct {
	name, class string
	value       func(Point) float64
}

// Size of a chart's drawing area in its own units; it is stretched to the width there is.
const (
	chartWidth  = 1000
	chartHeight = 200
)

// lines draws curves over a cell's time. The labels are text beside the drawing, so that they are not stretched with it.
func (p *page) lines(c *Cell, title, unit string, curves ...line) {
	from, to := c.Series[0].Seconds, c.Series[len(c.Series)-1].Seconds
	top := 0.0
	for _, l := range curves {
		for _, x := range c.Series {
			top = max(top, l.value(x))
		}
	}
	top = niceTop(top)
	x := func(s float64) float64 { return chartWidth * (s - from) / max(to-from, 1e-9) }
	y := func(v float64) float64 { return chartHeight * (1 - v/top) }
	p.f("<figure>\n<figcaption>%s <span class=\"quiet\">%s</span>", title, unit)
	if len(curves) > 1 {
		for _, l := range curves {
			p.f(" <span class=\"key %s\"></span>%s", l.class, l.name)
		}
	}
	p.f("</figcaption>\n<div class=\"plot\"><div class=\"axis\"><span>%s</span><span>%s</span><span>0</span></div>\n", axisText(top), axisText(top/2))
	p.f("<svg class=\"chart lines\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s of %s\">\n", chartWidth, chartHeight, title, c.Name())
	for _, s := range c.Disk {
		p.f("<rect x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\" class=\"stall\"/>\n", x(s.Seconds), max(1, x(s.Seconds+s.For)-x(s.Seconds)), chartHeight)
	}
	for _, share := range []float64{0, 0.5, 1} {
		p.f("<line x1=\"0\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" class=\"rule\"/>\n", chartWidth, y(top*share), y(top*share))
	}
	for _, l := range curves {
		var points strings.Builder
		for _, s := range c.Series {
			fmt.Fprintf(&points, "%.1f,%.1f ", x(s.Seconds), y(max(0, l.value(s))))
		}
		p.f("<polyline points=\"%s\" class=\"curve %s\"><title>%s</title></polyline>\n", strings.TrimSpace(points.String()), l.class, l.name)
	}
	p.f("</svg></div>\n<div class=\"times\"><span>%s s</span><span>%s s</span></div>\n</figure>\n", seconds(from), seconds(to))
}

// niceTop is the least of 1, 2, 2.5 and 5 times a power of ten that is not below v; 1 for nothing.
func niceTop(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if v <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

func seconds(v float64) string {
	if math.Abs(v) < 0.05 {
		v = 0 // not "-0.0"
	}
	return fmt.Sprintf("%.1f", v)
}

// axisText is a number with as many digits as an axis needs.
func axisText(v float64) string {
	if math.Abs(v) >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
