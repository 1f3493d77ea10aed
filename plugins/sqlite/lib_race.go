//go:build race

package sqlite

import sqlite3 "modernc.org/sqlite/lib"

const (
	copyBinds = true
	lifetime  = sqlite3.SQLITE_TRANSIENT
)
