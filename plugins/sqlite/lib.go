package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"modernc.org/libc"
	moderncsqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// This file is the thin layer over SQLite's C interface (https://sqlite.org/c3ref/intro.html), which the module
// modernc.org/sqlite provides as Go code. The layer is used instead of database/sql because it can hand payloads to
// SQLite and lend them out without copies, and because it holds exactly one connection.

// setup makes the process-wide settings of SQLite before its first use: locks that survive another descriptor of the
// same file being closed in this process, and fdatasync for commits. Where a platform lacks them SQLite's defaults
// stay, so the errors do not matter.
var setup = sync.OnceFunc(func() {
	_, _ = moderncsqlite.OFDLocking(true)
	_, _ = moderncsqlite.Fdatasync(true)
})

// cmem is the pointer of an address in SQLite's own memory, which the garbage collector knows nothing of.
func cmem(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// sqlError is an error of SQLite with its extended result code (https://sqlite.org/rescode.html).
type sqlError struct {
	code int32
	msg  string
}

func (e *sqlError) Error() string { return fmt.Sprintf("%s (%d)", e.msg, e.code) }

// damaged says whether the error means that the file's content is wrong, rather than that it could not be reached.
func damaged(err error) bool {
	var e *sqlError
	if !errors.As(err, &e) {
		return false
	}
	switch e.code & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT:
		return true
	}
	return e.code == sqlite3.SQLITE_IOERR_SHORT_READ
}

// conn is one connection. It is not safe for concurrent use.
type conn struct {
	tls *libc.TLS
	db  uintptr
	out uintptr // room for one pointer that SQLite returns
}

// openConn opens name, a path or, with SQLITE_OPEN_URI, a URI, through the VFS of that name ("" = the system's).
func openConn(name string, flags int32, vfs string) (*conn, error) {
	setup()
	c := &conn{tls: libc.NewTLS()}
	c.out = libc.Xmalloc(c.tls, libc.Tsize_t(unsafe.Sizeof(uintptr(0))))
	cname, err := libc.CString(name)
	if err != nil || c.out == 0 {
		_ = c.close()
		return nil, errors.New("out of memory")
	}
	defer libc.Xfree(c.tls, cname)
	var cvfs uintptr
	if vfs != "" {
		if cvfs, err = libc.CString(vfs); err != nil {
			_ = c.close()
			return nil, errors.New("out of memory")
		}
		defer libc.Xfree(c.tls, cvfs)
	}
	rc := sqlite3.Xsqlite3_open_v2(c.tls, cname, c.out, flags|sqlite3.SQLITE_OPEN_NOMUTEX, cvfs)
	c.db = *(*uintptr)(cmem(c.out))
	if rc != sqlite3.SQLITE_OK {
		err := c.errorOf(rc)
		_ = c.close()
		return nil, err
	}
	sqlite3.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	return c, nil
}

// errorOf returns the error that goes with the result code of the last call.
func (c *conn) errorOf(rc int32) error {
	e := &sqlError{code: rc}
	if c.db != 0 {
		e.msg = libc.GoString(sqlite3.Xsqlite3_errmsg(c.tls, c.db))
		e.code = sqlite3.Xsqlite3_extended_errcode(c.tls, c.db)
	}
	if c.db == 0 || e.code&0xff != rc&0xff {
		e.code, e.msg = rc, libc.GoString(sqlite3.Xsqlite3_errstr(c.tls, rc))
	}
	return e
}

// close closes the connection; statements must have been finalized.
func (c *conn) close() error {
	var err error
	if c.db != 0 {
		if rc := sqlite3.Xsqlite3_close_v2(c.tls, c.db); rc != sqlite3.SQLITE_OK {
			err = c.errorOf(rc)
		}
		c.db = 0
	}
	if c.tls != nil {
		libc.Xfree(c.tls, c.out)
		c.tls.Close()
		c.tls = nil
	}
	return err
}

// exec runs a statement that returns nothing, with the given arguments bound.
func (c *conn) exec(sql string, args ...any) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	defer s.finalize()
	return s.run(args...)
}

// queryText returns the first column of the first row as text; "" where there is no row.
func (c *conn) queryText(sql string) (v string, err error) {
	first := true
	err = c.query(sql, func(s *stmt) error {
		if first {
			v, first = s.text(0), false
		}
		return nil
	})
	return v, err
}

// queryInt returns the first column of the first row as a number; ok is false where there is no row or it is NULL.
func (c *conn) queryInt(sql string, args ...any) (v int64, ok bool, err error) {
	err = c.query(sql, func(s *stmt) error {
		if !ok && s.columnType(0) != sqlite3.SQLITE_NULL {
			v, ok = s.int64(0), true
		}
		return nil
	}, args...)
	return v, ok, err
}

// query calls row for every row of the result.
func (c *conn) query(sql string, row func(*stmt) error, args ...any) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	defer s.finalize()
	if err := s.bind(args...); err != nil {
		return err
	}
	for {
		ok, err := s.step()
		if err == nil && ok {
			err = row(s)
		}
		if err != nil || !ok {
			return err
		}
	}
}

// stmt is a prepared statement of a conn.
type stmt struct {
	c    *conn
	p    uintptr
	keep []any // what is bound, so that it stays on the heap and alive until the next bind
}

func (c *conn) prepare(sql string) (*stmt, error) {
	csql, err := libc.CString(sql)
	if err != nil {
		return nil, errors.New("out of memory")
	}
	defer libc.Xfree(c.tls, csql)
	if rc := sqlite3.Xsqlite3_prepare_v2(c.tls, c.db, csql, -1, c.out, 0); rc != sqlite3.SQLITE_OK {
		return nil, c.errorOf(rc)
	}
	return &stmt{c: c, p: *(*uintptr)(cmem(c.out))}, nil
}

// bind sets the parameters from 1 on: int64, int, uint64, string, []byte or nil.
func (s *stmt) bind(args ...any) error {
	s.keep = s.keep[:0]
	for i, a := range args {
		var err error
		switch v := a.(type) {
		case int64:
			err = s.bindInt64(i+1, v)
		case int:
			err = s.bindInt64(i+1, int64(v))
		case string:
			err = s.bindText(i+1, v)
		case []byte:
			err = s.bindBlob(i+1, v)
		default:
			err = fmt.Errorf("cannot bind a %T", a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stmt) bindInt64(i int, v int64) error {
	if rc := sqlite3.Xsqlite3_bind_int64(s.c.tls, s.p, int32(i), v); rc != sqlite3.SQLITE_OK {
		return s.c.errorOf(rc)
	}
	return nil
}

func (s *stmt) bindText(i int, v string) error {
	b := []byte(v)
	if len(b) == 0 {
		b = make([]byte, 1)
	}
	p, free := s.lend(b)
	defer free()
	if rc := sqlite3.Xsqlite3_bind_text(s.c.tls, s.p, int32(i), p, int32(len(v)), lifetime); rc != sqlite3.SQLITE_OK {
		return s.c.errorOf(rc)
	}
	return nil
}

// bindBlob lends v to the statement until the next bind.
func (s *stmt) bindBlob(i int, v []byte) error {
	var rc int32
	if len(v) == 0 {
		rc = sqlite3.Xsqlite3_bind_zeroblob(s.c.tls, s.p, int32(i), 0)
	} else {
		p, free := s.lend(v)
		rc = sqlite3.Xsqlite3_bind_blob(s.c.tls, s.p, int32(i), p, int32(len(v)), lifetime)
		free()
	}
	if rc != sqlite3.SQLITE_OK {
		return s.c.errorOf(rc)
	}
	return nil
}

// lend gives SQLite the address of b, which must not be empty. SQLite is Go code here and can read Go memory; s.keep
// holds b until the next bind, and makes it escape to the heap, where it does not move. In builds with the race
// detector, whose pointer checks object, the address is that of a copy, which free gives back once SQLite has made its
// own (lifetime is then SQLITE_TRANSIENT).
func (s *stmt) lend(b []byte) (p uintptr, free func()) {
	if !copyBinds {
		first := unsafe.SliceData(b)
		s.keep = append(s.keep, first)
		return uintptr(unsafe.Pointer(first)), func() {}
	}
	p = libc.Xmalloc(s.c.tls, libc.Tsize_t(len(b)))
	if p == 0 {
		panic("out of memory")
	}
	copy(unsafe.Slice((*byte)(cmem(p)), len(b)), b)
	return p, func() { libc.Xfree(s.c.tls, p) }
}

// run binds args, runs the statement to its end and resets it.
func (s *stmt) run(args ...any) error {
	if err := s.bind(args...); err != nil {
		return err
	}
	return s.runBound()
}

// runBound runs the statement to its end with what is bound, and resets it.
func (s *stmt) runBound() error {
	for {
		ok, err := s.step()
		if err != nil {
			_ = s.reset() // it says the same once more
			return err
		}
		if !ok {
			return s.reset()
		}
	}
}

// step goes to the next row; false at the end.
func (s *stmt) step() (bool, error) {
	switch rc := sqlite3.Xsqlite3_step(s.c.tls, s.p); rc {
	case sqlite3.SQLITE_ROW:
		return true, nil
	case sqlite3.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.errorOf(rc)
	}
}

func (s *stmt) reset() error {
	if rc := sqlite3.Xsqlite3_reset(s.c.tls, s.p); rc != sqlite3.SQLITE_OK {
		return s.c.errorOf(rc)
	}
	return nil
}

// finalize frees the statement. SQLite's code is that of a failed step, which step has returned.
func (s *stmt) finalize() {
	sqlite3.Xsqlite3_finalize(s.c.tls, s.p)
	s.p, s.keep = 0, nil
}

func (s *stmt) columnType(i int) int32 {
	return sqlite3.Xsqlite3_column_type(s.c.tls, s.p, int32(i))
}

func (s *stmt) int64(i int) int64 {
	return sqlite3.Xsqlite3_column_int64(s.c.tls, s.p, int32(i))
}

// blob lends the bytes of a column; they are valid until the next step, reset or finalize.
func (s *stmt) blob(i int) []byte {
	p := sqlite3.Xsqlite3_column_blob(s.c.tls, s.p, int32(i))
	n := sqlite3.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i))
	if p == 0 || n <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(cmem(p)), n)
}

// text returns a column as a string, bytes unchanged.
func (s *stmt) text(i int) string {
	p := sqlite3.Xsqlite3_column_text(s.c.tls, s.p, int32(i))
	n := sqlite3.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i))
	if p == 0 || n <= 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(cmem(p)), n))
}
