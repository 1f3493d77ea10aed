package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

// sides are the files that SQLite, or we, may keep beside a database.
var sides = []string{"-journal", "-wal", "-shm", logSuffix}

// create makes the database under a temporary name and publishes it whole, so that whatever the moment of a crash the
// file at path is a database with all its tables; then it opens it for recording.
func create(ctx context.Context, path string, o plugin.WriteOptions) (*writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pr, err := lookupPreset(o.Preset)
	if err != nil {
		return nil, err
	}
	pragmas, err := parseConfig(o.Config)
	if err != nil {
		return nil, err
	}
	for _, side := range append([]string{""}, sides...) {
		if _, err := os.Lstat(path + side); err == nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path+side), plugin.ErrExists)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	tmp := fsx.TempName(path)
	size := sqlPage
	if ownPages(pragmas) {
		size = pageSize
	}
	if err := buildEmpty(tmp, size, o, pragmas); err != nil {
		return nil, errors.Join(err, remove(tmp))
	}
	if err := fsx.PublishNew(tmp, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = plugin.ErrExists
		}
		return nil, errors.Join(err, remove(tmp))
	}
	w := &writer{path: path, preset: pr, humble: o.Compat == plugin.CompatHumble}
	if err := w.open(pragmas); err != nil {
		err = errors.Join(err, remove(path))
		for _, side := range sides {
			err = errors.Join(err, remove(path+side))
		}
		return nil, err
	}
	return w, nil
}

// remove removes a file if it is there.
func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// buildEmpty makes and syncs a database at path, which must not exist, with all tables and no messages; size is that of
// its pages unless a pragma says otherwise.
func buildEmpty(path string, size int, o plugin.WriteOptions, pragmas []pragma) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := openConn(path, sqlite3.SQLITE_OPEN_READWRITE, "")
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }() // after a failure; at the end it is checked
	for _, p := range []string{"page_size = " + fmt.Sprint(size), "locking_mode = EXCLUSIVE", "journal_mode = OFF", "synchronous = OFF"} {
		if _, err := c.queryText("PRAGMA " + p); err != nil {
			return err
		}
	}
	if err := checkPragmas(c, pragmas); err != nil {
		return err
	}
	early := slices.DeleteFunc(slices.Clone(pragmas), func(p pragma) bool { return !p.beforeTables() })
	if err := applyPragmas(c, early); err != nil {
		return err
	}
	state := 0
	if ownPages(pragmas) {
		n, _, err := c.queryInt("PRAGMA page_size")
		if err != nil {
			return err
		}
		state = int(n) - stateRoom
	}
	if err := c.exec("BEGIN"); err != nil {
		return err
	}
	if err := createTables(c, o, state); err != nil {
		return err
	}
	if err := c.exec("COMMIT"); err != nil {
		return err
	}
	if err := c.close(); err != nil {
		return err
	}
	return f.Sync()
}

// writePages is false where tests have SQLite write everything.
var writePages = true

// ownPages says whether the pages of messages can be written without SQLite: the user's pragmas do not ask for anything
// else.
func ownPages(pragmas []pragma) bool {
	return writePages && !slices.ContainsFunc(pragmas, func(p pragma) bool { return p.name != "page_size" && p.name != "cache_size" })
}

// open opens the finished empty database for recording.
func (w *writer) open(pragmas []pragma) (err error) {
	if ownPages(pragmas) {
		w.e, err = openPageEngine(w.path, w.preset, pragmas)
		w.log = &syncLog{path: w.path + logSuffix, wait: w.preset.name != plugin.PresetNone, sync: datasync}
	} else {
		w.e, err = openSQLEngine(w.path, w.preset, pragmas)
	}
	if err != nil {
		w.e = nil // no interface with nil inside
		return err
	}
	return w.measure()
}

// recordingPragmas sets a connection to the file of a recording up.
func recordingPragmas(c *conn, p preset, pragmas []pragma) error {
	for _, p := range []string{
		// Nobody who looks at the file may hold up the recording; see docs/formats/sqlite.md on reading it meanwhile.
		"locking_mode = EXCLUSIVE",
		"journal_mode = PERSIST",
		"synchronous = " + p.synchronous,
		"cache_size = " + fmt.Sprint(-cacheKiB),
		"temp_store = MEMORY",
	} {
		if _, err := c.queryText("PRAGMA " + p); err != nil {
			return fmt.Errorf("pragma %s: %w", p, err)
		}
	}
	return applyPragmas(c, pragmas)
}

// takeLock makes the first transaction of a connection, which takes the lock on the file and keeps it.
func takeLock(c *conn) error {
	if err := c.exec("BEGIN EXCLUSIVE"); err != nil {
		return err
	}
	return c.exec("COMMIT")
}
