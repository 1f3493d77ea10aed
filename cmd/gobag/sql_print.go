package main

import (
	"bufio"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gobag/gobag/internal/sqlview"
)

// tableSample is how many rows a table's column widths are made from; rows behind them may be wider.
const tableSample = 1000

// sqlScan reads rows one by one; the values are valid for the call.
func sqlScan(rows *sqlview.Rows, columns int, row func(values []any) error) error {
	values, pointers := make([]any, columns), make([]any, columns)
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return err
		}
		if err := row(values); err != nil {
			return err
		}
	}
	return nil // the caller asks rows.Err
}

// sqlTable prints rows in columns. Numbers are aligned to the right.
func sqlTable(a *app, rows *sqlview.Rows) error {
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	w := bufio.NewWriter(a.out)
	sample := [][]any{}
	width := make([]int, len(names))
	for i, name := range names {
		width[i] = utf8.RuneCountInString(name)
	}
	n := uint64(0)
	flush := func() {
		if sample == nil {
			return
		}
		for _, row := range sample {
			for i, v := range row {
				width[i] = max(width[i], utf8.RuneCountInString(cell(v)))
			}
		}
		line := make([]string, len(names))
		for i, name := range names {
			line[i] = padded(name, width[i], i == len(names)-1, false)
		}
		fmt.Fprintln(w, strings.Join(line, "  "))
		for i := range line {
			line[i] = strings.Repeat("-", width[i])
		}
		fmt.Fprintln(w, strings.Join(line, "  "))
		for _, row := range sample {
			printRow(w, row, width)
		}
		sample = nil
	}
	err = sqlScan(rows, len(names), func(values []any) error {
		n++
		if sample == nil {
			printRow(w, values, width)
			return nil
		}
		sample = append(sample, append([]any(nil), values...))
		if len(sample) == tableSample {
			flush()
			return w.Flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	flush()
	fmt.Fprintf(w, "(%s)\n", plural(n, "row"))
	return w.Flush()
}

func printRow(w io.Writer, row []any, width []int) {
	line := make([]string, len(row))
	for i, v := range row {
		_, text := v.(string)
		_, blob := v.([]byte)
		line[i] = padded(cell(v), width[i], i == len(row)-1, !text && !blob && v != nil)
	}
	fmt.Fprintln(w, strings.Join(line, "  "))
}

func padded(s string, width int, last, right bool) string {
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
	switch {
	case right:
		return pad + s
	case last:
		return s
	}
	return s + pad
}

// cell is a value in a table: control characters are made visible, long bytes are cut.
func cell(v any) string {
	const longest = 32
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		if len(v) > longest {
			return "x'" + hex.EncodeToString(v[:longest]) + "…' (" + strconv.Itoa(len(v)) + " bytes)"
		}
		return "x'" + hex.EncodeToString(v) + "'"
	case string:
		return printable(v)
	}
	return plainValue(v)
}

// plainValue is a number or text as it is; floats in their shortest form.
func plainValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0"
		}
		return s
	case []byte:
		return hex.EncodeToString(v)
	}
	return fmt.Sprint(v)
}

// sqlCSV prints RFC 4180 with a header: NULL is empty, bytes are hexadecimal.
func sqlCSV(a *app, rows *sqlview.Rows) error {
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	w := csv.NewWriter(a.out)
	if err := w.Write(names); err != nil {
		return err
	}
	record := make([]string, len(names))
	err = sqlScan(rows, len(names), func(values []any) error {
		for i, v := range values {
			record[i] = plainValue(v)
		}
		return w.Write(record)
	})
	w.Flush()
	if err == nil {
		err = w.Error()
	}
	return err
}

// sqlJSON prints an array of objects, one a line. Bytes are base64; infinities are text, since JSON has none.
func sqlJSON(a *app, rows *sqlview.Rows) error {
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = string(jsonOf(name))
	}
	w := bufio.NewWriter(a.out)
	first := true
	fmt.Fprint(w, "[")
	err = sqlScan(rows, len(names), func(values []any) error {
		if !first {
			fmt.Fprint(w, ",")
		}
		first = false
		fmt.Fprint(w, "\n{")
		for i, v := range values {
			if i > 0 {
				fmt.Fprint(w, ", ")
			}
			fmt.Fprint(w, keys[i], ": ")
			if _, err := w.Write(jsonOf(v)); err != nil {
				return err
			}
		}
		_, err := fmt.Fprint(w, "}")
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprint(w, "\n]\n")
	return w.Flush()
}

// jsonOf is a value of SQLite as JSON.
func jsonOf(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil { // an infinity
		b, _ = json.Marshal(plainValue(v)) // a string
	}
	return b
}

// readLimited reads a file, "-" standard input, of at most limit bytes.
func readLimited(a *app, path string, limit int64) ([]byte, error) {
	in := a.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return text, err
}
