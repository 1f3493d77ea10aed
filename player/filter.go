package player

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gobag/gobag/internal/ecmare"
	"github.com/gobag/gobag/ros"
)

// filter decides by name which topics of a bag are played.
type filter struct {
	topics, excludeTopics []string
	include, exclude      *ecmare.Regexp
}

func newFilter(o Options) (*filter, error) {
	f := &filter{topics: absolute(o.Topics), excludeTopics: absolute(o.ExcludeTopics)}
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
	if slices.Contains(f.excludeTopics, full) {
		return false, nil
	}
	if f.exclude != nil {
		if hit, err := f.exclude.Whole(name); hit || err != nil {
			return false, err
		}
	}
	if len(f.topics) == 0 && f.include == nil {
		return true, nil
	}
	if slices.Contains(f.topics, full) {
		return true, nil
	}
	if f.include == nil {
		return false, nil
	}
	return f.include.Whole(name)
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
