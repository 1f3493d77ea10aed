package plainlog

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"

	"github.com/gobag/gobag/plugin"
)

// entry is where a message lies.
type entry struct {
	recv, at int64 // at: of the record, bytes from the start of the file
	order    uint64
	length   uint32 // of the body
	topic    plugin.TopicID
}

// reader holds the file and the index that was made when it was opened. Nothing changes after that but closed.
type reader struct {
	f      *os.File
	path   string
	info   plugin.Info
	index  []entry // by (recv, order)
	damage error   // what the records end with; nil where they end with the file or with a torn end

	mu     sync.Mutex
	closed bool
}

// OpenReader reads the file once, without a lock: whoever writes it only appends.
func (Driver) OpenReader(ctx context.Context, path string, o plugin.ReadOptions) (plugin.Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkConfig(o.Config); err != nil {
		return nil, fmt.Errorf("open storage %s: %w", path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open storage: %w", err)
	}
	r := &reader{f: f, path: path, info: plugin.Info{Start: plugin.NoStart, Format: "plainlog 1", Unclean: true}}
	if err := r.load(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open storage %s: %w", path, err), f.Close())
	}
	return r, nil
}

func (r *reader) load(ctx context.Context) error {
	fi, err := r.f.Stat()
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() || fi.Size() < int64(len(magic)) {
		return plugin.ErrFormat
	}
	r.info.Size = fi.Size() // what is appended from here on is left out
	in := bufio.NewReaderSize(io.NewSectionReader(r.f, 0, fi.Size()), 1<<20)
	head := make([]byte, headerBytes)
	_, err = io.ReadFull(in, head)
	if string(head[:len(magic)]) != magic {
		return plugin.ErrFormat
	}
	if err != nil {
		return &plugin.CorruptError{Path: r.path, Offset: int64(len(magic)), Err: errors.New("the header is not whole")}
	}
	synced, known := parseSynced(head[len(magic):])
	at, err := r.scan(ctx, in)
	if err != nil && ctx.Err() != nil {
		return err
	}
	var broken *brokenError
	switch {
	case errors.As(err, &broken) && known && at >= synced: // the end that a crash left behind
		r.info.Warnings = append(r.info.Warnings, fmt.Sprintf("cut off at byte %d: %v; %d bytes from there on are left out", at, err, fi.Size()-at))
	case err == nil && known && at < synced: // whole records, but fewer than there were
		r.damage = &plugin.CorruptError{Path: r.path, Offset: at, Err: fmt.Errorf("the file ends here, it had %d bytes", synced)}
	case errors.As(err, &broken):
		r.damage = &plugin.CorruptError{Path: r.path, Offset: at, Err: err}
	case err != nil:
		return err
	}
	slices.SortFunc(r.index, func(a, b entry) int { return cmp.Or(cmp.Compare(a.recv, b.recv), cmp.Compare(a.order, b.order)) })
	if r.info.Messages = uint64(len(r.index)); len(r.index) > 0 {
		r.info.Start, r.info.End = r.index[0].recv, r.index[len(r.index)-1].recv
	}
	return nil
}

// brokenError says that no whole record lies at an offset.
type brokenError struct{ what string }

func (e *brokenError) Error() string { return e.what }

func brokenf(format string, args ...any) error { return &brokenError{fmt.Sprintf(format, args...)} }

// scan takes in records to the end of the file and returns where the last whole one ends.
func (r *reader) scan(ctx context.Context, in *bufio.Reader) (int64, error) {
	at := int64(headerBytes)
	head := make([]byte, recordBytes)
	var body []byte
	for n := 0; at < r.info.Size; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return at, ctx.Err()
		}
		left := r.info.Size - at
		if left < recordBytes {
			return at, brokenf("record of %d bytes", left)
		}
		if _, err := io.ReadFull(in, head); err != nil {
			return at, err
		}
		length := int64(binary.LittleEndian.Uint32(head[1:]))
		if sum(head[:5]) != binary.LittleEndian.Uint32(head[5:]) {
			return at, brokenf("wrong checksum of a record's head")
		}
		if length > maxBody || length > left-recordBytes { // so no more is allocated than there is in the file
			return at, brokenf("record of %d bytes, %d are there", length, left-recordBytes)
		}
		body = slices.Grow(body[:0], int(length))[:length]
		if _, err := io.ReadFull(in, body); err != nil {
			return at, err
		}
		if sum(body) != binary.LittleEndian.Uint32(head[9:]) {
			return at, brokenf("wrong checksum of a record")
		}
		if err := r.record(head[0], body, at); err != nil {
			return at, err
		}
		at += recordBytes + length
	}
	return at, nil
}

// record takes in one whole record. What it does not understand is as good as damage.
func (r *reader) record(kind byte, body []byte, at int64) (err error) {
	switch kind {
	case kindOptions:
		p := parser{b: body}
		r.info.ROSDistro = p.string()
		err = p.end()
	case kindMetadata:
		r.info.Metadata, err = parseMetadata(body)
	case kindTopic:
		var t plugin.Topic
		t, err = parseTopic(body)
		switch n := plugin.TopicID(len(r.info.Topics)); {
		case err != nil:
		case t.ID == n+1:
			r.info.Topics = append(r.info.Topics, plugin.TopicInfo{Topic: t})
		case t.ID >= 1 && t.ID <= n:
			r.info.Topics[t.ID-1].Topic = t
		default:
			err = fmt.Errorf("topic %d after %d topics", t.ID, n)
		}
	case kindMessage:
		err = r.message(body, at)
	case kindEnd:
		r.info.Unclean = false
	default:
		err = fmt.Errorf("record of unknown kind %q", kind)
	}
	if err != nil {
		return brokenf("%v", err)
	}
	return nil
}

func (r *reader) message(body []byte, at int64) error {
	if len(body) < messageBytes {
		return errShort
	}
	var m plugin.Message
	parseMessage(body, &m)
	if m.Topic == 0 || uint64(m.Topic) > uint64(len(r.info.Topics)) {
		return fmt.Errorf("message of topic %d, which is not there", m.Topic)
	}
	t := &r.info.Topics[m.Topic-1]
	t.Count++
	t.Bytes += int64(len(m.Data))
	r.index = append(r.index, entry{m.RecvTime, at, m.Order, uint32(len(body)), m.Topic})
	return nil
}

// Info implements plugin.Reader. The slices are the caller's.
func (r *reader) Info() plugin.Info {
	info := r.info
	info.Topics = slices.Clone(info.Topics)
	info.Warnings = slices.Clone(info.Warnings)
	return info
}

// Messages implements plugin.Reader.
func (r *reader) Messages(q plugin.Query) (plugin.Iterator, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, plugin.ErrClosed
	}
	it := &iterator{r: r, left: r.index, reverse: q.Reverse}
	if q.Range != nil {
		from := sort.Search(len(it.left), func(i int) bool { return it.left[i].recv >= q.Range.Start })
		to := sort.Search(len(it.left), func(i int) bool { return it.left[i].recv > q.Range.End })
		it.left = it.left[from:max(from, to)]
	}
	if q.Topics != nil {
		it.topics = make([]bool, len(r.info.Topics)+1) // by ID; what names no topic here selects nothing
		for _, id := range q.Topics {
			if uint64(id) < uint64(len(it.topics)) {
				it.topics[id] = true
			}
		}
	}
	return it, nil
}

// Close implements plugin.Reader.
func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.f.Close()
}

// iterator walks over a part of the index and reads each message where it lies.
type iterator struct {
	r       *reader
	left    []entry
	topics  []bool // nil = all
	reverse bool
	body    []byte // lent until the next call
	err     error  // what every further call returns
}

// Next implements plugin.Iterator.
func (it *iterator) Next(m *plugin.Message) error {
	for it.err == nil {
		if len(it.left) == 0 {
			it.err = io.EOF
			if it.r.damage != nil {
				it.err = it.r.damage // what came behind it was never seen
			}
			break
		}
		var e entry
		if last := len(it.left) - 1; it.reverse {
			e, it.left = it.left[last], it.left[:last]
		} else {
			e, it.left = it.left[0], it.left[1:]
		}
		if it.topics == nil || it.topics[e.topic] {
			it.err = it.read(e, m)
			break
		}
	}
	return it.err
}

// read reads a message again and checks it again: the file may have changed since it was opened.
func (it *iterator) read(e entry, m *plugin.Message) error {
	n := recordBytes + int(e.length)
	it.body = slices.Grow(it.body[:0], n)[:n]
	if _, err := it.r.f.ReadAt(it.body, e.at); err != nil {
		return fmt.Errorf("read storage %s: %w", it.r.path, err)
	}
	if body := it.body[recordBytes:]; sum(body) == binary.LittleEndian.Uint32(it.body[9:]) {
		parseMessage(body, m)
		return nil
	}
	return &plugin.CorruptError{Path: it.r.path, Offset: e.at, Err: errors.New("wrong checksum of a message")}
}

// Close implements plugin.Iterator.
func (it *iterator) Close() error {
	it.left, it.body, it.err = nil, nil, plugin.ErrClosed
	return nil
}
