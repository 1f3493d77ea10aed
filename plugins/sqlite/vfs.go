package sqlite

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"sync"

	sqlite3 "modernc.org/sqlite/lib"
	"modernc.org/sqlite/vfs"
)

// Views are opened through a VFS of our own, a read-only file system whose files are the views that are open. It is
// registered once for the whole process.
var viewVFS = sync.OnceValues(func() (string, error) {
	setup()
	name, _, err := vfs.New(viewFS{})
	return name, err
})

var openViews struct {
	sync.Mutex
	next  uint64
	files map[string]*viewFile
}

type viewFS struct{}

// Open is called by SQLite with the name under which openView registered the file, behind a slash.
func (viewFS) Open(name string) (fs.File, error) {
	openViews.Lock()
	defer openViews.Unlock()
	if f, ok := openViews.files[path.Base(name)]; ok {
		return f, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// viewConn is a connection to a view.
type viewConn struct {
	*conn
	v    *view
	file *viewFile
}

// openView opens a connection that reads v, with the reader's pragmas applied.
func openView(v *view, pragmas []pragma) (*viewConn, error) {
	vfsName, err := viewVFS()
	if err != nil {
		return nil, err
	}
	f := &viewFile{v: v}
	openViews.Lock()
	if openViews.files == nil {
		openViews.files = map[string]*viewFile{}
	}
	openViews.next++
	name := "view" + strconv.FormatUint(openViews.next, 10)
	openViews.files[name] = f
	openViews.Unlock()

	// immutable: no locks, no look at a journal or log, no checking of the change counter.
	c, err := openConn("file:/"+name+"?immutable=1", sqlite3.SQLITE_OPEN_READONLY|sqlite3.SQLITE_OPEN_URI, vfsName)
	openViews.Lock()
	delete(openViews.files, name) // SQLite has opened it, or never will
	openViews.Unlock()
	if err != nil {
		return nil, err
	}
	vc := &viewConn{conn: c, v: v, file: f}
	for _, p := range []string{"cache_size = " + strconv.Itoa(-readKiB), "temp_store = MEMORY"} {
		if _, err := c.queryText("PRAGMA " + p); err != nil {
			return nil, vc.explain(errors.Join(err, c.close()))
		}
	}
	if err := errors.Join(checkPragmas(c, pragmas), applyPragmas(c, pragmas)); err != nil {
		return nil, vc.explain(errors.Join(err, c.close()))
	}
	return vc, nil
}
