package sqlite

import (
	"encoding/binary"
	"errors"
	"strconv"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// The small tables of a recording are changed by SQLite, on a connection whose file is the recording's store. This is
// its file system (https://sqlite.org/c3ref/vfs.html): files are the stores that are open, by name; there are no
// locks, since the store is nobody else's, and no syncs, since the store does them. It is registered once for the whole
// process.
var editVFS = sync.OnceValues(func() (string, error) {
	setup()
	tls := libc.NewTLS() // kept
	system := sqlite3.Xsqlite3_vfs_find(tls, 0)
	if system == 0 {
		return "", errors.New("no file system of the system's")
	}
	const name = "gobag-store"
	cname, err := libc.CString(name)
	if err != nil {
		return "", errors.New("out of memory")
	}
	p := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	if p == 0 {
		return "", errors.New("out of memory")
	}
	v := (*sqlite3.Tsqlite3_vfs)(cmem(p))
	*v = *(*sqlite3.Tsqlite3_vfs)(cmem(system)) // random numbers, time and sleep
	v.FiVersion = min(v.FiVersion, 2)
	v.FszOsFile = int32(unsafe.Sizeof(editFile{}))
	v.FpNext, v.FzName, v.FpAppData = 0, cname, 0
	*(*func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32)(unsafe.Pointer(&v.FxOpen)) = editOpen
	*(*func(*libc.TLS, uintptr, uintptr, int32) int32)(unsafe.Pointer(&v.FxDelete)) = editDelete
	*(*func(*libc.TLS, uintptr, uintptr, int32, uintptr) int32)(unsafe.Pointer(&v.FxAccess)) = editAccess
	*(*func(*libc.TLS, uintptr, uintptr, int32, uintptr) int32)(unsafe.Pointer(&v.FxFullPathname)) = editFullPathname

	m := &editMethods
	m.FiVersion = 1
	*(*func(*libc.TLS, uintptr) int32)(unsafe.Pointer(&m.FxClose)) = editClose
	*(*func(*libc.TLS, uintptr, uintptr, int32, int64) int32)(unsafe.Pointer(&m.FxRead)) = editRead
	*(*func(*libc.TLS, uintptr, uintptr, int32, int64) int32)(unsafe.Pointer(&m.FxWrite)) = editWrite
	*(*func(*libc.TLS, uintptr, int64) int32)(unsafe.Pointer(&m.FxTruncate)) = editTruncate
	*(*func(*libc.TLS, uintptr, int32) int32)(unsafe.Pointer(&m.FxSync)) = editNothing
	*(*func(*libc.TLS, uintptr, uintptr) int32)(unsafe.Pointer(&m.FxFileSize)) = editFileSize
	*(*func(*libc.TLS, uintptr, int32) int32)(unsafe.Pointer(&m.FxLock)) = editNothing
	*(*func(*libc.TLS, uintptr, int32) int32)(unsafe.Pointer(&m.FxUnlock)) = editNothing
	*(*func(*libc.TLS, uintptr, uintptr) int32)(unsafe.Pointer(&m.FxCheckReservedLock)) = editCheckReservedLock
	*(*func(*libc.TLS, uintptr, int32, uintptr) int32)(unsafe.Pointer(&m.FxFileControl)) = editFileControl
	*(*func(*libc.TLS, uintptr) int32)(unsafe.Pointer(&m.FxSectorSize)) = editSectorSize
	*(*func(*libc.TLS, uintptr) int32)(unsafe.Pointer(&m.FxDeviceCharacteristics)) = editCharacteristics
	if rc := sqlite3.Xsqlite3_vfs_register(tls, p, 0); rc != sqlite3.SQLITE_OK {
		return "", errors.New(libc.GoString(sqlite3.Xsqlite3_errstr(tls, rc)))
	}
	return name, nil
})

var editMethods sqlite3.Tsqlite3_io_methods

// editFile is what SQLite keeps of an open file, in its own memory.
type editFile struct {
	base sqlite3.Tsqlite3_file
	id   uint64 // in editStores
}

// editStore is a store as SQLite sees it.
type editStore struct {
	*store
	beginTx  *stmt
	commitTx *stmt
	buf      []byte // for a page of which SQLite wants a part
	err      error  // the last error of the system's, of which SQLite only knows that there was one
}

var editStores struct {
	sync.Mutex
	next   uint64
	stores map[uint64]*editStore
}

// openEdit opens a connection on a store. What it commits is in the store, not on the disk.
func openEdit(s *store) (*conn, *editStore, error) {
	name, err := editVFS()
	if err != nil {
		return nil, nil, err
	}
	es := &editStore{store: s}
	editStores.Lock()
	if editStores.stores == nil {
		editStores.stores = map[uint64]*editStore{}
	}
	editStores.next++
	id := editStores.next
	editStores.stores[id] = es
	editStores.Unlock()
	c, err := openConn("/"+strconv.FormatUint(id, 10), sqlite3.SQLITE_OPEN_READWRITE, name)
	if err != nil {
		es.forget(id)
		return nil, nil, err
	}
	for _, p := range []string{"journal_mode = MEMORY", "synchronous = OFF", "temp_store = MEMORY", "cache_size = " + strconv.Itoa(-editKiB)} {
		if _, err := c.queryText("PRAGMA " + p); err != nil {
			return nil, nil, errors.Join(err, c.close())
		}
	}
	if es.beginTx, err = c.prepare("BEGIN EXCLUSIVE"); err == nil {
		es.commitTx, err = c.prepare("COMMIT")
	}
	if err != nil {
		es.finalize()
		return nil, nil, errors.Join(err, c.close())
	}
	return c, es, nil
}

// finalize frees the statements; it comes before the connection is closed.
func (es *editStore) finalize() {
	for _, s := range []*stmt{es.beginTx, es.commitTx} {
		if s != nil {
			s.finalize()
		}
	}
}

func (es *editStore) forget(id uint64) {
	editStores.Lock()
	delete(editStores.stores, id)
	editStores.Unlock()
}

func editOf(file uintptr) *editStore {
	editStores.Lock()
	defer editStores.Unlock()
	return editStores.stores[(*editFile)(cmem(file)).id]
}

func editOpen(_ *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	f := (*editFile)(cmem(file))
	*f = editFile{}
	if name == 0 || flags&sqlite3.SQLITE_OPEN_MAIN_DB == 0 {
		return sqlite3.SQLITE_CANTOPEN
	}
	id, err := strconv.ParseUint(libc.GoString(name)[1:], 10, 64)
	if err != nil {
		return sqlite3.SQLITE_CANTOPEN
	}
	f.id = id
	if editOf(file) == nil {
		return sqlite3.SQLITE_CANTOPEN
	}
	f.base.FpMethods = uintptr(unsafe.Pointer(&editMethods))
	if outFlags != 0 {
		*(*int32)(cmem(outFlags)) = flags
	}
	return sqlite3.SQLITE_OK
}

func editDelete(*libc.TLS, uintptr, uintptr, int32) int32 { return sqlite3.SQLITE_OK }

// editAccess knows no other files, such as journals.
func editAccess(_ *libc.TLS, _, _ uintptr, _ int32, out uintptr) int32 {
	*(*int32)(cmem(out)) = 0
	return sqlite3.SQLITE_OK
}

func editFullPathname(_ *libc.TLS, _, name uintptr, size int32, out uintptr) int32 {
	s := libc.GoString(name)
	if len(s) >= int(size) {
		return sqlite3.SQLITE_CANTOPEN
	}
	b := unsafe.Slice((*byte)(cmem(out)), len(s)+1)
	b[copy(b, s)] = 0
	return sqlite3.SQLITE_OK
}

func editClose(_ *libc.TLS, file uintptr) int32 {
	editOf(file).forget((*editFile)(cmem(file)).id)
	return sqlite3.SQLITE_OK
}

// editRead reads a page, or a part of one.
func editRead(_ *libc.TLS, file, to uintptr, n int32, off int64) int32 {
	es := editOf(file)
	b := unsafe.Slice((*byte)(cmem(to)), int(n))
	page, in := uint32(off/int64(es.pageSize))+1, int(off%int64(es.pageSize))
	if off >= max(es.bytes(), es.end) || in+len(b) > es.pageSize {
		clear(b)
		return sqlite3.SQLITE_IOERR_SHORT_READ
	}
	whole := b
	if len(b) < es.pageSize {
		if es.buf == nil {
			es.buf = make([]byte, es.pageSize)
		}
		whole = es.buf
	}
	if err := es.read(page, whole); err != nil {
		es.err = err
		return sqlite3.SQLITE_IOERR_READ
	}
	if len(b) < es.pageSize {
		copy(b, whole[in:])
	}
	return sqlite3.SQLITE_OK
}

// editWrite takes a page; SQLite writes whole ones.
func editWrite(_ *libc.TLS, file, from uintptr, n int32, off int64) int32 {
	es := editOf(file)
	if int(n) != es.pageSize || off%int64(n) != 0 {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	if err := es.write(uint32(off/int64(n))+1, unsafe.Slice((*byte)(cmem(from)), int(n))); err != nil {
		es.err = err
		return sqlite3.SQLITE_IOERR_WRITE
	}
	return sqlite3.SQLITE_OK
}

func editFileSize(_ *libc.TLS, file, out uintptr) int32 {
	*(*int64)(cmem(out)) = editOf(file).bytes()
	return sqlite3.SQLITE_OK
}

func editCheckReservedLock(_ *libc.TLS, _, out uintptr) int32 {
	*(*int32)(cmem(out)) = 0
	return sqlite3.SQLITE_OK
}

func editTruncate(*libc.TLS, uintptr, int64) int32 { return sqlite3.SQLITE_OK }

func editNothing(*libc.TLS, uintptr, int32) int32 { return sqlite3.SQLITE_OK }

func editFileControl(*libc.TLS, uintptr, int32, uintptr) int32 { return sqlite3.SQLITE_NOTFOUND }

func editSectorSize(*libc.TLS, uintptr) int32 { return journalSector }

func editCharacteristics(*libc.TLS, uintptr) int32 { return 0 }

// edit runs f, which changes tables on the connection of openEdit, as one transaction of the store's.
func (es *editStore) edit(f func() error) error {
	if err := es.flush(); err != nil { // SQLite takes its new pages behind the last
		return err
	}
	binary.BigEndian.PutUint32(es.first[28:], es.next-1) // where it looks for how many there are
	err := es.beginTx.runBound()
	if err == nil {
		err = f()
	}
	if err == nil {
		err = es.commitTx.runBound()
	}
	if err != nil && es.err != nil {
		err = errors.Join(es.err, err)
	}
	es.setPages()
	return err
}
