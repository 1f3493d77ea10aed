package rtps

// pattern is what a reader's request tells of how datagrams were lost: here and there on the way, or many at a socket or
// queue that was full. Only the latter is a reason to send more slowly.
type pattern struct {
	count, span int // missing ones; from the first to the last of them
	alone       int // of count, those in a row of fewer than overflowRun
	run         int // the most in a row
	first, last int64
	row         int
}

// add takes the numbers of missing ones, ascending.
func (p *pattern) add(n int64) {
	if p.count == 0 {
		p.first = n
	}
	if p.row++; p.count == 0 || n != p.last+1 {
		p.row = 1
	}
	switch {
	case p.row < overflowRun:
		p.alone++
	case p.row == overflowRun:
		p.alone -= overflowRun - 1
	}
	p.count++
	p.run, p.last, p.span = max(p.run, p.row), n, int(n-p.first)+1
}

// When losses count as an overflow. Those at random of one datagram in ten do so once in some dozen times.
const (
	overflowRun   = 4 // so many in a row,
	overflowCount = 8 // or so many,
	overflowShare = 6 // more than one in six
)

// overflow reports whether sending more slowly would help.
func (p *pattern) overflow() bool {
	return p.run >= overflowRun || p.count >= overflowCount && overflowShare*p.count > p.span
}
