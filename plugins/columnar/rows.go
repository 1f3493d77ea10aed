package columnar

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugins/columnar/parquet"
)

// System columns of every part, in this order. ROS names begin with a letter, so they meet no field.
const (
	colLogTime = iota
	colPubTime
	colSource
	colSeq
	colOrder
	systemColumns
)

// Further columns of parts of each kind.
const (
	colForm  = systemColumns     // typed: shred.Form
	colPatch = systemColumns + 1 // typed: see patch.go; empty for most
	typedOwn = systemColumns + 2 // fields of the message follow

	colPayload = systemColumns // raw and mixed
	rawOwn     = systemColumns + 1

	colTopicID = systemColumns + 1 // mixed
	colTopic   = systemColumns + 2
	mixedOwn   = systemColumns + 3
)

var systemFields = []parquet.Field{
	{Name: "_log_time", Kind: parquet.Timestamp},
	{Name: "_pub_time", Kind: parquet.Timestamp},
	{Name: "_source", Kind: parquet.UInt32},
	{Name: "_seq", Kind: parquet.UInt64},
	{Name: "_order", Kind: parquet.UInt64},
}

// rawFields are the columns of raw parts, mixedFields those of mixed ones.
func rawFields() []parquet.Field {
	return append(systemFields[:systemColumns:systemColumns], parquet.Field{Name: "_cdr", Kind: parquet.Bytes})
}

func mixedFields() []parquet.Field {
	return append(rawFields(), parquet.Field{Name: "_topic_id", Kind: parquet.UInt32}, parquet.Field{Name: "_topic", Kind: parquet.String})
}

// program returns what takes messages of a type apart; nil where the definition does not say how.
func program(typ, serialization string, d plugin.Definition) *shred.Program {
	if d.Text == "" || serialization != "cdr" && serialization != "" {
		return nil
	}
	desc, err := msg.DescribeText(typ, d.Encoding, d.Text)
	if err != nil {
		return nil // stored as it is
	}
	p, err := shred.Compile(&desc)
	if err != nil || len(p.Columns()) > 2000 {
		return nil
	}
	return p
}

// typedFields are the columns of typed parts: the leaves of the program are the leaves behind typedOwn, in order.
func typedFields(p *shred.Program) ([]parquet.Field, error) {
	fields := append(systemFields[:systemColumns:systemColumns],
		parquet.Field{Name: "_form", Kind: parquet.UInt8}, parquet.Field{Name: "_patch", Kind: parquet.Bytes})
	lists := map[string]*shred.List{}
	for i := range p.Lists() {
		l := &p.Lists()[i]
		lists[l.Name()] = l
	}
	for i := range p.Columns() {
		c := &p.Columns()[i]
		kind, err := kindOf(c.Kind)
		if err != nil {
			return nil, err
		}
		at := &fields
		for d, name := range c.Path {
			n := len(*at)
			if n == 0 || (*at)[n-1].Name != name || d == len(c.Path)-1 {
				f := parquet.Field{Name: name}
				if l := lists[strings.Join(c.Path[:d+1], ".")]; l != nil {
					f.List, f.Count = true, l.Fixed
				}
				*at = append(*at, f)
				n++
			}
			f := &(*at)[n-1]
			if d == len(c.Path)-1 {
				f.Kind, f.Fixed = kind, c.Fixed
			}
			at = &f.Fields
		}
	}
	return fields, nil
}

func kindOf(k shred.Kind) (parquet.Kind, error) {
	switch k {
	case shred.Bool:
		return parquet.Bool, nil
	case shred.Int8:
		return parquet.Int8, nil
	case shred.UInt8:
		return parquet.UInt8, nil
	case shred.Int16:
		return parquet.Int16, nil
	case shred.UInt16:
		return parquet.UInt16, nil
	case shred.Int32:
		return parquet.Int32, nil
	case shred.UInt32:
		return parquet.UInt32, nil
	case shred.Int64, shred.Duration:
		return parquet.Int64, nil
	case shred.UInt64:
		return parquet.UInt64, nil
	case shred.Float32:
		return parquet.Float32, nil
	case shred.Float64:
		return parquet.Float64, nil
	case shred.String, shred.WString:
		return parquet.String, nil
	case shred.Bytes:
		return parquet.Bytes, nil
	case shred.Time:
		return parquet.Timestamp, nil
	}
	return 0, fmt.Errorf("column of kind %v", k)
}

// rows are the messages of a part that is being made: some in columns, the rest in the Parquet writer's pages.
type rows struct {
	kind  byte
	def   int // of typed ones
	prog  *shred.Program
	w     *parquet.Writer
	batch *shred.Batch
	own   []parquet.Values // columns that are not the program's
	heads []head           // what becomes the system columns
	cols  []*parquet.Values
	count int   // rows in columns
	bytes int64 // payload bytes of them

	groupStart, groupEnd int64
	groups               []byte // bounds of the stamps of every page group
	start, end           int64  // of all
	total                uint64 // rows of the part
	kept                 int64  // see sealer.flush
	payload              int64

	blob   *blobColumn    // that is rearranged; nil: none
	shapes []byte         // of every page group: how
	moved  parquet.Values // the rearranged column

	file   *os.File // of the part, where pages go to it before the part is finished
	pushed int64    // the system was asked to write it back up to here

	loose  *shred.Batch // one row, to find a patch with
	cursor *shred.Cursor
	redone []byte
	patch  []byte
}

// head is what a message has beside its payload.
type head struct {
	recv, send int64
	seq, order uint64
	source     uint32
}

// newRows makes rows of a kind. open creates the file of a part.
func newRows(kind byte, prog *shred.Program, def int, comp *parquet.Compressor, store bool, open func() (*os.File, error)) (*rows, error) {
	r := &rows{kind: kind, prog: prog, def: def}
	create := func() (_ io.Writer, err error) {
		r.file, err = open()
		return r.file, err
	}
	var fields []parquet.Field
	n := rawOwn
	var counts int
	switch kind {
	case partTyped:
		var err error
		if fields, err = typedFields(prog); err != nil {
			return nil, err
		}
		n, counts = typedOwn, len(prog.Lists())
		r.batch = prog.NewBatch()
		if r.blob = blobColumnOf(prog); r.blob != nil && !store {
			r.blob.rename(prog, fields)
		} else {
			r.blob = nil
		}
	case partMixed:
		fields, n = mixedFields(), mixedOwn
	default:
		fields = rawFields()
	}
	var err error
	if r.w, err = parquet.NewWriter(fields, comp, parquet.Options{Store: store, Open: create}); err != nil {
		return nil, err
	}
	r.own = make([]parquet.Values, n)
	for i := range r.own {
		r.cols = append(r.cols, &r.own[i])
	}
	if r.batch != nil {
		for i := range r.batch.Cols {
			r.cols = append(r.cols, (*parquet.Values)(&r.batch.Cols[i]))
		}
	}
	if len(r.cols) != len(r.w.Leaves()) || counts != len(r.w.Lists()) {
		return nil, errors.New("columns do not fit the program")
	}
	return r, nil
}

// empty says that there is no row.
func (r *rows) empty() bool { return r == nil || r.total == 0 }

// add adds a message; false means that columns cannot hold it.
func (r *rows) add(m *plugin.Message, topic *plugin.Topic) (bool, error) {
	var patch []byte
	if r.kind == partTyped {
		if err := r.prog.Append(r.batch, m.Data); err != nil {
			var ok bool
			if patch, ok, err = r.odd(m.Data, err); !ok {
				return false, err
			}
		}
		if len(patch) > 0 {
			v := &r.own[colPatch]
			v.Ends = fillEnds(v.Ends, r.count, len(v.Data))
			v.Data = append(v.Data, patch...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		}
	} else {
		v := &r.own[colPayload]
		v.Data = append(v.Data, m.Data...)
		v.Ends = append(v.Ends, uint32(len(v.Data)))
	}
	if r.kind == partMixed {
		r.own[colTopicID].I32 = append(r.own[colTopicID].I32, int32(topic.ID))
		v := &r.own[colTopic]
		v.Data = append(v.Data, strings.ToValidUTF8(topic.Name, "\ufffd")...)
		v.Ends = append(v.Ends, uint32(len(v.Data)))
	}
	r.heads = append(r.heads, head{m.RecvTime, m.SendTime, m.Seq, m.Order, m.Source})
	if r.count == 0 {
		r.groupStart, r.groupEnd = m.RecvTime, m.RecvTime
	} else {
		r.groupStart, r.groupEnd = min(r.groupStart, m.RecvTime), max(r.groupEnd, m.RecvTime)
	}
	if r.total == 0 {
		r.start, r.end = m.RecvTime, m.RecvTime
	} else {
		r.start, r.end = min(r.start, m.RecvTime), max(r.end, m.RecvTime)
	}
	r.count++
	r.total++
	r.bytes += int64(len(m.Data))
	r.payload += int64(len(m.Data))
	return true, nil
}

// odd adds a payload that Append has refused with err, and returns the patch for it. false without an error means that
// columns cannot hold it.
func (r *rows) odd(data []byte, err error) ([]byte, bool, error) {
	var patch []byte
	var odd *shred.NotCanonical
	if errors.As(err, &odd) && odd.Reason < shred.Structure {
		patch, err = r.loosely(data)
		odd = nil
	}
	if err == nil {
		return patch, true, nil
	}
	if errors.As(err, &odd) || errors.Is(err, errNoPatch) {
		return nil, false, nil
	}
	return nil, false, err
}

// loosely adds a payload that is not quite what its values give, and returns the patch for it.
func (r *rows) loosely(data []byte) ([]byte, error) {
	if r.loose == nil {
		r.loose, r.cursor = r.prog.NewBatch(), r.prog.NewCursor()
	}
	r.loose.Reset()
	r.cursor.Rewind()
	if _, err := r.prog.AppendLoose(r.loose, data); err != nil {
		return nil, err
	}
	var err error
	if r.redone, err = r.prog.Assemble(r.redone[:0], r.loose, r.cursor); err != nil {
		return nil, err
	}
	r.patch = appendPatch(r.patch[:0], r.redone, data)
	if len(r.patch) > 16+len(data)/4 || !patchable(r.redone, data, len(r.patch)) {
		return nil, errNoPatch
	}
	_, err = r.prog.AppendLoose(r.batch, data)
	return r.patch, err
}

// full says whether the rows in columns should become a page group.
func (r *rows) full() bool {
	return r.count >= groupRows || r.bytes >= groupBytes || r.bytes >= blobBytes && r.bytes > int64(r.count)*(16<<10)
}

// flush makes a page group of the rows in columns.
func (r *rows) flush() error {
	if r.count == 0 {
		return nil
	}
	b := parquet.Batch{Rows: r.count, Cols: r.cols, Bytes: r.bytes}
	r.system()
	if r.batch != nil {
		b.Counts = r.batch.Counts
		v := &r.own[colForm]
		for _, f := range r.batch.Forms {
			v.I32 = append(v.I32, int32(f))
		}
	}
	if r.blob != nil {
		r.rearrange(&b)
	}
	if err := r.w.Append(&b); err != nil {
		return fmt.Errorf("page group: %w", err)
	}
	r.groups = le.AppendUint64(le.AppendUint64(r.groups, uint64(r.groupStart)), uint64(r.groupEnd))
	for i := range r.own {
		r.own[i].Reset()
	}
	if r.batch != nil {
		r.batch.Reset()
	}
	r.heads = r.heads[:0]
	r.count, r.bytes = 0, 0
	return nil
}

// rearrange puts the rearranged column in the place of the other.
func (r *rows) rearrange(b *parquet.Batch) {
	v := &r.batch.Cols[r.blob.col]
	s := r.blob.shape(r.batch)
	r.shapes = appendShape(r.shapes, s)
	if s.kind == blobAsIs {
		return
	}
	r.moved.Data, r.moved.Ends = s.apply(r.moved.Data[:0], v.Data), v.Ends
	b.Cols = slices.Clone(b.Cols)
	b.Cols[typedOwn+r.blob.col] = &r.moved
}

// system makes the system columns, and completes that of the patches.
func (r *rows) system() {
	recv, send := &r.own[colLogTime], &r.own[colPubTime]
	seq, order, source := &r.own[colSeq], &r.own[colOrder], &r.own[colSource]
	for i := range r.heads {
		h := &r.heads[i]
		recv.I64 = append(recv.I64, h.recv)
		send.I64 = append(send.I64, h.send)
		seq.I64 = append(seq.I64, int64(h.seq))
		order.I64 = append(order.I64, int64(h.order))
		source.I32 = append(source.I32, int32(h.source))
	}
	if r.kind == partTyped {
		v := &r.own[colPatch]
		v.Ends = fillEnds(v.Ends, r.count, len(v.Data))
	}
}

// fillEnds adds empty values, of which there are n then.
func fillEnds(ends []uint32, n, at int) []uint32 {
	for len(ends) < n {
		ends = append(ends, uint32(at))
	}
	return ends
}

// release gives back the memory of columns, which are empty.
func (r *rows) release() {
	for i := range r.own {
		r.own[i] = parquet.Values{}
	}
	r.heads, r.moved = nil, parquet.Values{}
	if r.batch != nil {
		clear(r.batch.Cols)
		clear(r.batch.Counts)
	}
	r.kept = 0
}

// Keys of what a part says of itself in its key-value metadata.
const (
	keyPart   = "gobag.part"   // its number
	keyTopic  = "gobag.topic"  // name; not in mixed parts
	keyType   = "gobag.type"   // the same
	keyBlobs  = "gobag.blobs"  // base64: how the bytes of a column of every page group were rearranged; see blob.go
	keyGroups = "gobag.groups" // base64: least and largest stamp of every page group, i64 little endian
)

// describe returns the key-value metadata of the part.
func (r *rows) describe(number uint64, t *plugin.Topic) []parquet.KeyValue {
	kv := []parquet.KeyValue{{Key: keyPart, Value: fmt.Sprint(number)}, {Key: keyGroups, Value: base64.StdEncoding.EncodeToString(r.groups)}}
	if r.blob != nil {
		kv = append(kv, parquet.KeyValue{Key: keyBlobs, Value: base64.StdEncoding.EncodeToString(r.shapes)})
	}
	if t != nil {
		kv = append(kv, parquet.KeyValue{Key: keyTopic, Value: strings.ToValidUTF8(t.Name, "\ufffd")}, parquet.KeyValue{Key: keyType, Value: strings.ToValidUTF8(t.Type, "\ufffd")})
	}
	return kv
}

// reset drops all rows, after they were written.
func (r *rows) reset() {
	r.shapes = r.shapes[:0]
	r.groups, r.total, r.payload, r.file, r.pushed = r.groups[:0], 0, 0, nil, 0
}
