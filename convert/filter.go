package convert

import (
	"slices"

	"github.com/gobag/gobag/internal/selection"
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

// chooser is a Filter made ready.
type chooser struct {
	f               Filter
	whole           [selection.Classes]bool
	named, excluded selection.Names
	re              selection.Expressions
}

func newChooser(f Filter) (*chooser, error) {
	re, err := selection.Compile(f.Regex, f.ExcludeRegex)
	return &chooser{f: f, whole: [selection.Classes]bool{f.AllTopics, f.AllServices, f.AllActions},
		named:    selection.NewNames(f.Topics, f.Services, f.Actions),
		excluded: selection.NewNames(f.ExcludeTopics, f.ExcludeServices, f.ExcludeActions), re: re}, err
}

// takes says whether a topic is taken over. An error is a regular expression that took too long.
func (c *chooser) takes(name, typ string) (bool, error) {
	full := selection.Absolute(name)
	k, owner := selection.Classify(full)
	if c.excluded.Has(full, k, owner) || slices.Contains(c.f.ExcludeTopicTypes, typ) {
		return false, nil
	}
	if hit, err := selection.FoundIn(c.re.Exclude, name, full, owner); hit || err != nil {
		return false, err
	}
	if !c.f.chooses() || c.whole[k] || c.named.Has(full, k, owner) || slices.Contains(c.f.TopicTypes, typ) {
		return true, nil
	}
	return selection.FoundIn(c.re.Include, name, full, owner)
}

// absent returns the names that are asked for and belong to none of the topics.
func (c *chooser) absent(topics []string) (out []string) {
	for _, m := range c.named.Absent(topics) {
		out = append(out, m.Name)
	}
	return out
}
