package bag

import "strings"

// ParseQoSOverrides reads the file of --qos-profile-overrides-path: a map from topic to the keys of a profile, or the
// list of {topic, qos} that convert takes. All keys of a profile are optional; what is left out comes from
// [DefaultQoSProfile]. Unknown keys and values are a [*YAMLError] that names topic and key.
func ParseQoSOverrides(text []byte) (map[string]QoSProfile, error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		return map[string]QoSProfile{}, nil
	}
	top, err := parseYAML(text)
	if err != nil {
		return nil, err
	}
	out := map[string]QoSProfile{}
	if top.kind() == "a list" {
		items, err := top.items()
		if err != nil {
			return nil, err
		}
		for _, it := range items {
			if err := parseOverrideItem(it, out); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	topics, err := top.entries()
	if err != nil {
		return nil, err
	}
	for _, t := range topics {
		if _, dup := out[t.key]; dup {
			return nil, t.value.errorf("the topic is given twice")
		}
		if out[t.key], err = parseOverride(t.value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func parseOverrideItem(it yval, out map[string]QoSProfile) error {
	pairs, err := it.entries()
	if err != nil {
		return err
	}
	for _, p := range pairs {
		if p.key != "topic" && p.key != "qos" {
			return p.value.errorf("unknown key (there is: topic, qos)")
		}
	}
	name, err := it.textAt("topic")
	if err != nil {
		return err
	}
	if name == "" {
		return it.errorf("the key topic is missing")
	}
	qos, err := it.need("qos")
	if err != nil {
		return err
	}
	qos.path = name
	if _, dup := out[name]; dup {
		return qos.errorf("the topic is given twice")
	}
	out[name], err = parseOverride(qos)
	return err
}

func parseOverride(v yval) (QoSProfile, error) {
	q := DefaultQoSProfile()
	keys, err := v.entries()
	if err != nil {
		return q, err
	}
	given := map[string]bool{}
	for _, k := range keys {
		if given[k.key] {
			return q, k.value.errorf("the key is given twice")
		}
		given[k.key] = true
		known := false
		for _, name := range qosKeys {
			known = known || name == k.key
		}
		if !known {
			return q, k.value.errorf("unknown key (there is: %s)", joinNames(qosKeys))
		}
		if err := q.set(k.key, k.value); err != nil {
			return q, err
		}
	}
	return q, nil
}
