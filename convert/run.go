package convert

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/gobag/gobag/plugin"
)

const (
	batchMessages = 1024
	batchBytes    = 4 << 20 // a batch exceeds it by one message at most
	tellEvery     = 200 * time.Millisecond
)

// Run makes the outputs. On any error, the end of ctx among them, what was begun of them is removed again; the inputs are
// only read. Memory: two batches of 4 MiB, the largest message of each input, and what the formats need.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	res, err := run(ctx, o)
	if err != nil {
		return Result{}, fmt.Errorf("convert: %w", err)
	}
	return res, nil
}

func run(ctx context.Context, o Options) (_ Result, err error) {
	if err := o.Validate(); err != nil {
		return Result{}, err
	}
	j := &job{o: o}
	defer func() {
		err = errors.Join(err, j.closeInputs())
		if err != nil {
			err = errors.Join(err, j.discard())
		}
	}()
	if err := j.openInputs(ctx); err != nil {
		return Result{}, err
	}
	if err := j.openOutputs(ctx); err != nil {
		return Result{}, err
	}
	if err := j.copy(ctx); err != nil {
		return Result{}, err
	}
	return j.finish()
}

// job is one run.
type job struct {
	o       Options
	inputs  []*input
	outputs []*output
	batch   batch
	read    uint64
	bytes   int64
	total   uint64
	told    time.Time

	latched map[topicKey][]byte // the last payload of topics that an input repeats
}

// batch is messages that wait to be written, and their payloads.
type batch struct {
	messages []held
	arena    []byte
}

// held is a message of an input.
type held struct {
	plugin.Message
	from int // which input
}

func (b *batch) full() bool { return len(b.messages) >= batchMessages || len(b.arena) >= batchBytes }

// add copies a message. What a growing arena leaves behind stays valid, since messages keep pointing there.
func (b *batch) add(m plugin.Message, from int) {
	at := len(b.arena)
	b.arena = append(b.arena, m.Data...)
	m.Data = b.arena[at:len(b.arena):len(b.arena)]
	b.messages = append(b.messages, held{m, from})
}

func (b *batch) reset() {
	clear(b.messages)
	b.messages = b.messages[:0]
	if cap(b.arena) > 4*batchBytes { // after a very large message
		b.arena = nil
	}
	b.arena = b.arena[:0]
}

// copy merges the inputs by stamp, on equal stamps the earlier input first, and writes the outputs.
func (j *job) copy(ctx context.Context) error {
	for _, in := range j.inputs {
		if err := in.next(); err != nil {
			return err
		}
	}
	for {
		var first *input
		for _, in := range j.inputs {
			if !in.done && (first == nil || in.m.RecvTime < first.m.RecvTime) {
				first = in
			}
		}
		if first == nil {
			break
		}
		j.read++
		j.bytes += int64(len(first.m.Data))
		if !j.repeated(first) {
			j.batch.add(first.m, first.index)
		}
		if err := first.next(); err != nil {
			return err
		}
		if j.batch.full() {
			if err := j.flush(ctx); err != nil {
				return err
			}
		}
	}
	return j.flush(ctx)
}

// repeated says whether the message at hand of an input only repeats the last one of its topic in an earlier input: a bag that
// was begun in the middle of things, a snapshot say, has the latched messages from before it at its head.
func (j *job) repeated(in *input) bool {
	if len(j.inputs) < 2 {
		return false
	}
	if j.latched == nil {
		j.latched = map[topicKey][]byte{}
		for _, x := range j.inputs {
			for _, t := range x.r.Info().Topics {
				if x.repeats[t.ID] > 0 {
					j.latched[topicKey{t.Name, t.Type}] = nil
				}
			}
		}
	}
	if len(j.latched) == 0 {
		return false
	}
	topics := in.r.Info().Topics
	if int(in.m.Topic) > len(topics) {
		return false
	}
	t := &topics[in.m.Topic-1]
	key := topicKey{t.Name, t.Type}
	last, follow := j.latched[key]
	if !follow {
		return false
	}
	if in.isRepeat() && last != nil && bytes.Equal(last, in.m.Data) {
		return true
	}
	j.latched[key] = append(last[:0], in.m.Data...)
	return false
}

// flush writes the batch to all outputs.
func (j *job) flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped: %w", err)
	}
	for _, out := range j.outputs {
		if err := out.write(j); err != nil {
			return err
		}
	}
	j.batch.reset()
	if now := time.Now(); j.o.Progress != nil && now.Sub(j.told) >= tellEvery {
		j.told = now
		j.o.Progress(j.progress())
	}
	return nil
}

func (j *job) progress() Progress {
	p := Progress{Read: j.read, Total: j.total, Bytes: j.bytes}
	for _, out := range j.outputs {
		p.Written += out.wrote
	}
	return p
}

// finish closes the outputs and makes sure that they hold what they should.
func (j *job) finish() (Result, error) {
	res := Result{Read: j.read}
	for _, out := range j.outputs {
		r, err := out.finish()
		if err != nil {
			return res, err
		}
		res.Outputs = append(res.Outputs, r)
	}
	if j.o.Progress != nil {
		j.o.Progress(j.progress())
	}
	return res, nil
}

// discard removes the outputs.
func (j *job) discard() error {
	var errs []error
	for _, out := range j.outputs {
		errs = append(errs, out.discard())
	}
	return errors.Join(errs...)
}

func (j *job) closeInputs() error {
	var errs []error
	for _, in := range j.inputs {
		errs = append(errs, in.close())
	}
	return errors.Join(errs...)
}

// next reads the next message of an input.
func (in *input) next() error {
	err := in.it.Next(&in.m)
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		in.done = true
		return nil
	}
	var corrupt *plugin.CorruptError
	if errors.As(err, &corrupt) {
		return fmt.Errorf("%w; gobag repair %s -o OUT saves what can be read", err, in.Path)
	}
	return err
}
