package recorder

import (
	"fmt"
	"slices"
	"strings"
)

// UndefinedType is a type whose definition is not in the bag.
type UndefinedType struct {
	Type   string
	Topics []string // by name
}

// undefined lists the types of recorded topics without a definition, by name.
func (r *Recorder) undefined() []UndefinedType {
	byType := map[string][]string{}
	for _, t := range r.allTopics() {
		if !t.hasDefinition() {
			byType[t.typ] = append(byType[t.typ], t.name)
		}
	}
	var out []UndefinedType
	for typ, topics := range byType {
		slices.Sort(topics)
		out = append(out, UndefinedType{typ, topics})
	}
	slices.SortFunc(out, func(a, b UndefinedType) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// undefinedText says at the end which definitions a reader will miss.
func undefinedText(types []UndefinedType) string {
	const most = 20
	var parts []string
	for i, u := range types {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more types", len(types)-most))
			break
		}
		topics := u.Topics
		more := ""
		if len(topics) > most {
			topics, more = topics[:most], fmt.Sprintf(" and %d more", len(topics)-most)
		}
		parts = append(parts, fmt.Sprintf("%s (%s%s)", u.Type, strings.Join(topics, ", "), more))
	}
	return "the bag has no definition of " + strings.Join(parts, ", ") + "; readers need it from elsewhere"
}
