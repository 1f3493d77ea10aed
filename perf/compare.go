package perf

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// Compare writes, for every cell that both reports have, the medians of both and the ratio b / a with its range: the
// smallest that one run of each gives and the largest. Emulated results are not compared with real ones, nor those of
// different devices.
func Compare(w io.Writer, a, b Report, nameA, nameB string) error {
	if a.Emulated() != b.Emulated() {
		real, emulated := nameA, nameB
		if a.Emulated() {
			real, emulated = nameB, nameA
		}
		return fmt.Errorf("compare: %s was measured and %s is emulated: they are not to be compared", real, emulated)
	}
	if a.Emulated() && a.Device.Name != b.Device.Name {
		return fmt.Errorf("compare: %s emulates %s and %s %s: they are not to be compared", nameA, a.Device.Name, nameB, b.Device.Name)
	}
	rowsB := b.Rows()
	var out strings.Builder
	fmt.Fprintf(&out, "A  %s: %s\nB  %s: %s\n", nameA, a.where(), nameB, b.where())
	if a.Machine.CPU != b.Machine.CPU || a.Machine.Cores != b.Machine.Cores {
		out.WriteString("The machines differ.\n")
	}
	out.WriteString("Ratio B / A of the medians, in parentheses the range over all pairs of runs.\n\n")
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "cell\tfigure\tA\tB\tB / A\n")
	common := 0
	for _, ra := range a.Rows() {
		i := slices.IndexFunc(rowsB, func(r Row) bool { return r.Key == ra.Key })
		if i < 0 || len(ra.Cells) == 0 || len(rowsB[i].Cells) == 0 {
			continue
		}
		common++
		name := ra.Cells[0].Name()
		for _, m := range metrics {
			sa, sb := ra.SpreadOf(m.value), rowsB[i].SpreadOf(m.value)
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", name, m.name, sa.Text(m.decimals), sb.Text(m.decimals), ratioSpread(sa, sb))
			name = ""
		}
	}
	if common == 0 {
		return errors.New("compare: the results have no cell in common (load, storage, preset, cache and the like must be equal)")
	}
	_ = t.Flush() // a Builder takes everything
	_, err := io.WriteString(w, out.String())
	return err
}

// where says what was measured on.
func (r *Report) where() string {
	s := r.Machine.String()
	if r.Emulated() {
		s = r.Device.String() + "; on " + s
	}
	return fmt.Sprintf("gobag %s, %s, %s", r.Version, r.Start.Format("2006-01-02 15:04"), s)
}

func ratioSpread(a, b Spread) string {
	if a.Median <= 0 || a.Min <= 0 {
		return "-"
	}
	s := Spread{b.Median / a.Median, b.Min / a.Max, b.Max / a.Min}
	return s.Text(3)
}
