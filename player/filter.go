package player

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/internal/ecmare"
	"github.com/gobag/gobag/ros"
)

// class is one of the three kinds of topics that are selected independently of each other, as rosbag2 does.
type class int

const (
	classTopic   class = iota
	classService       // the introspection events of a service
	classAction        // the five topics of an action
	classes
)

// String is the word for one of its members: "topic".
func (c class) String() string { return [...]string{"topic", "service", "action"}[c] }

// classify returns the class of a topic of a bag and the name that people use: that of the topic, the service or the
// action. Only the name counts, as in rosbag2.
func classify(name string) (class, string) {
	if action := ros.ActionOf(name); action != "" {
		return classAction, action
	}
	if service := ros.ServiceOf(name); service != "" {
		return classService, service
	}
	return classTopic, name
}

// filter decides by name which topics of a bag are played, by the rules of rosbag2's storage filter: what is named in its
// class or matches the regular expression; a class of which nothing is named is played whole, unless there is a regular
// expression; exclusions win.
type filter struct {
	named, excluded  [classes][]string
	include, exclude *ecmare.Regexp
}

func newFilter(o Options) (*filter, error) {
	f := &filter{
		named:    [classes][]string{absolute(o.Topics), absolute(o.Services), absolute(o.Actions)},
		excluded: [classes][]string{absolute(o.ExcludeTopics), absolute(o.ExcludeServices), absolute(o.ExcludeActions)},
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

// takes says whether a topic is played. An error is a regular expression that took too long.
func (f *filter) takes(name string) (bool, error) {
	full := absoluteName(name)
	c, owner := classify(full)
	if slices.Contains(f.excluded[c], owner) || slices.Contains(f.excluded[classTopic], full) {
		return false, nil
	}
	names := []string{name}
	if c != classTopic {
		names = append(names, owner)
	}
	if hit, err := wholeAny(f.exclude, names); hit || err != nil {
		return false, err
	}
	if slices.Contains(f.named[c], owner) || slices.Contains(f.named[classTopic], full) {
		return true, nil
	}
	if f.include != nil {
		return wholeAny(f.include, names)
	}
	return len(f.named[c]) == 0, nil
}

// wholeAny says whether the expression matches one of the names whole.
func wholeAny(re *ecmare.Regexp, names []string) (bool, error) {
	if re == nil {
		return false, nil
	}
	for _, n := range names {
		if hit, err := re.Whole(n); hit || err != nil {
			return hit, err
		}
	}
	return false, nil
}

// absent returns what is named, exclusions aside, and is not in the bag: "service '/add'".
func (f *filter) absent(topics []bag.TopicInfo) (out []absentName) {
	there := map[absentName]bool{}
	for i := range topics {
		full := absoluteName(topics[i].Name)
		c, owner := classify(full)
		there[absentName{c, owner}], there[absentName{classTopic, full}] = true, true
	}
	for c := range classes {
		for _, n := range f.named[c] {
			if w := (absentName{c, n}); !there[w] {
				out = append(out, w)
			}
		}
	}
	return out
}

type absentName struct {
	class class
	name  string
}

// remap is one rule: messages of from are published as to.
type remap struct{ from, to string }

// parseRemaps reads rules of the form "/a:=/b". Of ROS's remap rules only those for topic names make sense here; others
// are refused by name.
func parseRemaps(rules []string) ([]remap, error) {
	var out []remap
	var errs []error
	for _, rule := range rules {
		from, to, ok := strings.Cut(rule, ":=")
		switch {
		case !ok || from == "" || to == "":
			errs = append(errs, fmt.Errorf("remap rule %q: it must have the form /from:=/to", rule))
			continue
		case strings.HasPrefix(from, "__") || strings.Contains(from, ":"):
			errs = append(errs, fmt.Errorf("remap rule %q: only topic names can be remapped, not nodes and namespaces", rule))
			continue
		}
		from, to = absoluteName(from), absoluteName(to)
		if err := ros.ValidName(to); err != nil {
			errs = append(errs, fmt.Errorf("remap rule %q: %w", rule, err))
			continue
		}
		out = append(out, remap{from, to})
	}
	return out, errors.Join(errs...)
}

// publishedName is the name a topic of the bag is published under. The first rule that fits counts.
func publishedName(name string, rules []remap) string {
	name = absoluteName(name)
	for _, r := range rules {
		if r.from == name {
			return r.to
		}
	}
	return name
}

func absoluteName(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}

func absolute(names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, absoluteName(n))
	}
	return out
}
