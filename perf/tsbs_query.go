package perf

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/gobag/gobag/internal/sqlview"
)

// RunTSBSQueries answers queries about a bag, a line of JSON each ({"sql", "repeat"}), by `gobag sql`'s own means, with one
// opening of the bag. It is what processes of `perf tsbs-cpu` and `tsbs-iot` do.
func RunTSBSQueries(ctx context.Context, path string, o sqlview.Options, in io.Reader, out io.Writer) error {
	begin := time.Now()
	v, err := sqlview.Open(ctx, []string{path}, o)
	if err != nil {
		return err
	}
	open := time.Since(begin).Seconds()
	err = answerQueries(ctx, v, open, in, out)
	return errors.Join(err, v.Close())
}

func answerQueries(ctx context.Context, v *sqlview.View, open float64, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	w := json.NewEncoder(out)
	for lines.Scan() {
		var q struct {
			SQL    string `json:"sql"`
			Repeat int    `json:"repeat"`
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return fmt.Errorf("query %.80q: %w", lines.Text(), err)
		}
		res := queryResult{Open: open, Seconds: []float64{}, Rows: [][]any{}}
		cpu := processCPU()
		var err error
		for i := 0; i < max(1, q.Repeat) && err == nil; i++ {
			begin := time.Now()
			res.Rows, err = allRows(ctx, v, q.SQL)
			res.Seconds = append(res.Seconds, time.Since(begin).Seconds())
		}
		res.CPUSeconds = processCPU() - cpu
		if trouble := v.Trouble(); err == nil && len(trouble) > 0 {
			err = errors.New(trouble[0])
		}
		if err != nil {
			res.Error = err.Error()
		}
		if err := w.Encode(res); err != nil {
			return err
		}
	}
	return lines.Err()
}

// allRows is the answer to a query.
func allRows(ctx context.Context, v *sqlview.View, sql string) ([][]any, error) {
	rows, err := v.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	names, err := rows.Columns()
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	all := [][]any{}
	pointers := make([]any, len(names))
	for rows.Next() {
		row := make([]any, len(names))
		for i := range row {
			pointers[i] = &row[i]
		}
		if err := rows.Scan(pointers...); err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		all = append(all, row)
	}
	err = rows.Err()
	return all, errors.Join(err, rows.Close())
}

// differ tells where two answers to the same question differ, "" where they do not. Numbers may differ in what the order of
// adding up makes.
func differ(a, b [][]any) string {
	if len(a) != len(b) {
		return fmt.Sprintf("%d rows and %d rows", len(a), len(b))
	}
	for i := range a {
		if len(a[i]) != len(b[i]) {
			return fmt.Sprintf("row %d has %d and %d columns", i, len(a[i]), len(b[i]))
		}
		for j := range a[i] {
			if !sameValue(a[i][j], b[i][j]) {
				return fmt.Sprintf("row %d, column %d: %v and %v", i, j, a[i][j], b[i][j])
			}
		}
	}
	return ""
}

func sameValue(a, b any) bool {
	x, xok := a.(json.Number)
	y, yok := b.(json.Number)
	if !xok || !yok {
		return a == b
	}
	if x == y {
		return true
	}
	f, err := x.Float64()
	g, err2 := y.Float64()
	whole := !strings.ContainsAny(string(x)+string(y), ".eE")
	return err == nil && err2 == nil && !whole && math.Abs(f-g) <= 1e-9*max(1, math.Abs(f), math.Abs(g))
}
