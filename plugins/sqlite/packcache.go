package sqlite

import (
	"errors"

	"github.com/gobag/gobag/plugin"
)

// packCache holds the packs that a cursor used last: stamps that do not ascend make it go back and forth a little.
type packCache struct {
	path  string
	c     *conn
	s     *stmt
	packs [8]cachedPack
	next  int // to be replaced
	cur   int // used last
}

type cachedPack struct {
	extras []extra
	at     int // entry found last
}

// find returns the entry of a message, nil where there is none.
func (p *packCache) find(id int64) (*extra, error) {
	for i := range p.packs {
		k := (p.cur + i) % len(p.packs)
		c := &p.packs[k]
		if n := len(c.extras); n > 0 && c.extras[0].id <= id && id <= c.extras[n-1].id {
			p.cur = k
			return find(c.extras, id, &c.at), nil
		}
	}
	if p.s == nil {
		var err error
		if p.s, err = p.c.prepare("SELECT id, data FROM gobag_data WHERE id <= ? AND id > 0 ORDER BY id DESC LIMIT 1"); err != nil {
			return nil, err
		}
	}
	if err := p.s.bindInt64(1, id); err != nil {
		return nil, err
	}
	ok, err := p.s.step()
	if err != nil || !ok {
		return nil, errors.Join(err, p.s.reset())
	}
	_, extras, err := parsePack(p.s.int64(0), p.s.blob(1), false)
	if err != nil {
		err = &plugin.CorruptError{Path: p.path, Offset: -1, Err: err}
	}
	if err := errors.Join(err, p.s.reset()); err != nil {
		return nil, err
	}
	p.packs[p.next] = cachedPack{extras: extras, at: -1}
	p.cur, p.next = p.next, (p.next+1)%len(p.packs)
	return find(extras, id, &p.packs[p.cur].at), nil
}

func (p *packCache) close() {
	if p.s != nil {
		p.s.finalize()
		p.s = nil
	}
}
