package recorder

import (
	"errors"
	"slices"

	"github.com/gobag/gobag/internal/ecmare"
	"github.com/gobag/gobag/ros"
)

// filter decides by name and type which topics are recorded. Decisions are kept, since a regular expression costs more
// than a look-up and the graph is looked at often. Not safe for concurrent use.
type filter struct {
	all, hidden     bool
	named           map[string]bool
	types           map[string]bool
	include         *ecmare.Regexp
	exclude         *ecmare.Regexp
	excludeNames    map[string]bool
	excludeTypes    map[string]bool
	decisions       map[nameAndType]bool
	onlyNamed       bool // nothing but Options.Topics selects
	regexOverridden bool // a regular expression was given and All makes it meaningless
}

type nameAndType struct{ name, typ string }

// maxDecisions bounds the memory that names made up by a hostile network can take.
const maxDecisions = 1 << 16

func newFilter(o Options) (*filter, error) {
	f := &filter{
		all: o.All, hidden: o.IncludeHidden,
		named: set(absoluteNames(o.Topics)), types: set(o.TopicTypes),
		excludeNames: set(absoluteNames(o.ExcludeTopics)), excludeTypes: set(o.ExcludeTopicTypes),
		decisions:       map[nameAndType]bool{},
		onlyNamed:       !o.All && o.Regex == "" && len(o.TopicTypes) == 0,
		regexOverridden: o.All && o.Regex != "",
	}
	var errs []error
	compile := func(expr string) *ecmare.Regexp {
		if expr == "" {
			return nil
		}
		re, err := ecmare.Compile(expr)
		errs = append(errs, err)
		return re
	}
	f.include, f.exclude = compile(o.Regex), compile(o.ExcludeRegex)
	return f, errors.Join(errs...)
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
	names := aliases(name, typ)
	if f.excludeTypes[typ] || slices.ContainsFunc(names, func(n string) bool { return f.excludeNames[n] }) {
		return false, nil
	}
	if hit, err := searchAny(f.exclude, names); hit || err != nil {
		return false, err
	}
	if f.named[name] {
		return true, nil
	}
	if !f.hidden && hidden(name, typ) {
		return false, nil
	}
	if f.all || f.types[typ] {
		return true, nil
	}
	return searchAny(f.include, names)
}

// hidden says whether a topic is recorded only on request. The introspection events of services and the topics of
// actions have hidden names by construction; they count as hidden when their service or action is.
func hidden(name, typ string) bool {
	if action := ros.ActionOf(name); action != "" {
		return ros.Hidden(action)
	}
	if ros.IsServiceEvent(name, typ) {
		return ros.Hidden(ros.ServiceOf(name))
	}
	return ros.Hidden(name)
}

// aliases returns the names by which a topic may be meant: its own, that of its service and that of its action.
func aliases(name, typ string) []string {
	names := []string{name}
	if ros.IsServiceEvent(name, typ) {
		names = append(names, ros.ServiceOf(name))
	}
	if action := ros.ActionOf(name); action != "" {
		names = append(names, action)
	}
	return names
}

func searchAny(re *ecmare.Regexp, names []string) (bool, error) {
	if re == nil {
		return false, nil
	}
	for _, n := range names {
		if hit, err := re.Search(n); hit || err != nil {
			return hit, err
		}
	}
	return false, nil
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}
