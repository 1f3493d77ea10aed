package player

import (
	"errors"
	"io"
	"math"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// source is the bags being played, as one: merged by receive stamp, on equal stamps the earlier bag first. Topic ids are
// those of the bag plus idSpan times its place.
type source struct{ bags []*bag.Reader }

const idSpan = 1 << 20

// start and end are the smallest and the largest stamp; start is above end where there is no message.
func (s *source) bounds() (start, end int64, messages uint64) {
	start, end = plugin.NoStart, math.MinInt64
	for _, b := range s.bags {
		i := b.Info()
		if i.Messages > 0 {
			start, end = min(start, i.Start), max(end, i.End)
			messages += i.Messages
		}
	}
	return start, end, messages
}

func (s *source) topics() []bag.TopicInfo {
	if len(s.bags) == 1 {
		return s.bags[0].Info().Topics
	}
	var all []bag.TopicInfo
	for i, b := range s.bags {
		for _, t := range b.Info().Topics {
			t.ID += plugin.TopicID(i * idSpan)
			all = append(all, t)
		}
	}
	return all
}

func (s *source) messages(q plugin.Query) (plugin.Iterator, error) {
	if len(s.bags) == 1 {
		return s.bags[0].Messages(q)
	}
	it := &sourceIterator{reverse: q.Reverse}
	for i, b := range s.bags {
		sub := q
		if q.Topics != nil {
			sub.Topics = []plugin.TopicID{}
			for _, id := range q.Topics {
				if int(id)/idSpan == i {
					sub.Topics = append(sub.Topics, id%idSpan)
				}
			}
		}
		x, err := b.Messages(sub)
		if err != nil {
			return nil, errors.Join(err, it.Close())
		}
		it.all = append(it.all, &sourceCursor{it: x, offset: plugin.TopicID(i * idSpan), stale: true})
	}
	return it, nil
}

// sourceIterator merges the iterators of bags.
type sourceIterator struct {
	all     []*sourceCursor
	reverse bool
	last    *sourceCursor // whose message was handed out
}

type sourceCursor struct {
	it     plugin.Iterator
	offset plugin.TopicID
	m      plugin.Message
	stale  bool // m was handed out, or none was read yet
	done   bool
}

// Next implements plugin.Iterator. After the error of a damaged storage it goes on with what is left.
func (s *sourceIterator) Next(m *plugin.Message) error {
	var first *sourceCursor
	for _, c := range s.all {
		if c.stale && !c.done {
			switch err := c.it.Next(&c.m); {
			case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
				c.done = true
			case err != nil:
				return err
			default:
				c.stale = false
			}
		}
		if c.done {
			continue
		}
		if first == nil || !s.reverse && c.m.RecvTime < first.m.RecvTime || s.reverse && c.m.RecvTime >= first.m.RecvTime {
			first = c
		}
	}
	if first == nil {
		return io.EOF
	}
	*m = first.m
	m.Topic += first.offset
	first.stale = true
	s.last = first
	return nil
}

// File is the path of the file that the last message is from.
func (s *sourceIterator) File() string {
	if f, ok := s.last.it.(interface{ File() string }); ok {
		return f.File()
	}
	return ""
}

// Close implements plugin.Iterator.
func (s *sourceIterator) Close() error {
	var errs []error
	for _, c := range s.all {
		errs = append(errs, c.it.Close())
	}
	s.all = nil
	return errors.Join(errs...)
}
