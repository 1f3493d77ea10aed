package leveldb

import (
	"cmp"
	"slices"
	"sort"
)

// tableList are the tables of a reader, arranged so that those of a span of time are found without looking at all of
// them. Tables may overlap, so beside the order by one end it keeps how far the other end reaches up to there.
type tableList struct {
	byFirst   []*messageTable // ascending by first
	lastUpTo  []stamp         // largest last of byFirst[:i+1]
	byLast    []*messageTable // ascending by last
	firstFrom []stamp         // smallest first of byLast[i:]
}

func compareStamps(a, b stamp) int {
	if c := cmp.Compare(a.time, b.time); c != 0 {
		return c
	}
	return cmp.Compare(a.order, b.order)
}

// arrange makes the list of all tables of parts.
func arrange(parts []part) tableList {
	var l tableList
	for i := range parts {
		p := &parts[i]
		for k := range p.db.tables {
			t := &p.db.tables[k]
			t.part = p
			l.byFirst = append(l.byFirst, t)
		}
	}
	l.byLast = slices.Clone(l.byFirst)
	slices.SortStableFunc(l.byFirst, func(a, b *messageTable) int { return compareStamps(a.first, b.first) })
	slices.SortStableFunc(l.byLast, func(a, b *messageTable) int { return compareStamps(a.last, b.last) })
	l.lastUpTo = make([]stamp, len(l.byFirst))
	for i, t := range l.byFirst {
		l.lastUpTo[i] = t.last
		if i > 0 && t.last.less(l.lastUpTo[i-1]) {
			l.lastUpTo[i] = l.lastUpTo[i-1]
		}
	}
	l.firstFrom = make([]stamp, len(l.byLast))
	for i := len(l.byLast) - 1; i >= 0; i-- {
		l.firstFrom[i] = l.byLast[i].first
		if i+1 < len(l.byLast) && l.firstFrom[i+1].less(l.firstFrom[i]) {
			l.firstFrom[i] = l.firstFrom[i+1]
		}
	}
	return l
}

// between returns all tables that may reach into from..until, both included, and perhaps some that do not: by ascending
// first, or for reverse by ascending last, to be taken from the end.
func (l *tableList) between(from, until stamp, reverse bool) []*messageTable {
	if reverse {
		low := sort.Search(len(l.byLast), func(i int) bool { return !l.byLast[i].last.less(from) })
		high := sort.Search(len(l.byLast), func(i int) bool { return until.less(l.firstFrom[i]) })
		return l.byLast[min(low, high):high]
	}
	low := sort.Search(len(l.byFirst), func(i int) bool { return !l.lastUpTo[i].less(from) })
	high := sort.Search(len(l.byFirst), func(i int) bool { return until.less(l.byFirst[i].first) })
	return l.byFirst[min(low, high):high]
}
