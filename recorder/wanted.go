package recorder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gobag/gobag/ros"
)

// Wanted is something that was asked for by name.
type Wanted struct {
	Kind string // "topic", "service" or "action"
	Name string // as given, with its slash: "/add_two_ints"
}

// String is "topic '/scan'".
func (w Wanted) String() string { return fmt.Sprintf("%s '%s'", w.Kind, w.Name) }

// topics returns the names of the topics that carry it.
func (w Wanted) topics() []string {
	switch w.Kind {
	case classService.String():
		return []string{ros.ServiceEventTopic(w.Name)}
	case classAction.String():
		return ros.ActionTopics(w.Name)
	}
	return []string{w.Name}
}

// wanted lists what the options name, exclusions left out.
func (o Options) wanted() []Wanted {
	var all []Wanted
	add := func(c class, names, excluded []string) {
		excluded = absoluteNames(excluded)
		for _, n := range absoluteNames(names) {
			if !slices.Contains(excluded, n) {
				all = append(all, Wanted{c.String(), n})
			}
		}
	}
	add(classTopic, o.Topics, o.ExcludeTopics)
	add(classService, o.Services, o.ExcludeServices)
	add(classAction, o.Actions, o.ExcludeActions)
	return all
}

// missing returns what was named and is not there: no topic of it is subscribed.
func (r *Recorder) missing() []Wanted {
	return r.without(func(subscribed, of int) bool { return subscribed == 0 })
}

// complete says whether everything that was named is subscribed, all five topics of an action too.
func (r *Recorder) complete() bool {
	return len(r.without(func(subscribed, of int) bool { return subscribed < of })) == 0
}

// without returns what was named and of whose topics so few are subscribed.
func (r *Recorder) without(few func(subscribed, of int) bool) []Wanted {
	var out []Wanted
	for _, w := range r.wanted {
		topics, n := w.topics(), 0
		for _, name := range topics {
			if t := r.topicNamed(name); t != nil && t.subscription() != nil {
				n++
			}
		}
		if few(n, len(topics)) {
			out = append(out, w)
		}
	}
	return out
}

// missingText says what is not there, and what to look at.
func (r *Recorder) missingText(missing []Wanted, graph []ros.TopicInfo) string {
	text := wantedText(missing)
	if len(missing) > 1 {
		text += " have not appeared yet"
	} else {
		text += " has not appeared yet"
	}
	switch {
	case len(r.allTopics()) == 0 && !slices.ContainsFunc(graph, func(t ros.TopicInfo) bool { return slices.ContainsFunc(t.Publishers, remote) }):
		text += "; no publisher is visible at all: do domain id, discovery range and network interface agree?"
	case slices.ContainsFunc(missing, func(w Wanted) bool { return w.Kind == classService.String() }):
		text += "; a service shows up once introspection is switched on in its client or server"
	}
	return text
}

// wantedText is "topics '/a', '/b', service '/c'".
func wantedText(ws []Wanted) string {
	var parts []string
	for c := range classes {
		var names []string
		for _, w := range ws {
			if w.Kind == c.String() {
				names = append(names, "'"+w.Name+"'")
			}
		}
		if len(names) == 0 {
			continue
		}
		word := c.String()
		if len(names) > 1 {
			word += "s"
		}
		parts = append(parts, word+" "+strings.Join(names, ", "))
	}
	return strings.Join(parts, ", ")
}
