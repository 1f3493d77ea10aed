package convert

import (
	"errors"
	"slices"
	"strings"

	"github.com/gobag/gobag/internal/ecmare"
	"github.com/gobag/gobag/ros"
)

// Filter chooses topics by the rules of "record": what is named, has one of the types, is matched by the regular
// expression or belongs to a class that is taken whole; exclusions win. Where nothing chooses, everything is taken. There
// are three classes: topics, the introspection events of services, and the five topics of each action.
type Filter struct {
	AllTopics, AllServices, AllActions bool
	Topics, Services, Actions          []string // exact names; a missing leading slash does not matter
	TopicTypes                         []string
	Regex                              string // ECMAScript, found anywhere in the name of the topic, service or action

	ExcludeTopics, ExcludeServices, ExcludeActions []string
	ExcludeTopicTypes                              []string
	ExcludeRegex                                   string
}

// chooses says whether anything selects, so that what is not selected is left out.
func (f Filter) chooses() bool {
	return f.AllTopics || f.AllServices || f.AllActions || f.Regex != "" ||
		len(f.Topics)+len(f.Services)+len(f.Actions)+len(f.TopicTypes) > 0
}

type class int

const (
	classTopic class = iota
	classService
	classAction
	classes
)

func classify(name string) (class, string) {
	if action := ros.ActionOf(name); action != "" {
		return classAction, action
	}
	if service := ros.ServiceOf(name); service != "" {
		return classService, service
	}
	return classTopic, name
}

// chooser is a Filter made ready.
type chooser struct {
	f                Filter
	whole            [classes]bool
	named, excluded  [classes][]string
	include, exclude *ecmare.Regexp
}

func newChooser(f Filter) (*chooser, error) {
	c := &chooser{f: f, whole: [classes]bool{f.AllTopics, f.AllServices, f.AllActions},
		named:    [classes][]string{absolute(f.Topics), absolute(f.Services), absolute(f.Actions)},
		excluded: [classes][]string{absolute(f.ExcludeTopics), absolute(f.ExcludeServices), absolute(f.ExcludeActions)},
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
	c.include, c.exclude = compile(f.Regex), compile(f.ExcludeRegex)
	return c, errors.Join(errs...)
}

// takes says whether a topic is taken over. An error is a regular expression that took too long.
func (c *chooser) takes(name, typ string) (bool, error) {
	full := absoluteName(name)
	k, owner := classify(full)
	if slices.Contains(c.excluded[k], owner) || slices.Contains(c.excluded[classTopic], full) || slices.Contains(c.f.ExcludeTopicTypes, typ) {
		return false, nil
	}
	names := slices.Compact([]string{name, full, owner})
	if hit, err := searchAny(c.exclude, names); hit || err != nil {
		return false, err
	}
	if !c.f.chooses() || c.whole[k] || slices.Contains(c.named[k], owner) || slices.Contains(c.named[classTopic], full) ||
		slices.Contains(c.f.TopicTypes, typ) {
		return true, nil
	}
	return searchAny(c.include, names)
}

// absent returns the names that are asked for and belong to none of the topics.
func (c *chooser) absent(topics []string) (out []string) {
	there := map[string]bool{}
	for _, t := range topics {
		full := absoluteName(t)
		_, owner := classify(full)
		there[full], there[owner] = true, true
	}
	for _, list := range c.named {
		for _, n := range list {
			if !there[n] {
				out = append(out, n)
			}
		}
	}
	return out
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
