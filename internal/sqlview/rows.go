package sqlview

import (
	"database/sql"
	"errors"
)

// Rows are the rows of a query.
type Rows struct {
	rows   *sql.Rows // of SQLite; nil where a kernel has answered
	result *result
	next   int // of result
	v      *View
}

// Columns are the names of the columns.
func (r *Rows) Columns() ([]string, error) {
	if r.rows != nil {
		return r.rows.Columns()
	}
	return r.result.names, nil
}

// Next moves to the next row; false at the end.
func (r *Rows) Next() bool {
	if r.rows != nil {
		return r.rows.Next()
	}
	if r.next >= len(r.result.rows) {
		r.next = len(r.result.rows) + 1
		return false
	}
	r.next++
	return true
}

// Scan copies the row into as many *any as there are columns: int64, float64, string, []byte or nil.
func (r *Rows) Scan(into ...any) error {
	if r.rows != nil {
		return r.rows.Scan(into...)
	}
	if r.next < 1 || r.next > len(r.result.rows) {
		return errors.New("scan: no row")
	}
	row := r.result.rows[r.next-1]
	if len(into) != len(row) {
		return errors.New("scan: as many destinations as columns are needed")
	}
	for i, to := range into {
		p, ok := to.(*any)
		if !ok {
			return errors.New("scan: a destination is no *any")
		}
		*p = row[i]
	}
	return nil
}

// ByKernel tells whether kernels answered the query, and not SQLite.
func (r *Rows) ByKernel() bool { return r.rows == nil }

// Err is why the rows ended early, nil if they did not.
func (r *Rows) Err() error {
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	if r.v.err != nil {
		return r.v.err
	}
	if r.rows == nil {
		return nil
	}
	return r.rows.Err()
}

// Close ends the query.
func (r *Rows) Close() error {
	if r.rows == nil {
		r.next = len(r.result.rows) + 1
		return nil
	}
	return r.rows.Close()
}
