package leveldb

import (
	"math"
	"sync"
	"sync/atomic"
)

// aheadBytes is how far ahead of an iterator checksums are compared.
const aheadBytes = 4 << 20

// lookahead opens and maps the tables that an iterator is about to read one after the other, and compares the checksums of
// their blocks in a second goroutine. What is wrong the iterator finds itself when it comes there.
type lookahead struct {
	it     *iterator
	tables []*messageTable
	read   atomic.Int64 // bytes of blocks that the iterator has read
	resume atomic.Int64 // what read has to reach for the goroutine to go on
	wake   chan struct{}
	quit   chan struct{}
	done   sync.WaitGroup
}

// lookAhead starts at the first of the tables, by ascending first, which the iterator is about to read.
func lookAhead(it *iterator, tables []*messageTable) *lookahead {
	a := &lookahead{it: it, tables: tables, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	a.resume.Store(math.MaxInt64)
	a.done.Add(1)
	go a.run()
	return a
}

// stop ends the goroutine and waits for it.
func (a *lookahead) stop() {
	close(a.quit)
	a.done.Wait()
}

// took says that the iterator has read a block of n bytes.
func (a *lookahead) took(n int) {
	if a.read.Add(int64(n)) >= a.resume.Load() {
		a.resume.Store(math.MaxInt64)
		select {
		case a.wake <- struct{}{}:
		default: // it is on its way
		}
	}
}

func (a *lookahead) run() {
	defer a.done.Done()
	var at int64 // bytes of blocks, as read counts them
	for _, m := range a.tables {
		if m.last.less(a.it.from) || !a.it.wants(m.part) {
			continue
		}
		if a.it.until.less(m.last) { // the rest is not read as a whole
			return
		}
		t, err := a.it.r.cache.acquireMessages(m)
		if err != nil {
			return
		}
		ok := a.table(t, &at)
		a.it.r.cache.release(t)
		if !ok {
			return
		}
	}
}

// table compares the checksums of a table; false if no more is to be done.
func (a *lookahead) table(t *tableFile, at *int64) bool {
	m, ok := t.blocks()
	if !ok {
		return false
	}
	var touched int64
	for b := range t.index {
		*at += int64(t.index[b].size)
		if _, err := m.take(b, &touched); err != nil || !a.wait(*at) {
			return false
		}
	}
	return true
}

// wait waits until at is not too far ahead of the iterator; false when it has stopped.
func (a *lookahead) wait(at int64) bool {
	select {
	case <-a.quit:
		return false
	default:
	}
	if at-a.read.Load() < aheadBytes {
		return true
	}
	for {
		a.resume.Store(at - aheadBytes/2)
		if at-a.read.Load() <= aheadBytes/2 {
			a.resume.Store(math.MaxInt64)
			return true
		}
		select {
		case <-a.wake:
		case <-a.quit:
			return false
		}
	}
}
