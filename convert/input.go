package convert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// input is an Input being read.
type input struct {
	Input
	index int
	r     *bag.Reader
	it    plugin.Iterator
	m     plugin.Message
	done  bool

	repeats map[plugin.TopicID]int // latched messages at the head of the bag that repeat what was before it, still to come
	stamp   int64                  // of those
}

// openInputs opens all inputs and begins to read them.
func (j *job) openInputs(ctx context.Context) error {
	for i, spec := range j.o.Inputs {
		r, err := bag.Open(ctx, spec.Path, spec.Options)
		if err != nil {
			return err
		}
		in := &input{Input: spec, index: i, r: r}
		j.inputs = append(j.inputs, in)
		info := r.Info()
		j.total += info.Messages
		for _, w := range info.Warnings {
			j.o.Logger.Warn(fmt.Sprintf("%s: %s", spec.Path, w))
		}
		if in.it, err = r.Messages(plugin.Query{Range: spec.Range}); err != nil {
			return err
		}
		if len(j.o.Inputs) > 1 {
			in.findRepeats(info)
		}
	}
	return nil
}

// findRepeats notes the repeats in the bag's first file; those of further files are left out by the reader.
func (in *input) findRepeats(info bag.Info) {
	in.repeats = map[plugin.TopicID]int{}
	for _, x := range info.Repeats {
		if len(info.Files) == 0 || x.File != info.Files[0].Path {
			continue
		}
		in.stamp = x.Stamp
		for _, t := range info.Topics {
			if n := x.Topics[t.Name]; n > 0 {
				in.repeats[t.ID] = n
			}
		}
	}
}

// isRepeat says whether the message at hand is marked as one that was recorded before the bag began.
func (in *input) isRepeat() bool {
	if in.m.RecvTime != in.stamp || in.repeats[in.m.Topic] == 0 {
		return false
	}
	in.repeats[in.m.Topic]--
	return true
}

func (in *input) close() error {
	var errs []error
	if in.it != nil {
		errs = append(errs, in.it.Close())
	}
	return errors.Join(append(errs, in.r.Close())...)
}

// topicKey is what makes a topic one and the same in several inputs.
type topicKey struct{ name, typ string }

// merged is a topic as all inputs together have it.
type merged struct {
	topic   plugin.Topic
	qos     []bag.QoSProfile
	refused string // why it is not in the format that is asked for
}

// mergeTopics returns the topics of all inputs in the order in which they are met. QoS profiles are put together, a hash
// on which the inputs disagree is left out, and of definitions the first with a text counts.
func (j *job) mergeTopics() []*merged {
	var out []*merged
	byKey := map[topicKey]*merged{}
	types := map[string]string{}
	conflict := map[topicKey]bool{}
	for _, in := range j.inputs {
		for _, t := range in.r.Info().Topics {
			key := topicKey{t.Name, t.Type}
			have := byKey[key]
			if have == nil {
				have = &merged{topic: t.Topic, refused: t.Refused}
				have.topic.Sources = nil
				have.qos = append(have.qos, t.QoS...)
				byKey[key] = have
				out = append(out, have)
				if first, ok := types[t.Name]; ok {
					j.o.Logger.Warn(fmt.Sprintf("topic %q has the types %s and %s; both are kept", t.Name, first, t.Type))
				} else {
					types[t.Name] = t.Type
				}
				continue
			}
			have.merge(t)
			if have.topic.TypeHash != t.TypeHash && t.TypeHash != "" {
				if !conflict[key] && have.topic.TypeHash != "" {
					j.o.Logger.Warn(fmt.Sprintf("topic %q: the inputs name different type hashes; it is stored without one", t.Name))
					conflict[key] = true
				}
				have.topic.TypeHash = t.TypeHash
			}
			if conflict[key] {
				have.topic.TypeHash = ""
			}
		}
	}
	return out
}

func (m *merged) merge(t bag.TopicInfo) {
	for _, q := range t.QoS {
		if !slices.Contains(m.qos, q) {
			m.qos = append(m.qos, q)
		}
	}
	if m.topic.OfferedQoS == "" {
		m.topic.OfferedQoS = t.OfferedQoS
	}
	if m.topic.Definition.Text == "" {
		m.topic.Definition = t.Definition
	}
	if m.topic.SerializationFormat == "" {
		m.topic.SerializationFormat = t.SerializationFormat
	}
}
