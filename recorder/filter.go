package recorder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gobag/gobag/internal/selection"
	"github.com/gobag/gobag/ros"
)

// class is one of the three kinds of topics that are selected independently of each other.
type class = selection.Class

const (
	classTopic   = selection.Topic
	classService = selection.Service
	classAction  = selection.Action
	classes      = selection.Classes
)

// classify is selection.Classify where the type is known: a name alone makes no service.
func classify(name, typ string) (class, string) {
	if action := ros.ActionOf(name); action != "" {
		return classAction, action
	}
	if ros.IsServiceEvent(name, typ) {
		return classService, ros.ServiceOf(name)
	}
	return classTopic, name
}

// filter decides by name and type which topics are recorded. Decisions are kept, since a regular expression costs more
// than a look-up and the graph is looked at often. Not safe for concurrent use.
type filter struct {
	all          [classes]bool
	hidden       bool
	named        map[string]bool // by name of the topic, also those that carry a named service or action
	types        map[string]bool
	re           selection.Expressions
	excludeNames [classes]map[string]bool
	excludeTypes map[string]bool
	decisions    map[nameAndType]bool
	onlyNamed    bool // nothing but names selects
}

type nameAndType struct{ name, typ string }

// maxDecisions bounds the memory that names made up by a hostile network can take.
const maxDecisions = 1 << 16

func newFilter(o Options) (*filter, error) {
	f := &filter{
		all: o.wholeClasses(), hidden: o.IncludeHidden,
		named: map[string]bool{}, types: set(o.TopicTypes),
		excludeNames: [classes]map[string]bool{set(absoluteNames(o.ExcludeTopics)), set(absoluteNames(o.ExcludeServices)),
			set(absoluteNames(o.ExcludeActions))},
		excludeTypes: set(o.ExcludeTopicTypes),
		decisions:    map[nameAndType]bool{},
	}
	f.onlyNamed = f.all == [classes]bool{} && o.Regex == "" && len(o.TopicTypes) == 0
	for _, w := range o.wanted() {
		for _, name := range w.topics() {
			f.named[name] = true
		}
	}
	var err error
	f.re, err = selection.Compile(o.Regex, o.ExcludeRegex)
	return f, err
}

// overridden says where the regular expression has no effect, "" if it has everywhere. rosbag2 chooses in the same way
// and warns too.
func (f *filter) overridden() string {
	if f.re.Include == nil || f.all == [classes]bool{} {
		return ""
	}
	var whole, rest []string
	for c := range classes {
		if f.all[c] {
			whole = append(whole, c.String()+"s")
		} else {
			rest = append(rest, c.String()+"s")
		}
	}
	if len(rest) == 0 {
		return "the regular expression is ignored since everything is recorded"
	}
	return fmt.Sprintf("all %s are recorded; the regular expression chooses among %s only", strings.Join(whole, " and "), strings.Join(rest, " and "))
}

// takes says whether a topic is recorded. An error is a regular expression that took too long: the topic counts as not
// matched by it.
func (f *filter) takes(name, typ string) (bool, error) {
	key := nameAndType{name, typ}
	if take, known := f.decisions[key]; known {
		return take, nil
	}
	take, err := f.decide(name, typ)
	if len(f.decisions) >= maxDecisions {
		clear(f.decisions)
	}
	f.decisions[key] = take
	return take, err
}

func (f *filter) decide(name, typ string) (bool, error) {
	c, owner := classify(name, typ)
	if f.excludeTypes[typ] || f.excludeNames[c][owner] || f.excludeNames[classTopic][name] {
		return false, nil
	}
	names := slices.Compact([]string{name, owner})
	if hit, err := selection.FoundIn(f.re.Exclude, names...); hit || err != nil {
		return false, err
	}
	if f.named[name] {
		return true, nil
	}
	// The topics of services and actions have hidden names by construction; they are hidden when their owner is.
	if !f.hidden && ros.Hidden(owner) {
		return false, nil
	}
	if f.all[c] || f.types[typ] {
		return true, nil
	}
	return selection.FoundIn(f.re.Include, names...)
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}
