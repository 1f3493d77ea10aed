// Package selection holds what recorder, player and convert share in choosing topics: the three classes that are chosen
// independently of each other, names with and without their slash, and expressions that are tried on several names of a
// topic. Which of them counts when is each verb's own rule, as in rosbag2.
package selection

import (
	"errors"
	"slices"
	"strings"

	"github.com/gobag/gobag/internal/ecmare"
	"github.com/gobag/gobag/ros"
)

// Class is one of the three kinds of topics that are selected independently of each other, as rosbag2 does.
type Class int

// The classes. Classes is their number.
const (
	Topic   Class = iota
	Service       // the introspection events of a service
	Action        // the five topics of an action
	Classes
)

// String is the word for one of its members: "topic".
func (c Class) String() string { return [...]string{"topic", "service", "action"}[c] }

// Classify returns the class of a topic and the name that people use: that of the topic, the service or the action. Only
// the name counts, as in rosbag2.
func Classify(name string) (Class, string) {
	if action := ros.ActionOf(name); action != "" {
		return Action, action
	}
	if service := ros.ServiceOf(name); service != "" {
		return Service, service
	}
	return Topic, name
}

// Absolute puts the slash in front of a name that lacks it.
func Absolute(name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return "/" + name
}

// AllAbsolute is Absolute of every name, each once.
func AllAbsolute(names []string) []string {
	var out []string
	for _, n := range names {
		if n = Absolute(n); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// Names are names of topics, services and actions.
type Names [Classes][]string

// NewNames makes the names absolute.
func NewNames(topics, services, actions []string) Names {
	return Names{AllAbsolute(topics), AllAbsolute(services), AllAbsolute(actions)}
}

// Has says whether a topic is named: by its owner in its class, or in full as a topic. full is absolute; c and owner are
// what Classify says of it.
func (n Names) Has(full string, c Class, owner string) bool {
	return slices.Contains(n[c], owner) || slices.Contains(n[Topic], full)
}

// Member is a topic, service or action.
type Member struct {
	Class Class
	Name  string
}

// Absent returns what is named and belongs to none of the topics: "service /add".
func (n Names) Absent(topics []string) (out []Member) {
	there := map[Member]bool{}
	for _, t := range topics {
		full := Absolute(t)
		c, owner := Classify(full)
		there[Member{c, owner}], there[Member{Topic, full}] = true, true
	}
	for c := range Classes {
		for _, name := range n[c] {
			if m := (Member{c, name}); !there[m] {
				out = append(out, m)
			}
		}
	}
	return out
}

// Expressions are two regular expressions, compiled; nil where there is none.
type Expressions struct{ Include, Exclude *ecmare.Regexp }

// Compile compiles both expressions; "" is none. The error names all that is wrong.
func Compile(include, exclude string) (Expressions, error) {
	var errs []error
	compile := func(expr string) *ecmare.Regexp {
		if expr == "" {
			return nil
		}
		re, err := ecmare.Compile(expr)
		errs = append(errs, err)
		return re
	}
	return Expressions{compile(include), compile(exclude)}, errors.Join(errs...)
}

// FoundIn says whether the expression is found anywhere in one of the names; never where it is nil. An error is an
// expression that took too long.
func FoundIn(re *ecmare.Regexp, names ...string) (bool, error) {
	if re == nil {
		return false, nil
	}
	return anyOf(re.Search, names)
}

// MatchesWhole is FoundIn for an expression that must match a name from end to end.
func MatchesWhole(re *ecmare.Regexp, names ...string) (bool, error) {
	if re == nil {
		return false, nil
	}
	return anyOf(re.Whole, names)
}

func anyOf(match func(string) (bool, error), names []string) (bool, error) {
	for _, n := range names {
		if hit, err := match(n); hit || err != nil {
			return hit, err
		}
	}
	return false, nil
}
