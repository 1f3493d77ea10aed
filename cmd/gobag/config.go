package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// A file of settings has a section for each verb, and in it a key for each flag, under the flag's long name:
//
//	record:
//	  all: true
//	  exclude-topics: [/camera/image_raw]
//	  max-bag-size: 1GB
//
// Flags on the command line win. An unknown verb or key, and a value that the flag would refuse, is an error.

// configFlag is the name of the flag.
const configFlag = "config"

// configured are the verbs that take a file of settings.
var configured = []string{"record", "play", "burst", "convert", "filter", "merge", "cut", "info", "check", "offload"}

// addConfig gives the verbs their --config, which is read before the verb runs.
func addConfig(root *cobra.Command) {
	for _, verb := range configured {
		cmd := child(root, verb)
		if cmd == nil {
			continue
		}
		var path string
		cmd.Flags().StringVar(&path, configFlag, "", "YAML `FILE` with settings: a section for the verb, in it a key for each flag; see \"gobag config --help\"")
		cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
			if path == "" {
				return nil
			}
			file, err := readSettings(path)
			if err != nil {
				return err
			}
			return file.apply(cmd)
		}
	}
}

// settings is a file that was read and checked.
type settings struct {
	path  string
	verbs map[string][]setting
}

// setting is one key with its values: several for a list.
type setting struct {
	key    string
	values []string
	line   int
}

// readSettings reads a file and checks its verbs and keys against the program's, and its values by setting them in a
// program that does nothing.
func readSettings(path string) (*settings, error) {
	text, err := readConfig(path)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	f, err := parseSettings(path, text)
	if err != nil {
		return nil, fmt.Errorf("--config %s: %w", path, err)
	}
	probe := newRoot(newApp(bytes.NewReader(nil), io.Discard, io.Discard, func(string) string { return "" }))
	var errs []error
	for verb := range f.verbs {
		if !slices.Contains(configured, verb) {
			errs = append(errs, fmt.Errorf("%s: no verb that takes settings (there is: %s)", verb, strings.Join(configured, ", ")))
			continue
		}
		if cmd := child(probe, verb); cmd != nil {
			errs = append(errs, f.apply(cmd))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, usageError("%s: %s", path, inOneLine(err.Error()))
	}
	return f, nil
}

func parseSettings(path string, text []byte) (*settings, error) {
	f := &settings{path: path, verbs: map[string][]setting{}}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return f, nil
	} else if err != nil {
		return nil, err
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one YAML document")
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: want sections by verb, as in \"record:\"", top.Line)
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		verb, section := top.Content[i], top.Content[i+1]
		if _, twice := f.verbs[verb.Value]; twice {
			return nil, fmt.Errorf("line %d: %s is there twice", verb.Line, verb.Value)
		}
		f.verbs[verb.Value] = nil
		if section.Kind == yaml.ScalarNode && section.Tag == "!!null" {
			continue
		}
		if section.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("line %d: %s: want keys by flag, as in \"max-bag-size: 1GB\"", section.Line, verb.Value)
		}
		seen := map[string]bool{}
		for j := 0; j+1 < len(section.Content); j += 2 {
			key, value := section.Content[j], section.Content[j+1]
			if seen[key.Value] {
				return nil, fmt.Errorf("line %d: %s.%s is there twice", key.Line, verb.Value, key.Value)
			}
			seen[key.Value] = true
			values, err := settingValues(value)
			if err != nil {
				return nil, fmt.Errorf("line %d: %s.%s: %w", value.Line, verb.Value, key.Value, err)
			}
			f.verbs[verb.Value] = append(f.verbs[verb.Value], setting{key.Value, values, key.Line})
		}
	}
	return f, nil
}

// settingValues are the words of a value: one, those of a list, or KEY=VALUE of a map.
func settingValues(n *yaml.Node) ([]string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return nil, errors.New("there is no value")
		}
		return []string{n.Value}, nil
	case yaml.SequenceNode:
		var out []string
		for _, e := range n.Content {
			if e.Kind != yaml.ScalarNode {
				return nil, errors.New("a list of words is wanted")
			}
			out = append(out, e.Value)
		}
		return out, nil
	case yaml.MappingNode:
		var out []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i+1].Kind != yaml.ScalarNode {
				return nil, errors.New("a map of words is wanted")
			}
			out = append(out, n.Content[i].Value+"="+n.Content[i+1].Value)
		}
		return out, nil
	}
	return nil, errors.New("a word, a list or a map is wanted")
}

// apply sets what the file says for a verb, but for flags that are given already.
func (f *settings) apply(cmd *cobra.Command) error {
	var errs []error
	fs := cmd.Flags()
	for _, s := range f.verbs[cmd.Name()] {
		flag := fs.Lookup(s.key)
		if flag == nil || s.key == configFlag || s.key == "help" {
			errs = append(errs, fmt.Errorf("line %d: %s has no key %q%s", s.line, cmd.Name(), s.key, nearestKey(fs, s.key)))
			continue
		}
		if flag.Changed {
			continue
		}
		if len(s.values) != 1 && !isList(flag) {
			errs = append(errs, fmt.Errorf("line %d: %s.%s takes one value, %d are given", s.line, cmd.Name(), s.key, len(s.values)))
			continue
		}
		for _, v := range s.values {
			if err := fs.Set(s.key, v); err != nil {
				errs = append(errs, fmt.Errorf("line %d: %s.%s: %w", s.line, cmd.Name(), s.key, err))
				break
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return usageError("%s: %s", f.path, inOneLine(err.Error()))
	}
	return nil
}

// nearestKey names keys that begin alike.
func nearestKey(fs *pflag.FlagSet, key string) string {
	var near []string
	fs.VisitAll(func(f *pflag.Flag) {
		if len(key) >= 3 && (strings.HasPrefix(f.Name, key[:3]) || strings.Contains(f.Name, key)) && !f.Hidden {
			near = append(near, f.Name)
		}
	})
	if len(near) == 0 || len(near) > 8 {
		return ""
	}
	return " (there is: " + strings.Join(near, ", ") + ")"
}

func newConfig(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config check FILE",
		Short: "Check a file of settings for --config",
		Long: `A file of settings has a section for each verb and in it a key for each flag, under the flag's long name. A list is a YAML
list, KEY=VALUE flags may be a map. Flags on the command line win over the file. Every key and value is checked: what a flag
would refuse, the file is refused for.

  record:
    all: true
    exclude-topics: [/camera/image_raw, /debug]
    max-bag-size: 1GB
    custom-data: {robot: r2, site: north}`,
		Example: `  gobag config check gobag.yaml
  gobag record --config gobag.yaml -o run1`,
		Args: args(cobra.ExactArgs(2), "want: config check FILE"),
		RunE: func(_ *cobra.Command, words []string) error {
			if words[0] != "check" {
				return usageError("config %s: there is only: check", words[0])
			}
			f, err := readSettings(words[1])
			if err != nil {
				return err
			}
			n := 0
			for _, s := range f.verbs {
				n += len(s)
			}
			_, err = fmt.Fprintf(a.out, "%s: %s for %s, nothing is wrong\n", printable(words[1]), plural(uint64(n), "setting"), plural(uint64(len(f.verbs)), "verb"))
			return err
		},
	}
	return cmd
}
