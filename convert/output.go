package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/internal/selection"
	"github.com/gobag/gobag/plugin"
)

// output is an Output being made.
type output struct {
	Output
	w      *bag.Writer
	topics map[topicKey]*outTopic
	maps   [][]route // by input, by its TopicID − 1
	batch  []plugin.Message
	wrote  uint64 // handed to the writer
	bytes  int64
	order  bool // orders are those of the only input
}

// outTopic is a topic of an output.
type outTopic struct {
	topic plugin.Topic
	id    plugin.TopicID
}

// route is where messages of an input's topic go.
type route struct {
	known   bool
	to      *outTopic // nil = left out
	sources []uint32  // by Source − 1
}

// openOutputs creates all outputs with their topics.
func (j *job) openOutputs(ctx context.Context) error {
	all := j.mergeTopics()
	for _, spec := range j.o.Outputs {
		if _, err := os.Lstat(spec.Dir); err == nil {
			return fmt.Errorf("output %s: %w", spec.Dir, plugin.ErrExists)
		}
	}
	for _, spec := range j.o.Outputs {
		out := &output{Output: spec, topics: map[topicKey]*outTopic{}, maps: make([][]route, len(j.inputs)), order: len(j.inputs) == 1}
		kept, err := out.choose(j, all)
		if err != nil {
			return err
		}
		if err := j.checkFormat(spec.Dir, kept); err != nil {
			return err
		}
		o := spec.Writer
		o.SyncInterval, o.Logger, o.SplitByStamp = -1, j.o.Logger, true
		o.CustomData = j.customData(spec.Writer.CustomData, kept)
		if o.ROSDistro == "" {
			o.ROSDistro = j.distro()
		}
		if o.Compat == "" {
			if o.Compat = compatOf(kept); o.Compat == plugin.CompatHumble {
				j.o.Logger.Info(fmt.Sprintf("%s: no topic has a type hash: writing a bag that Humble can open (--compat jazzy overrides)", spec.Dir))
			}
		}
		out.Writer = o
		if out.w, err = bag.Create(ctx, spec.Dir, o); err != nil {
			return err
		}
		j.outputs = append(j.outputs, out)
		for _, m := range kept {
			if err := out.add(m); err != nil {
				return err
			}
		}
		for from, in := range j.inputs { // sources keep their numbers, also those without a message
			for _, t := range in.r.Info().Topics {
				if _, err := out.route(j, &held{plugin.Message{Topic: t.ID}, from}); err != nil {
					return err
				}
			}
		}
		out.sayLimits(j)
	}
	return nil
}

// choose returns the topics that the output takes over.
func (out *output) choose(j *job, all []*merged) (kept []*merged, err error) {
	c, err := newChooser(out.Filter)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range all {
		names = append(names, m.topic.Name)
		take, err := c.takes(m.topic.Name, m.topic.Type)
		if err != nil {
			return nil, err
		}
		if take {
			kept = append(kept, m)
		}
	}
	if missing := c.absent(names); len(missing) > 0 {
		return nil, fmt.Errorf("output %s: not in the input: %s", out.Dir, strings.Join(missing, ", "))
	}
	if len(all) > 0 && len(kept) == 0 {
		j.o.Logger.Warn(fmt.Sprintf("%s: no topic is chosen; the bag will be empty", out.Dir))
	}
	return kept, nil
}

// add makes a topic in the output.
func (out *output) add(m *merged) error {
	t := m.topic
	qos := m.qos
	if q, ok := out.QoSOverrides[selection.Absolute(t.Name)]; ok {
		qos = []bag.QoSProfile{q}
	}
	if len(qos) > 0 {
		t.OfferedQoS = bag.EncodeQoS(qos, true)
	}
	id, err := out.w.AddTopic(t)
	if err != nil {
		return err
	}
	out.topics[topicKey{t.Name, t.Type}] = &outTopic{topic: plugin.Topic{Name: t.Name, Type: t.Type}, id: id}
	return nil
}

// sayLimits names what the format of the output cannot keep.
func (out *output) sayLimits(j *job) {
	drv, err := plugin.Lookup(j.storage(out))
	if err != nil {
		return // Create has found it
	}
	f := drv.Features()
	var lost []string
	for _, x := range []struct {
		has  bool
		name string
	}{{f.SendTime, "send times"}, {f.Source, "writers and sequence numbers"}, {f.Definitions, "message definitions"}, {f.Metadata, "a description inside"}} {
		if !x.has {
			lost = append(lost, x.name)
		}
	}
	if len(lost) > 0 {
		j.o.Logger.Warn(fmt.Sprintf("%s: %s keeps no %s", out.Dir, drv.Name(), strings.Join(lost, ", no ")))
	}
}

func (j *job) storage(out *output) string {
	if out.Writer.StorageID == "" {
		return bag.DefaultStorage(out.Writer.Compat)
	}
	return out.Writer.StorageID
}

// compatOf is the form for tools of the generation that the topics come from: Humble's endpoints announce no hash.
func compatOf(kept []*merged) plugin.Compat {
	for _, m := range kept {
		if m.topic.TypeHash != "" {
			return plugin.CompatJazzy
		}
	}
	if len(kept) == 0 {
		return plugin.CompatJazzy
	}
	return plugin.CompatHumble
}

// route returns where a message of an input goes. Topics and sources can turn up while an input is read.
func (out *output) route(j *job, m *held) (*route, error) {
	in := j.inputs[m.from]
	routes := out.maps[m.from]
	if int(m.Topic) <= len(routes) {
		if r := &routes[m.Topic-1]; r.known && (r.to == nil || int(m.Source) <= len(r.sources)) {
			return r, nil
		}
	}
	topics := in.r.Info().Topics
	if int(m.Topic) > len(topics) {
		return nil, fmt.Errorf("read bag %s: topic %d: %w", in.Path, m.Topic, plugin.ErrUnknownTopic)
	}
	for len(routes) < len(topics) {
		routes = append(routes, route{})
	}
	out.maps[m.from] = routes
	t := topics[m.Topic-1]
	r := &routes[m.Topic-1]
	r.known = true
	key := topicKey{t.Name, t.Type}
	if r.to = out.topics[key]; r.to == nil {
		c, err := newChooser(out.Filter)
		if err != nil {
			return nil, err
		}
		take, err := c.takes(t.Name, t.Type)
		if err != nil || !take {
			return r, err
		}
		if err := out.add(&merged{topic: t.Topic, qos: t.QoS}); err != nil { // of a file that was opened just now
			return nil, err
		}
		r.to = out.topics[key]
	}
	return r, out.mapSources(r, t.Sources, m.Source)
}

// mapSources numbers the sources of an input's topic as the output does.
func (out *output) mapSources(r *route, sources []string, want uint32) error {
	have := &r.to.topic
	before := len(have.Sources)
	r.sources = r.sources[:0]
	for _, s := range sources {
		at := slices.Index(have.Sources, s)
		if at < 0 {
			at = len(have.Sources)
			have.Sources = append(have.Sources, s)
		}
		r.sources = append(r.sources, uint32(at+1))
	}
	for len(r.sources) < int(want) && want < 1<<20 { // a number that nothing stands behind stays what it is
		r.sources = append(r.sources, uint32(len(r.sources)+1))
	}
	if len(have.Sources) == before {
		return nil
	}
	_, err := out.w.AddTopic(*have)
	return err
}

// write writes the part of the batch that the output takes.
func (out *output) write(j *job) error {
	out.batch = out.batch[:0]
	for i := range j.batch.messages {
		m := &j.batch.messages[i]
		if out.Range != nil && (m.RecvTime < out.Range.Start || m.RecvTime > out.Range.End) {
			continue
		}
		r, err := out.route(j, m)
		if err != nil {
			return err
		}
		if r.to == nil {
			continue
		}
		n := m.Message
		n.Topic = r.to.id
		if n.Source > 0 && int(n.Source) <= len(r.sources) {
			n.Source = r.sources[n.Source-1]
		}
		if !out.order {
			n.Order = 0 // each input has numbers of its own
		}
		out.batch = append(out.batch, n)
		out.wrote++
		out.bytes += int64(len(n.Data))
	}
	err := out.w.Write(out.batch)
	clear(out.batch)
	return err
}

// finish closes the bag. It fails when the bag does not hold every message.
func (out *output) finish() (OutputResult, error) {
	if err := out.w.Close(); err != nil {
		return OutputResult{}, err
	}
	s := out.w.Stats()
	if s.Messages != out.wrote {
		err := fmt.Errorf("output %s: %d of %d messages were not taken", out.Dir, out.wrote-s.Messages, out.wrote)
		for _, t := range out.w.Topics() {
			if t.Lost > 0 {
				err = fmt.Errorf("%w; topic %s: %d are larger than the storage takes", err, t.Name, t.Lost)
			}
		}
		return OutputResult{}, err
	}
	return OutputResult{Dir: out.Dir, Storage: out.w.StorageID(), Compat: out.Writer.Compat, Messages: s.Messages, Bytes: s.Bytes,
		Topics: len(out.w.Topics()), Files: s.Files, Size: s.Size}, nil
}

// discard removes what was begun.
func (out *output) discard() error {
	_ = out.w.Close() // its failure is why we are here
	if err := os.RemoveAll(out.Dir); err != nil {
		return errors.Join(fmt.Errorf("output %s could not be removed", out.Dir), err)
	}
	return nil
}
