package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/internal/selection"
	"github.com/gobag/gobag/plugin"
)

// inputYAML is an entry of input_bags: rosbag2's StorageOptions, as far as reading goes.
type inputYAML struct {
	URI         string `yaml:"uri"`
	StorageID   string `yaml:"storage_id"`
	StorageFile string `yaml:"storage_config_uri"`
	Start       *int64 `yaml:"start_time_ns"`
	End         *int64 `yaml:"end_time_ns"`
}

// outputYAML is an entry of output_bags: rosbag2's StorageOptions and RecordOptions in one map.
type outputYAML struct {
	inputYAML `yaml:",inline"`

	MaxBagSize     uint64            `yaml:"max_bagfile_size"`
	MaxBagDuration uint64            `yaml:"max_bagfile_duration"` // s
	Preset         string            `yaml:"storage_preset_profile"`
	CustomData     map[string]string `yaml:"custom_data"`
	Compat         string            `yaml:"compat"` // ours

	All                  bool      `yaml:"all"` // up to Iron
	AllTopics            bool      `yaml:"all_topics"`
	AllServices          bool      `yaml:"all_services"`
	AllActions           bool      `yaml:"all_actions"`
	Topics               []string  `yaml:"topics"`
	TopicTypes           []string  `yaml:"topic_types"`
	Services             []string  `yaml:"services"`
	Actions              []string  `yaml:"actions"`
	Regex                string    `yaml:"regex"`
	Exclude              string    `yaml:"exclude"` // up to Iron
	ExcludeRegex         string    `yaml:"exclude_regex"`
	ExcludeTopics        []string  `yaml:"exclude_topics"`
	ExcludeTopicTypes    []string  `yaml:"exclude_topic_types"`
	ExcludeServices      []string  `yaml:"exclude_services"`
	ExcludeServiceEvents []string  `yaml:"exclude_service_events"`
	ExcludeActions       []string  `yaml:"exclude_actions"`
	CompressionMode      string    `yaml:"compression_mode"`
	CompressionFormat    string    `yaml:"compression_format"`
	CompressionThreads   int       `yaml:"compression_threads"`
	SerializationFormat  string    `yaml:"rmw_serialization_format"`
	InputSerialization   string    `yaml:"input_serialization_format"`
	OutputSerialization  string    `yaml:"output_serialization_format"`
	QoSOverrides         yaml.Node `yaml:"topic_qos_profile_overrides"`
}

var (
	inputKeys = []string{"uri", "storage_id", "storage_config_uri", "start_time_ns", "end_time_ns"}

	outputKeys = append([]string{"max_bagfile_size", "max_bagfile_duration", "storage_preset_profile", "custom_data", "compat", "all",
		"all_topics", "all_services", "all_actions", "topics", "topic_types", "services", "actions", "regex", "exclude", "exclude_regex",
		"exclude_topics", "exclude_topic_types", "exclude_services", "exclude_service_events", "exclude_actions", "compression_mode",
		"compression_format", "compression_threads", "rmw_serialization_format", "input_serialization_format",
		"output_serialization_format", "topic_qos_profile_overrides"}, inputKeys...)

	// idleKeys are keys of rosbag2's that say how to record live, or how its caches and threads work; here they do nothing.
	idleKeys = []string{"max_cache_size", "max_cache_duration", "snapshot_mode", "is_discovery_disabled", "topic_polling_interval",
		"node_prefix", "compression_queue_size", "compression_threads_priority", "include_hidden_topics", "include_unpublished_topics",
		"ignore_leaf_topics", "start_paused", "use_sim_time", "static_topics_uri", "disable_keyboard_controls", "progress_bar_update_rate",
		"progress_bar_separation_lines", "stats_max_publishing_rate", "repeat_transient_local_topics", "repeat_all_transient_local_depth"}
)

// ParseInputs reads the text of rosbag2's --input-options: input_bags, a list of storage options.
func ParseInputs(text []byte) ([]Input, error) {
	items, err := list(text, "input_bags", append(slices.Clone(idleKeys), outputKeys...), inputKeys)
	if err != nil {
		return nil, err
	}
	var out []Input
	for i := range items {
		var y inputYAML
		if err := decode(&items[i], &y); err != nil {
			return nil, fmt.Errorf("input_bags[%d]: %w", i, err)
		}
		in, err := y.input()
		if err != nil {
			return nil, fmt.Errorf("input_bags[%d]: %w", i, err)
		}
		out = append(out, in)
	}
	return out, nil
}

// ParseOutputs reads the text of rosbag2's --output-options: output_bags, a list whose entries are storage options and
// record options in one map. Relative paths are relative to the working directory, as in rosbag2.
func ParseOutputs(text []byte) ([]Output, error) {
	items, err := list(text, "output_bags", append(slices.Clone(idleKeys), outputKeys...), outputKeys)
	if err != nil {
		return nil, err
	}
	var out []Output
	for i := range items {
		var y outputYAML
		if err := decode(&items[i], &y); err != nil {
			return nil, fmt.Errorf("output_bags[%d]: %w", i, err)
		}
		o, err := y.output()
		if err != nil {
			return nil, fmt.Errorf("output_bags[%d]: %w", i, err)
		}
		out = append(out, o)
	}
	return out, nil
}

// list returns the maps below the only key of a text. Their keys are checked against accepted; known is what is named.
func list(text []byte, key string, accepted, known []string) ([]yaml.Node, error) {
	var top map[string]yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&top); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("the text is empty; it must have the key %s", key)
		}
		return nil, yamlError(err)
	}
	for k := range top {
		if k != key {
			return nil, fmt.Errorf("unknown key %q (there is: %s)", k, key)
		}
	}
	var items []yaml.Node
	n := top[key]
	if err := n.Decode(&items); err != nil || len(items) == 0 {
		return nil, fmt.Errorf("%s must be a list of maps, one for each bag", key)
	}
	for i, it := range items {
		if it.Kind == yaml.AliasNode {
			it = *it.Alias
		}
		if it.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("%s[%d] is not a map", key, i)
		}
		for k := 0; k+1 < len(it.Content); k += 2 {
			if name := it.Content[k].Value; !slices.Contains(accepted, name) && name != "<<" {
				sorted := slices.Sorted(slices.Values(known))
				return nil, fmt.Errorf("%s[%d]: line %d: unknown key %q (there is: %s)", key, i, it.Content[k].Line, name, strings.Join(sorted, ", "))
			}
		}
	}
	return items, nil
}

func decode(n *yaml.Node, to any) error {
	if err := n.Decode(to); err != nil {
		return yamlError(err)
	}
	return nil
}

// yamlError puts an error of the YAML package on one line.
func yamlError(err error) error {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n")
	return errors.New(strings.Join(strings.Fields(text), " "))
}

func (y inputYAML) input() (Input, error) {
	in := Input{Path: y.URI, Options: bag.ReaderOptions{StorageID: y.StorageID}}
	if y.URI == "" {
		return in, errors.New("the key uri is missing")
	}
	in.Range = span(y.Start, y.End)
	var err error
	in.Options.Config, err = storageConfig(y.StorageFile)
	return in, err
}

// span is a range of stamps; rosbag2 has −1, or nothing, for an open end.
func span(start, end *int64) *plugin.TimeRange {
	r := plugin.TimeRange{Start: -1 << 63, End: 1<<63 - 1}
	open := true
	if start != nil && *start >= 0 {
		r.Start, open = *start, false
	}
	if end != nil && *end >= 0 {
		r.End, open = *end, false
	}
	if open {
		return nil
	}
	return &r
}

func (y outputYAML) output() (Output, error) {
	o := Output{Dir: y.URI, Range: span(y.Start, y.End)}
	if y.URI == "" {
		return o, errors.New("the key uri is missing")
	}
	const most = 1 << 62
	if y.MaxBagSize > most || y.MaxBagDuration > most/uint64(time.Second) {
		return o, errors.New("max_bagfile_size or max_bagfile_duration is too large")
	}
	for _, f := range []string{y.SerializationFormat, y.InputSerialization, y.OutputSerialization} {
		if f != "" && f != "cdr" {
			return o, fmt.Errorf("serialization format %q: payloads are copied as they are", f)
		}
	}
	o.Writer = bag.WriterOptions{StorageID: y.StorageID, Preset: y.Preset, MaxBagSize: int64(y.MaxBagSize),
		MaxBagDuration: time.Duration(y.MaxBagDuration) * time.Second, CustomData: y.CustomData}
	if y.Compat != "auto" {
		o.Writer.Compat = plugin.Compat(y.Compat)
	}
	var err error
	if o.Writer.StorageConfig, err = storageConfig(y.StorageFile); err != nil {
		return o, err
	}
	if o.Writer.Compression, err = bag.ParseCompression(y.CompressionMode, y.CompressionFormat); err != nil {
		return o, err
	}
	o.Writer.Compression.Threads = y.CompressionThreads
	o.Filter = Filter{AllTopics: y.All || y.AllTopics, AllServices: y.All || y.AllServices, AllActions: y.All || y.AllActions,
		Topics: y.Topics, Services: y.Services, Actions: y.Actions, TopicTypes: y.TopicTypes, Regex: y.Regex,
		ExcludeTopics: y.ExcludeTopics, ExcludeTopicTypes: y.ExcludeTopicTypes, ExcludeActions: y.ExcludeActions,
		ExcludeServices: append(y.ExcludeServices, y.ExcludeServiceEvents...), ExcludeRegex: y.ExcludeRegex}
	if y.Exclude != "" {
		if y.ExcludeRegex != "" {
			return o, errors.New("exclude is the old name of exclude_regex; both are given")
		}
		o.Filter.ExcludeRegex = y.Exclude
	}
	if !o.Filter.chooses() {
		return o, errors.New("nothing is chosen: all_topics, all_services, all_actions, topics, topic_types, services, actions or regex is needed")
	}
	if !y.QoSOverrides.IsZero() {
		text, err := yaml.Marshal(&y.QoSOverrides)
		if err != nil {
			return o, yamlError(err)
		}
		q, err := bag.ParseQoSOverrides(text)
		if err != nil {
			return o, fmt.Errorf("topic_qos_profile_overrides: %w", err)
		}
		o.QoSOverrides = map[string]bag.QoSProfile{}
		for name, p := range q {
			o.QoSOverrides[selection.Absolute(name)] = p
		}
	}
	return o, nil
}

// storageConfig reads the file behind storage_config_uri; "" is none.
func storageConfig(path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(strings.TrimPrefix(path, "file://"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var m map[string]any
	if err := yaml.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&m); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, yamlError(err))
	}
	return m, nil
}
