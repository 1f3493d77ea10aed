package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/convert"
	"github.com/gobag/gobag/plugin"
)

// options turns the flags into those of package convert.
func (f *convertFlags) options(a *app) (convert.Options, error) {
	var o convert.Options
	var err error
	switch {
	case f.output == "":
		return o, usageError("%s: -o is needed: the directory to create, or a .yaml file that describes the bags to make", f.verb)
	case f.inputOptions != "" && len(f.inputs) > 0:
		return o, usageError("%s: input bags and --input-options: one of them", f.verb)
	case f.inputOptions != "":
		text, err := readConfig(f.inputOptions)
		if err != nil {
			return o, err
		}
		if o.Inputs, err = convert.ParseInputs(text); err != nil {
			return o, fmt.Errorf("%s: %w", f.inputOptions, err)
		}
	case len(f.inputs) == 0:
		return o, usageError("%s: name a bag to read", f.verb)
	default:
		if o.Inputs, err = inputsOf(f.inputs); err != nil {
			return o, err
		}
	}
	if isYAML(f.output) {
		if given := f.describesOutput(); given != "" {
			return o, usageError("%s: --%s and %s: the file says how the bags are made", f.verb, given, f.output)
		}
		text, err := readConfig(f.output)
		if err != nil {
			return o, err
		}
		if o.Outputs, err = convert.ParseOutputs(text); err != nil {
			return o, fmt.Errorf("%s: %w", f.output, err)
		}
		return o, nil
	}
	out, err := f.outputBag(a.ctx, o.Inputs)
	o.Outputs = []convert.Output{out}
	return o, err
}

func isYAML(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".yaml", ".yml":
		return true
	}
	return false
}

// inputsOf reads the words of -i: bags, each with a storage format behind it or none.
func inputsOf(words []string) ([]convert.Input, error) {
	var out []convert.Input
	for i, w := range words {
		if i > 0 && !exists(w) && out[len(out)-1].Options.StorageID == "" {
			if _, err := plugin.Lookup(w); err == nil {
				out[len(out)-1].Options.StorageID = w
				continue
			}
		}
		if !exists(w) {
			return nil, fmt.Errorf("bag path %q does not exist", w)
		}
		out = append(out, convert.Input{Path: w})
	}
	return out, nil
}

// describesOutput returns the first flag given that says how a bag is made.
func (f *convertFlags) describesOutput() string {
	x := f.filter
	for _, g := range []struct {
		flag  string
		given bool
	}{
		{"storage", f.storage != ""}, {"storage-preset-profile", f.preset != ""}, {"storage-config-file", f.configFile != ""},
		{"compat", f.compat != "auto" && f.compat != ""}, {"topics", len(x.Topics) > 0}, {"services", len(x.Services) > 0},
		{"actions", len(x.Actions) > 0}, {"topic-types", len(x.TopicTypes) > 0}, {"all-topics", x.AllTopics},
		{"all-services", x.AllServices}, {"all-actions", x.AllActions}, {"regex", x.Regex != ""}, {"exclude-regex", x.ExcludeRegex != ""},
		{"exclude-topics", len(x.ExcludeTopics) > 0}, {"exclude-services", len(x.ExcludeServices) > 0},
		{"exclude-actions", len(x.ExcludeActions) > 0}, {"exclude-topic-types", len(x.ExcludeTopicTypes) > 0},
		{"start", f.start != ""}, {"end", f.end != ""}, {"max-bag-size", f.maxBagSize != 0}, {"max-bag-duration", f.maxBagDuration != 0},
		{"compression-mode", f.compression.mode != "none" && f.compression.mode != ""}, {"compression-format", f.compression.format != ""},
		{"custom-data", len(f.customData) > 0}, {"qos-profile-overrides-path", f.qosFile != ""},
	} {
		if g.given {
			return g.flag
		}
	}
	return ""
}

// outputBag is the one bag that plain flags describe.
func (f *convertFlags) outputBag(ctx context.Context, inputs []convert.Input) (convert.Output, error) {
	out := convert.Output{Dir: f.output, Filter: f.filter}
	out.Writer = bag.WriterOptions{StorageID: f.storage, Preset: f.preset, MaxBagSize: int64(f.maxBagSize),
		MaxBagDuration: time.Duration(f.maxBagDuration), CustomData: parsePairs(f.customData)}
	switch f.compat {
	case "auto", "":
	case string(plugin.CompatHumble), string(plugin.CompatJazzy):
		out.Writer.Compat = plugin.Compat(f.compat)
	default:
		return out, usageError("%s: --compat %q: not one of auto, humble, jazzy", f.verb, f.compat)
	}
	var err error
	if out.Writer.Compression, err = f.compression.options(f.verb); err != nil {
		return out, err
	}
	if out.Writer.StorageConfig, err = readYAML(f.configFile); err != nil {
		return out, fmt.Errorf("--storage-config-file: %w", err)
	}
	if f.qosFile != "" {
		text, err := readConfig(f.qosFile)
		if err != nil {
			return out, fmt.Errorf("--qos-profile-overrides-path: %w", err)
		}
		profiles, err := bag.ParseQoSOverrides(text)
		if err != nil {
			return out, fmt.Errorf("--qos-profile-overrides-path: %s: %w", f.qosFile, err)
		}
		out.QoSOverrides = map[string]bag.QoSProfile{}
		for topic, q := range profiles {
			out.QoSOverrides["/"+strings.TrimPrefix(topic, "/")] = q
		}
	}
	if err := out.Writer.Validate(); err != nil {
		return out, usageError("%s: %w", f.verb, err)
	}
	if f.start != "" || f.end != "" {
		out.Range, err = f.span(ctx, inputs)
	}
	return out, err
}

// span reads --start and --end.
func (f *convertFlags) span(ctx context.Context, inputs []convert.Input) (*plugin.TimeRange, error) {
	r := &plugin.TimeRange{Start: math.MinInt64, End: math.MaxInt64}
	base := func() (int64, error) {
		start := int64(plugin.NoStart)
		for _, in := range inputs {
			b, err := openBag(ctx, in.Path, in.Options)
			if err != nil {
				return 0, err
			}
			start = min(start, b.Info().Start)
			if err := b.Close(); err != nil {
				return 0, err
			}
		}
		return start, nil
	}
	for _, x := range []struct {
		flag, text string
		to         *int64
	}{{"start", f.start, &r.Start}, {"end", f.end, &r.End}} {
		if x.text == "" {
			continue
		}
		v, err := parseStamp(x.text, base)
		if err != nil {
			return nil, usageError("%s: --%s: %w", f.verb, x.flag, err)
		}
		*x.to = v
	}
	if r.Start > r.End {
		return nil, usageError("%s: --start lies behind --end", f.verb)
	}
	return r, nil
}

// parseStamp reads a point in time: a span behind base ("+30"), RFC 3339, seconds since 1970, or nanoseconds where there
// are 16 digits and more.
func parseStamp(s string, base func() (int64, error)) (int64, error) {
	if rest, ok := strings.CutPrefix(s, "+"); ok {
		d, err := parseSpan(rest, time.Second)
		if err != nil {
			return 0, err
		}
		start, err := base()
		if err != nil || start > math.MaxInt64-int64(d) {
			return start, err
		}
		return start + int64(d), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t.UnixNano(), nil
	}
	bad := fmt.Errorf("%q is not a time (seconds since 1970, nanoseconds, \"2026-03-01T10:00:00Z\", or \"+30\" for 30 s after the start)", s)
	whole, frac, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0, bad
	}
	if len(strings.TrimPrefix(whole, "-")) >= 16 && frac == "" {
		return n, nil
	}
	if len(frac) > 9 || n >= math.MaxInt64/1_000_000_000 || n <= math.MinInt64/1_000_000_000 || n < 0 && frac != "" {
		return 0, bad
	}
	ns, err := strconv.ParseUint((frac + "000000000")[:9], 10, 32)
	if err != nil {
		return 0, bad
	}
	return n*1_000_000_000 + int64(ns), nil
}
