package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/internal/sqlview"
	"github.com/gobag/gobag/ros/transcode"
	"github.com/spf13/cobra"
)

// sqlFlags are the flags of `sql`.
type sqlFlags struct {
	storage string
	msgPath []string
	format  string
	csv     bool
	json    bool
	file    string
}

func newSQL(a *app) *cobra.Command {
	var f sqlFlags
	cmd := &cobra.Command{
		Use:   `sql BAG... "SELECT ..."`,
		Short: "Ask questions about bags in SQL",
		Long: `Run one query of SQLite's SQL over the topics of bags, also of one that is being recorded. Nothing is written.

Every topic is a table: "/imu/data", or imu_data where that is unambiguous. Fields are columns named by their path,
"linear_acceleration.x"; times are ns since the epoch; arrays are JSON (json_each, json_extract), arrays of bytes BLOBs.
Beside the fields there are _log_time (ns of reception) and _pub_time, and, when they are named, _bag, _source, _seq,
_order, _size and _cdr. The table messages has all topics, the table topics lists them. Without a query the tables and
their columns are listed.

Bounds on _log_time choose what is read of a bag, and only the columns of a query are decoded.`,
		Example: `  gobag sql run1
  gobag sql run1 'SELECT count(*), avg("linear_acceleration.z") FROM imu_data'
  gobag sql run1 run2 --csv 'SELECT _bag, max(_log_time)-min(_log_time) FROM "/scan" GROUP BY _bag'
  gobag sql run1 "SELECT _log_time, t.value->>'$.child_frame_id' FROM tf, json_each(tf.transforms) t LIMIT 5"`,
		Args: args(cobra.MinimumNArgs(1), "a bag is needed, and a query behind it in quotes"),
		RunE: func(_ *cobra.Command, words []string) error { return runQuery(a, &f, words) },

		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.format, "format", "table", "how to print rows: `FORM` table, csv or json")
	switchFlag(fs, &f.csv, "csv", "", "short for --format csv")
	switchFlag(fs, &f.json, "json", "", "short for --format json")
	fs.StringVarP(&f.file, "file", "f", "", "read the query from `FILE` (- = standard input); all words are bags then")
	fs.StringVarP(&f.storage, "storage", "s", "", "storage format `ID` of the bags (default: recognised by its first bytes)")
	listFlag(fs, &f.msgPath, "msg-path", "", "look for message definitions here first, `DIR...`", true)
	completeFlag(cmd, "storage", completeStorage)
	completeFlag(cmd, "format", cobra.FixedCompletions([]cobra.Completion{"table", "csv", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// maxQuery bounds a file of SQL.
const maxQuery = 1 << 20

// words are the bags and the query of a command line; the query is "" where the tables are wanted.
func (f *sqlFlags) words(a *app, words []string) (bags []string, query string, err error) {
	switch {
	case f.file != "":
		text, err := readLimited(a, f.file, maxQuery)
		if err != nil {
			return nil, "", fmt.Errorf("--file: %w", err)
		}
		return words, string(text), nil
	case len(words) == 1:
		return words, "", nil
	}
	query = words[len(words)-1]
	if _, err := os.Stat(query); err == nil { // bags only
		return words, "", nil
	}
	return words[:len(words)-1], query, nil
}

func runQuery(a *app, f *sqlFlags, words []string) error {
	switch {
	case f.csv && f.json:
		return usageError("sql: --csv and --json exclude each other")
	case f.csv:
		f.format = "csv"
	case f.json:
		f.format = "json"
	}
	printer := map[string]func(*app, *sqlview.Rows) error{"table": sqlTable, "csv": sqlCSV, "json": sqlJSON}[f.format]
	if printer == nil {
		return usageError("sql: --format %q: not one of table, csv, json", f.format)
	}
	bags, query, err := f.words(a, words)
	if err != nil {
		return err
	}
	for _, path := range bags {
		if !exists(path) {
			return fmt.Errorf("bag path %q does not exist", path)
		}
	}
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	o := sqlview.Options{Reader: bag.ReaderOptions{StorageID: f.storage}, MsgPath: f.msgPath}
	turning(a, transcode.FormatCDR, f.msgPath, true, &o.Reader) // bags of ROS 1
	v, err := sqlview.Open(stop.ctx, bags, o)
	if err != nil {
		return err
	}
	err = ask(a, stop.ctx, v, query, printer)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) { // `| head` has seen enough
		err = nil
	}
	for _, line := range v.Trouble() {
		a.logger.Warn(line)
	}
	return errors.Join(err, v.Close())
}

func ask(a *app, ctx context.Context, v *sqlview.View, query string, printer func(*app, *sqlview.Rows) error) error {
	if strings.TrimSpace(query) == "" {
		_, err := fmt.Fprint(a.out, tablesText(v.Tables()))
		return err
	}
	rows, err := v.Query(ctx, query)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if strings.Contains(err.Error(), "not authorized") {
			err = fmt.Errorf("%w: queries only read (SELECT, WITH, EXPLAIN, PRAGMA table_info)", err)
		}
		return err
	}
	err = printer(a, rows)
	_ = rows.Close() // Err says what there is to say
	if err == nil {
		err = rows.Err()
	}
	if err != nil && ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	return err
}

// tablesText lists tables with their columns.
func tablesText(tables []sqlview.Table) string {
	var b strings.Builder
	for _, t := range tables {
		b.WriteString(`"` + strings.ReplaceAll(t.Name, `"`, `""`) + `"`)
		if t.Alias != "" {
			b.WriteString(" or " + t.Alias)
		}
		fmt.Fprintf(&b, "  %s, %s\n", strings.Join(t.Types, ", "), plural(t.Rows, "row"))
		for _, note := range t.Notes {
			fmt.Fprintf(&b, "    no columns for its fields: %s\n", inOneLine(note))
		}
		for _, c := range t.Columns {
			fmt.Fprintf(&b, "    %-40s %s\n", `"`+strings.ReplaceAll(c.Name, `"`, `""`)+`"`, c.Type)
		}
	}
	return b.String()
}
