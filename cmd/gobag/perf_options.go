package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/perf"
)

// options turns the flags into the measurement's.
func (f *perfFlags) options() (o perf.RecordOptions, err error) {
	o = perf.RecordOptions{Storages: f.storages, Presets: f.presets, ConfigFiles: f.configFiles, Duration: time.Duration(f.duration), Repeat: f.repeat,
		NoTransport: f.noTransport, Seed: f.seed, Dir: f.output, Keep: f.output != "", Domain: f.domain, Version: versionString()}
	var errs []error
	add := func(err error) { errs = append(errs, err) }
	o.Caches, err = parseByteList("cache", f.caches)
	add(err)
	o.MaxBagSizes, err = parseByteList("max-bag-size", f.bagSizes)
	add(err)
	for _, c := range f.compressions {
		if c == "none" {
			c = ""
		}
		o.Compressions = append(o.Compressions, c)
	}
	add(f.loads(&o))
	o.Publisher, err = perf.PeerNames(f.publisher, f.peers)
	add(err)
	add(f.emulate(&o))
	if f.quick {
		if !f.given("duration") {
			o.Duration = 2 * time.Second
		}
		if !f.given("repeat") {
			o.Repeat = 1
		}
	}
	if err := errors.Join(errs...); err != nil {
		return o, usageError("perf record: %w", err)
	}
	return o, nil
}

// loads says what is published.
func (f *perfFlags) loads(o *perf.RecordOptions) error {
	if len(f.scenarios) == 0 {
		like := perf.Group{Reliability: f.reliability, Depth: f.depth, Compressible: f.compressible}
		instances, frequencies, sizes := []int{1}, []float64{100}, []int{1000}
		var errs []error
		if len(f.instances) > 0 {
			instances = nil
		}
		for _, s := range f.instances {
			n, err := strconv.Atoi(s)
			if err != nil {
				errs = append(errs, fmt.Errorf("--instances %q: not a number", s))
			}
			instances = append(instances, n)
		}
		if len(f.frequencies) > 0 {
			frequencies = nil
		}
		for _, s := range f.frequencies {
			hz, err := strconv.ParseFloat(s, 64)
			if err != nil {
				errs = append(errs, fmt.Errorf("--frequency %q: not a number", s))
			}
			frequencies = append(frequencies, hz)
		}
		if len(f.sizes) > 0 {
			var err error
			sizes, err = parseSizes(f.sizes)
			errs = append(errs, err)
		}
		o.Loads = perf.Matrix(instances, frequencies, sizes, like)
		return errors.Join(errs...)
	}
	if len(f.instances)+len(f.frequencies)+len(f.sizes) > 0 {
		return errors.New("--scenario says what is published: --instances, --frequency and --size do not go with it")
	}
	o.Scenario = strings.Join(f.scenarios, ", ")
	for _, name := range f.scenarios {
		s, err := findScenario(name)
		if err != nil {
			return err
		}
		f.scenario(o, s)
	}
	if len(o.Loads) == 0 {
		return errors.New("--scenario: no load in it; a benchmark of rosbag2 needs the file of its producers too")
	}
	if f.given("compressible") {
		for i := range o.Loads {
			o.Loads[i].Groups = slices.Clone(o.Loads[i].Groups)
			for j := range o.Loads[i].Groups {
				o.Loads[i].Groups[j].Compressible = f.compressible
			}
			o.Loads[i].Name += fmt.Sprintf(", %g %% compressible", 100*f.compressible)
		}
	}
	return nil
}

// findScenario is a built-in one or a file.
func findScenario(name string) (perf.Scenario, error) {
	if strings.ContainsAny(name, "./\\") {
		return perf.ReadScenario(name)
	}
	return perf.FindScenario(name)
}

// scenario adds a scenario; flags win over what its file says.
func (f *perfFlags) scenario(o *perf.RecordOptions, s perf.Scenario) {
	o.Loads = append(o.Loads, s.Loads...)
	o.Notes = append(o.Notes, s.Notes...)
	o.NoTransport = o.NoTransport || s.NoTransport
	if s.Duration > 0 && !f.given("duration") {
		o.Duration = s.Duration
	}
	if s.Repeat > 0 && !f.given("repeat") {
		o.Repeat = s.Repeat
	}
	take := func(to *[]string, from []string) {
		if len(*to) == 0 {
			*to = from
		}
	}
	take(&o.Storages, s.Storages)
	take(&o.Presets, s.Presets)
	take(&o.Compressions, s.Compressions)
	take(&o.ConfigFiles, s.ConfigFiles)
	if len(o.Caches) == 0 {
		o.Caches = s.Caches
	}
	if len(o.MaxBagSizes) == 0 {
		o.MaxBagSizes = s.MaxBagSizes
	}
}

// emulate chooses the device.
func (f *perfFlags) emulate(o *perf.RecordOptions) (err error) {
	if o.Device, err = perf.FindDevice(f.device); err != nil {
		return err
	}
	if o.Device.Name == "" {
		if f.given("device-cpu") || f.given("device-rate") || f.given("stalls") {
			return errors.New("--device-cpu, --device-rate and --stalls need a --device")
		}
		return nil
	}
	o.Device.CPU = f.deviceCPU
	if f.given("device-rate") {
		o.Device.Disk.Rate = int64(f.deviceRate)
	}
	o.Device.Disk.Stalls = f.stalls
	return nil
}

func parseByteList(flag string, words []string) (list []int64, err error) {
	for _, s := range words {
		n, err := parseBytes(s)
		if err != nil {
			return nil, fmt.Errorf("--%s %q: not a number of bytes", flag, s)
		}
		list = append(list, n)
	}
	return list, nil
}
