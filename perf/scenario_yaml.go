package perf

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// maxScenarioFile bounds what is read of a scenario's file.
const maxScenarioFile = 1 << 20

// ReadScenario reads a scenario from a YAML file of one of three forms: ours, rosbag2's producers
// (rosbag2_performance_benchmarking_node) or rosbag2's benchmark (rosbag2_performance_benchmarking), which has no loads.
//
//	name: my robot
//	duration: 30            # seconds
//	repeat: 3
//	storages: [mcap, sqlite3]
//	presets: [resilient]
//	caches: [10MB, 100MB]
//	loads:
//	  - name: drive
//	    groups:
//	      - {name: scan, instances: 2, frequency: 10, size: 60kB, depth: 20}
//	      - {name: camera, instances: 1, frequency: 30, size: 1MB, reliability: best_effort, compressible: 0.5}
func ReadScenario(path string) (Scenario, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Scenario{}, err
	}
	if info.Size() > maxScenarioFile {
		return Scenario{}, fmt.Errorf("read scenario %s: %d bytes: more than a scenario has (%d)", path, info.Size(), maxScenarioFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Scenario{}, err
	}
	s, err := ParseScenario(text)
	if err != nil {
		return Scenario{}, fmt.Errorf("read scenario %s: %w", path, err)
	}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	for i := range s.Loads {
		if s.Loads[i].Name == "" {
			s.Loads[i].Name = s.Name
		}
	}
	return s, nil
}

// ParseScenario reads the text of a scenario's file; see ReadScenario.
func ParseScenario(text []byte) (Scenario, error) {
	var top map[string]yaml.Node
	if err := yaml.Unmarshal(text, &top); err != nil {
		return Scenario{}, err
	}
	if n, ok := top["rosbag2_performance_benchmarking_node"]; ok {
		return rosbag2Producers(&n)
	}
	if n, ok := top["rosbag2_performance_benchmarking"]; ok {
		return rosbag2Benchmark(&n)
	}
	return ownScenario(text)
}

// scenarioFile is our own form.
type scenarioFile struct {
	Name         string       `yaml:"name"`
	About        string       `yaml:"about"`
	Duration     float64      `yaml:"duration"`
	Repeat       int          `yaml:"repeat"`
	NoTransport  bool         `yaml:"no-transport"`
	Storages     []string     `yaml:"storages"`
	Presets      []string     `yaml:"presets"`
	Caches       []yamlBytes  `yaml:"caches"`
	MaxBagSizes  []yamlBytes  `yaml:"max-bag-sizes"`
	Compressions []string     `yaml:"compressions"`
	ConfigFiles  []string     `yaml:"storage-config-files"`
	Loads        []scenarioIn `yaml:"loads"`
}

type scenarioIn struct {
	Name   string    `yaml:"name"`
	Groups []groupIn `yaml:"groups"`
}

type groupIn struct {
	Name         string    `yaml:"name"`
	Instances    int       `yaml:"instances"`
	Frequency    float64   `yaml:"frequency"`
	Size         yamlBytes `yaml:"size"`
	Count        int       `yaml:"count"`
	Reliability  string    `yaml:"reliability"`
	Durability   string    `yaml:"durability"`
	Depth        int       `yaml:"depth"`
	Compressible float64   `yaml:"compressible"`
}

// yamlBytes is a number of bytes, with or without a unit: 1000, 100kB, 1MiB.
type yamlBytes int64

var bytesForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) *([kKMG]?)(i?)B?$`)

// UnmarshalYAML reads a number of bytes.
func (b *yamlBytes) UnmarshalYAML(n *yaml.Node) error {
	m := bytesForm.FindStringSubmatch(n.Value)
	if m == nil || n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: %q: not a number of bytes, as in 1000, 100kB or 1MiB", n.Line, n.Value)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return fmt.Errorf("line %d: %q: %w", n.Line, n.Value, err)
	}
	base := 1000.0
	if m[3] != "" {
		base = 1024
	}
	v *= math.Pow(base, float64(strings.Index(" kMG", strings.ReplaceAll(m[2], "K", "k"))))
	if v > 1<<40 {
		return fmt.Errorf("line %d: %q: too large", n.Line, n.Value)
	}
	*b = yamlBytes(v)
	return nil
}

func ownScenario(text []byte) (Scenario, error) {
	var f scenarioFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return Scenario{}, err
	}
	if !(f.Duration >= 0 && f.Duration < 1e6) {
		return Scenario{}, fmt.Errorf("duration %g: not in 0..1000000 seconds", f.Duration)
	}
	s := Scenario{Name: f.Name, About: f.About, Duration: time.Duration(f.Duration * float64(time.Second)), Repeat: f.Repeat, NoTransport: f.NoTransport,
		Storages: f.Storages, Presets: f.Presets, Compressions: f.Compressions, ConfigFiles: f.ConfigFiles}
	for _, c := range f.Caches {
		s.Caches = append(s.Caches, int64(c))
	}
	for _, m := range f.MaxBagSizes {
		s.MaxBagSizes = append(s.MaxBagSizes, int64(m))
	}
	for i, l := range f.Loads {
		named := NamedGroups{Name: l.Name}
		if named.Name == "" && len(f.Loads) > 1 {
			named.Name = fmt.Sprintf("load %d", i+1)
		}
		for _, g := range l.Groups {
			named.Groups = append(named.Groups, Group{Name: g.Name, Instances: max(1, g.Instances), Frequency: g.Frequency, Size: int(g.Size), Count: g.Count,
				Reliability: g.Reliability, Durability: g.Durability, Depth: g.Depth, Compressible: g.Compressible})
		}
		s.Loads = append(s.Loads, named)
	}
	if len(s.Loads) == 0 {
		return Scenario{}, errors.New("no loads: it needs loads: [{groups: [{name, frequency, size}]}], or is not a scenario")
	}
	return s, nil
}

// rosbag2Producers reads the producers of rosbag2_performance_benchmarking.
func rosbag2Producers(n *yaml.Node) (s Scenario, err error) {
	var file struct {
		Parameters struct {
			Publishers map[string]yaml.Node `yaml:"publishers"`
		} `yaml:"ros__parameters"`
	}
	if err := n.Decode(&file); err != nil {
		return s, err
	}
	names := file.Parameters.Publishers["publisher_groups"]
	var groups []string
	if err := names.Decode(&groups); err != nil {
		return s, fmt.Errorf("publisher_groups: %w", err)
	}
	if len(groups) == 0 {
		return s, errors.New("publisher_groups: names no group")
	}
	var load NamedGroups
	for _, name := range groups {
		node, ok := file.Parameters.Publishers[name]
		if !ok {
			return s, fmt.Errorf("publisher_groups names %q, which is not there", name)
		}
		var p struct {
			Count   int     `yaml:"publishers_count"`
			Root    string  `yaml:"topic_root"`
			Size    int     `yaml:"msg_size_bytes"`
			Type    string  `yaml:"msg_type"`
			Each    int     `yaml:"msg_count_each"`
			RateHz  float64 `yaml:"rate_hz"`
			Profile struct {
				Depth       int    `yaml:"qos_depth"`
				Reliability string `yaml:"qos_reliability"`
				Durability  string `yaml:"qos_durability"`
			} `yaml:"qos"`
		}
		if err := node.Decode(&p); err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
		if p.Type != "" && p.Type != loadType {
			s.Notes = append(s.Notes, fmt.Sprintf("%s: its type %s is published as %s of the same size", name, p.Type, loadType))
		}
		g := Group{Name: topicWord(p.Root, name), Instances: p.Count, Frequency: p.RateHz, Size: p.Size, Count: p.Each,
			Reliability: p.Profile.Reliability, Durability: p.Profile.Durability, Depth: p.Profile.Depth}
		if g.Depth == 0 {
			g.Depth = 10 // ROS 2's default
		}
		if g.Size < loadStamp {
			s.Notes = append(s.Notes, fmt.Sprintf("%s: messages of %d bytes are %d long here, to carry their number and time", name, g.Size, loadStamp))
			g.Size = loadStamp
		}
		load.Groups = append(load.Groups, g)
	}
	s.Loads = []NamedGroups{load}
	return s, nil
}

var notTopicWord = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// topicWord is a name of a group that topics can have.
func topicWord(root, name string) string {
	word := strings.Trim(notTopicWord.ReplaceAllString(root, "_"), "_")
	if word == "" {
		word = notTopicWord.ReplaceAllString(name, "_")
	}
	if word == "" || word[len(word)-1] >= '0' && word[len(word)-1] <= '9' {
		word += "_n"
	}
	return word
}

// rosbag2Benchmark reads the settings of a benchmark of rosbag2_performance_benchmarking.
func rosbag2Benchmark(n *yaml.Node) (s Scenario, err error) {
	var file struct {
		Node struct {
			Parameters struct {
				Benchmark struct {
					Repeat      int    `yaml:"repeat_each"`
					NoTransport bool   `yaml:"no_transport"`
					Producers   string `yaml:"producers_cpu_affinity"`
					Recorder    string `yaml:"recorder_cpu_affinity"`
					Parameters  struct {
						Storages     []string `yaml:"storage_id"`
						Caches       []int64  `yaml:"max_cache_size"`
						BagSizes     []int64  `yaml:"max_bag_size"`
						Compressions []string `yaml:"compression"`
						Queues       []int    `yaml:"compression_queue_size"`
						Threads      []int    `yaml:"compression_threads"`
						Configs      []string `yaml:"storage_config_file"`
					} `yaml:"parameters"`
				} `yaml:"benchmark"`
			} `yaml:"ros__parameters"`
		} `yaml:"benchmark_node"`
	}
	if err := n.Decode(&file); err != nil {
		return s, err
	}
	b := file.Node.Parameters.Benchmark
	p := b.Parameters
	if slices.Min(append(slices.Clone(p.Caches), 0)) < 0 || slices.Min(append(slices.Clone(p.BagSizes), 0)) < 0 {
		return s, errors.New("max_cache_size and max_bag_size must not be negative")
	}
	s = Scenario{Repeat: b.Repeat, NoTransport: b.NoTransport, Storages: p.Storages, Caches: p.Caches, MaxBagSizes: p.BagSizes,
		Compressions: p.Compressions, ConfigFiles: p.Configs}
	if b.Producers != "" || b.Recorder != "" {
		s.Notes = append(s.Notes, "the CPU affinities of the file are not applied: taskset does that for all of gobag perf")
	}
	for _, q := range p.Queues {
		if q > 1 {
			s.Notes = append(s.Notes, "compression_queue_size has no effect: gobag's own default is used")
			break
		}
	}
	if slices.ContainsFunc(p.Threads, func(n int) bool { return n > 0 }) {
		s.Notes = append(s.Notes, "compression_threads has no effect: gobag's own default is used")
	}
	return s, nil
}
