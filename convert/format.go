package convert

import (
	"fmt"
	"strings"
)

// checkFormat fails where a topic that an output takes is not in the serialization format that is asked for, and says
// why of each.
func (j *job) checkFormat(dir string, kept []*merged) error {
	if j.o.Format == "" {
		return nil
	}
	var bad []string
	for _, m := range kept {
		if m.topic.SerializationFormat == j.o.Format {
			continue
		}
		why := m.refused
		if why == "" {
			why = fmt.Sprintf("its serialization format is %q", m.topic.SerializationFormat)
		}
		bad = append(bad, fmt.Sprintf("topic %s cannot be turned into %s: %s", m.topic.Name, j.o.Format, why))
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("output %s: %s (leave such topics out with --exclude-topics)", dir, strings.Join(bad, "; "))
}
