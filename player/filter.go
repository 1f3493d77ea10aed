package player

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gobag/gobag/internal/selection"
	"github.com/gobag/gobag/ros"
)

// filter decides by name which topics of a bag are played, by the rules of rosbag2's storage filter: what is named in its
// class or matches the regular expression; a class of which nothing is named is played whole, unless there is a regular
// expression; exclusions win.
type filter struct {
	named, excluded selection.Names
	re              selection.Expressions
}

func newFilter(o Options) (*filter, error) {
	re, err := selection.Compile(o.Regex, o.ExcludeRegex)
	return &filter{named: selection.NewNames(o.Topics, o.Services, o.Actions),
		excluded: selection.NewNames(o.ExcludeTopics, o.ExcludeServices, o.ExcludeActions), re: re}, err
}

// takes says whether a topic is played. An error is a regular expression that took too long.
func (f *filter) takes(name string) (bool, error) {
	full := selection.Absolute(name)
	c, owner := selection.Classify(full)
	if f.excluded.Has(full, c, owner) {
		return false, nil
	}
	names := []string{name}
	if c != selection.Topic {
		names = append(names, owner)
	}
	if hit, err := selection.MatchesWhole(f.re.Exclude, names...); hit || err != nil {
		return false, err
	}
	if f.named.Has(full, c, owner) {
		return true, nil
	}
	if f.re.Include != nil {
		return selection.MatchesWhole(f.re.Include, names...)
	}
	return len(f.named[c]) == 0, nil
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
		from, to = selection.Absolute(from), selection.Absolute(to)
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
	name = selection.Absolute(name)
	for _, r := range rules {
		if r.from == name {
			return r.to
		}
	}
	return name
}
