package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/gobag/gobag/plugin"
)

// reader reads one storage. A storage that was closed in order is settled: all iterators share one view of it. Any
// other may be being written right now; then every iterator has a view of its own, which it checks after each portion
// it has read and takes anew when the storage has changed underneath. It reads what was there at opening: rows are
// never changed, and lastID bounds them.
type reader struct {
	path    string
	pragmas []pragma
	description

	mu     sync.Mutex
	base   *view       // settled storages only
	idle   []*viewConn // connections to base that no iterator uses
	tree   *treeFile   // base, read without SQLite; nil = that cannot be done
	states []*treeState
	users  int // iterators on base
	closed bool
}

const (
	maxIdle = 2
	// patience is how long opening a storage, or reading a portion of it, goes on against a writer that changes it.
	patience = 10 * time.Second
)

func openReader(ctx context.Context, path string, o plugin.ReadOptions) (*reader, error) {
	pragmas, err := parseConfig(o.Config)
	if err != nil {
		return nil, err
	}
	r := &reader{path: path, pragmas: pragmas}
	t := newTally()
	t.limit = countStep
	var vc *viewConn
	defer func() {
		if vc != nil {
			_ = vc.closeAll() // read only: nothing to lose
		}
	}()
	st := stageSchema
	for start := time.Now(); st != stageDone; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if vc == nil {
			if vc, err = r.freshConn(); err != nil {
				return nil, err
			}
		}
		d, step, next, err := describe(vc, r.description, t, st)
		still, markErr := vc.v.current()
		if markErr != nil {
			return nil, markErr
		}
		if still && err != nil {
			return nil, vc.explain(err)
		}
		if still {
			r.description, st = d, next
			t.add(step)
			continue
		}
		_ = vc.closeAll() // read only: nothing to lose
		vc = nil
		t.limit = max(1, t.limit/4)
		if time.Since(start) > patience {
			return nil, errTooFast
		}
	}
	r.finishInfo(t, vc.v)
	if r.settled {
		if len(pragmas) == 0 && r.index != "" {
			if r.tree, err = openTreeFile(vc); err != nil {
				return nil, vc.explain(err)
			}
		}
		r.base, r.idle = vc.v, []*viewConn{vc}
		vc = nil
	}
	return r, nil
}

// freshConn opens the files anew and a connection to what they hold now.
func (r *reader) freshConn() (*viewConn, error) {
	for start := time.Now(); ; {
		f, err := openFiles(r.path)
		if err != nil {
			return nil, err
		}
		v, err := f.load()
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		vc, err := openView(v, r.pragmas)
		if err == nil {
			return vc, nil
		}
		still, markErr := v.current()
		if err = errors.Join(err, f.close()); still || markErr != nil || time.Since(start) > patience {
			return nil, err
		}
	}
}

// closeAll closes the connection and the files under it.
func (vc *viewConn) closeAll() error {
	return errors.Join(vc.close(), vc.v.f.close())
}

// explain turns an error of SQLite into a CorruptError if it means damage, into ErrFormat if it means other tables.
func (vc *viewConn) explain(err error) error {
	if err == nil {
		return nil
	}
	if e := vc.file.err.Load(); e != nil {
		return *e // what the file system or the view said, of which SQLite only knows that reading failed
	}
	var e1 *sqlError
	if errors.As(err, &e1) && e1.code == sqlite3.SQLITE_ERROR {
		return fmt.Errorf("a SQLite database, but no bag (%w): %w", err, plugin.ErrFormat) // tables of another make
	}
	if !damaged(err) {
		return err
	}
	e := &plugin.CorruptError{Path: vc.v.f.path, Offset: -1, Err: err}
	if vc.v.missing > 0 {
		e.Offset = vc.v.pages * vc.v.pageSize
		e.Err = fmt.Errorf("the file ends here, %d bytes are missing: %w", vc.v.missing*vc.v.pageSize, err)
	}
	return e
}

func (r *reader) Info() plugin.Info {
	i := r.info
	i.Topics = slices.Clone(i.Topics)
	for k := range i.Topics {
		i.Topics[k].Sources = slices.Clone(i.Topics[k].Sources)
	}
	i.Warnings = slices.Clone(i.Warnings)
	return i
}

func (r *reader) Messages(q plugin.Query) (plugin.Iterator, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, plugin.ErrClosed
	}
	q.Topics = slices.Clone(q.Topics)
	if q.Range != nil {
		t := *q.Range
		q.Range = &t
	}
	if !r.settled {
		return &pagedIterator{r: r, q: q, limit: pageMessages}, nil
	}
	if r.tree != nil && (r.tree.scans || point(q)) {
		return r.newTreeIterator(q), nil
	}
	var vc *viewConn
	if n := len(r.idle); n > 0 {
		vc, r.idle = r.idle[n-1], r.idle[:n-1]
	} else {
		var err error
		if vc, err = openView(r.base, r.pragmas); err != nil {
			return nil, fmt.Errorf("read storage %s: %w", r.path, err)
		}
	}
	r.users++
	cu, err := r.newCursor(vc, q, nil)
	if err != nil {
		err = fmt.Errorf("read storage %s: %w", r.path, vc.explain(err))
		return nil, errors.Join(err, r.giveBackLocked(vc))
	}
	return &iterator{cu: cu}, nil
}

// giveBack takes the connection of an iterator that ends.
func (r *reader) giveBack(vc *viewConn) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.giveBackLocked(vc)
}

func (r *reader) giveBackLocked(vc *viewConn) error {
	r.users--
	if !r.closed && len(r.idle) < maxIdle {
		r.idle = append(r.idle, vc)
		return nil
	}
	err := vc.close()
	if r.closed && r.users == 0 {
		err = errors.Join(err, r.closeBase())
	}
	return err
}

// closeBase closes the files of a settled storage.
func (r *reader) closeBase() error { return errors.Join(r.tree.close(), r.base.f.close()) }

// Close closes the files once the last iterator is closed.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	var errs []error
	for _, vc := range r.idle {
		errs = append(errs, vc.close())
	}
	r.idle = nil
	if r.base != nil && r.users == 0 {
		errs = append(errs, r.closeBase())
	}
	return errors.Join(errs...)
}
