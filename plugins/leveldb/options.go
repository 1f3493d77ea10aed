package leveldb

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// preset is what the presets differ in.
type preset struct {
	name, help string
	journal    journaling
	snappy     bool
	writeBuf   int
	block      int
}

// journaling says what goes through the journal before it is in a table.
type journaling int

const (
	journalSyncs  journaling = iota // what no table has when Sync is called
	journalLittle                   // the same where it is little; otherwise Sync makes a table of it
	journalWrites                   // everything, and Sync does not wait for the disk
)

const (
	defaultBuffer = 5 << 20 // of two write buffers
	defaultBlock  = 8 << 10 // a message of 10 KB is a block of its own
)

var presets = []preset{
	{plugin.PresetResilient, "SIGKILL or a power cut lose at most what came after the last sync", journalSyncs, false, defaultBuffer, defaultBlock},
	{plugin.PresetFast, "no journal of more than 1 MiB: SIGKILL and a power cut lose at most what came after the last sync, SIGKILL at most three write buffers (15 MiB)", journalLittle, false, defaultBuffer, defaultBlock},
	{plugin.PresetSmall, "snappy compression, otherwise as resilient", journalSyncs, true, defaultBuffer, defaultBlock},
	{plugin.PresetNone, "the settings of the C++ LevelDB (snappy, 4 MiB buffer, 4 KiB blocks, no sync of the journal): SIGKILL loses at most 256 KiB or what came after the last sync, a power cut what the system had not written", journalWrites, true, 4 << 20, 4 << 10},
}

func lookupPreset(name string) (preset, error) {
	if name == "" {
		name = plugin.PresetResilient
	}
	var known []string
	for _, p := range presets {
		if p.name == name {
			return p, nil
		}
		known = append(known, p.name)
	}
	return preset{}, fmt.Errorf("unknown preset %q (there is: %s)", name, strings.Join(known, ", "))
}

// settings are a preset with the storage configuration applied.
type settings struct {
	preset
	syncTables   bool // tables are synced before they count
	maxFileSize  int
	maxOpenFiles int // tables that a reader keeps open
}

// number is one entry of open_options and the range it may have.
type number struct {
	min, max int
	set      func(*settings, int)
}

var openOptions = map[string]number{
	"write_buffer_size": {64 << 10, 1 << 30, func(s *settings, n int) { s.writeBuf = n }},
	"max_open_files":    {16, 50_000, func(s *settings, n int) { s.maxOpenFiles = n }},
	"block_size":        {1 << 10, 4 << 20, func(s *settings, n int) { s.block = n }},
	"max_file_size":     {1 << 20, 1 << 30, func(s *settings, n int) { s.maxFileSize = n }},
}

var configKeys = []string{"compression", "open_options", "sync_tables"}

// parseConfig applies the write or read part of a storage configuration file to a preset. The keys of open_options are
// those of the C++ plugin:
//
//	open_options: {write_buffer_size: 8388608, max_open_files: 1000, block_size: 65536, max_file_size: 2097152}
//	compression: snappy
//	sync_tables: false
func parseConfig(p preset, config map[string]any) (settings, error) {
	s := settings{preset: p, syncTables: true, maxFileSize: 1 << 30, maxOpenFiles: 256}
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(config)) {
		var err error
		switch k {
		case "compression":
			switch config[k] {
			case "none":
				s.snappy = false
			case "snappy":
				s.snappy = true
			default:
				err = fmt.Errorf("want none or snappy, got %v", config[k])
			}
		case "open_options":
			err = s.applyOpenOptions(config[k])
		case "sync_tables":
			v, ok := config[k].(bool)
			if !ok {
				err = fmt.Errorf("want true or false, got %v", config[k])
			}
			s.syncTables = v
		default:
			errs = append(errs, fmt.Errorf("unknown storage configuration key %q (there is: %s)", k, strings.Join(configKeys, ", ")))
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("storage configuration key %s: %w", k, err))
		}
	}
	return s, errors.Join(errs...)
}

func (s *settings) applyOpenOptions(v any) error {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("want a map, got %v", v)
	}
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(m)) {
		o, known := openOptions[k]
		if !known {
			errs = append(errs, fmt.Errorf("unknown key %q (there is: %s)", k, strings.Join(slices.Sorted(maps.Keys(openOptions)), ", ")))
			continue
		}
		n, ok := wholeNumber(m[k])
		if !ok || n < int64(o.min) || n > int64(o.max) {
			errs = append(errs, fmt.Errorf("%s: want a number from %d to %d, got %v", k, o.min, o.max, m[k]))
			continue
		}
		o.set(s, int(n))
	}
	return errors.Join(errs...)
}

// wholeNumber takes the types that decoders of YAML and JSON give.
func wholeNumber(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	case uint64:
		return int64(min(n, math.MaxInt64)), true
	case float64:
		return int64(n), n == math.Trunc(n) && math.Abs(n) < 1<<53
	}
	return 0, false
}
