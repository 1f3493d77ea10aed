package columnar

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/gobag/gobag/plugin"
)

// Bounds on memory. Together they are Features.Buffers.
const (
	maxInFlight = 2 << 20  // memory of blocks of the log that are written and not yet taken apart
	maxPending  = 8 << 20  // payload bytes in columns that are not yet compressed
	maxEncoded  = 16 << 20 // compressed pages of parts that are not yet written
)

const (
	maxMessage = 1 << 30

	blockSize   = 256 << 10 // of the log
	segmentSize = 32 << 20  // of a file of the log
	maxLog      = 128 << 20 // of all its files, before the oldest is cleared

	partSize    = 8 << 20  // compressed
	partPayload = 64 << 20 // and what it stands for
	minPart     = 64 << 10 // payload bytes for which a part is worth while
	agedPart    = 1 << 20  // the same after partAge
	partAge     = 10 * time.Second

	groupRows  = 16 << 10 // of a page group
	groupBytes = 4 << 20
	blobBytes  = 1 << 20 // of one of large messages

	smallTopics = 48 // small topics that get parts of their own at closing
)

// settings are what presets and configuration decide.
type settings struct {
	level     zstd.EncoderLevel
	store     bool          // long byte values are stored as they are
	syncEvery time.Duration // Sync waits for the disk when this much time has passed; negative: only parts are synced
	syncBytes int64         // or this much was written
	partSize  int64
	partAge   time.Duration

	segment, maxLog, partPayload int64 // the constants, but in tests
}

type preset struct {
	name, help string
	set        settings
}

const (
	helpResilient = "SIGKILL or a power cut lose at most what came after the last sync"
	helpFast      = "SIGKILL loses at most what came after the last sync, a power cut at most 10 s or 256 MB"
	helpNone      = "SIGKILL loses at most what came after the last sync, a power cut what the system had not yet written"
)

var presets = []preset{
	{plugin.PresetResilient, helpResilient, settings{level: zstd.SpeedFastest, store: true}},
	{plugin.PresetFast, helpFast, settings{level: zstd.SpeedFastest, store: true, syncEvery: 10 * time.Second, syncBytes: 256 << 20}},
	{plugin.PresetSmall, "images, point clouds and other long values are compressed too; " + helpResilient, settings{level: zstd.SpeedFastest}},
	{plugin.PresetNone, helpNone, settings{level: zstd.SpeedFastest, store: true, syncEvery: -1}},
}

func lookupPreset(name string) (settings, error) {
	if name == "" {
		name = plugin.PresetResilient
	}
	var known []string
	for _, p := range presets {
		if p.name == name {
			s := p.set
			s.partSize, s.partAge, s.segment, s.maxLog, s.partPayload = partSize, partAge, segmentSize, maxLog, partPayload
			return s, nil
		}
		known = append(known, p.name)
	}
	return settings{}, fmt.Errorf("unknown preset %q (there is: %s)", name, strings.Join(known, ", "))
}

var levels = map[string]zstd.EncoderLevel{"fastest": zstd.SpeedFastest, "default": zstd.SpeedDefault, "better": zstd.SpeedBetterCompression, "best": zstd.SpeedBestCompression}

// configure overrides s by a storage configuration:
//
//	blobs: store | small     # long byte values as they are, or compressed
//	level: fastest | default | better | best
//	part_size: 8388608       # bytes of a Parquet part
//	part_seconds: 10         # age at which a topic of a megabyte gets its part
func (s *settings) configure(config map[string]any) error {
	known := []string{"blobs", "level", "part_seconds", "part_size"}
	for _, k := range slices.Sorted(maps.Keys(config)) {
		v := config[k]
		var ok bool
		var want string
		switch k {
		case "blobs":
			want = "store or small"
			ok = v == "store" || v == "small"
			s.store = v == "store"
		case "level":
			want = "fastest, default, better or best"
			text, _ := v.(string)
			s.level, ok = levels[text]
		case "part_seconds":
			want = "seconds from 1 to 3600"
			var n int64
			if n, ok = wholeNumber(v); ok {
				ok = n >= 1 && n <= 3600
				s.partAge = time.Duration(n) * time.Second
			}
		case "part_size":
			want = "bytes from 65536 to 16777216"
			s.partSize, ok = wholeNumber(v)
			ok = ok && s.partSize >= 64<<10 && s.partSize <= maxEncoded
		default:
			return fmt.Errorf("unknown storage configuration key %q (there is: %s)", k, strings.Join(known, ", "))
		}
		if !ok {
			return fmt.Errorf("storage configuration key %s: want %s, got %v", k, want, v)
		}
	}
	return nil
}

// checkReadConfig refuses all keys: there is nothing to set for reading.
func checkReadConfig(config map[string]any) error {
	for _, k := range slices.Sorted(maps.Keys(config)) {
		return fmt.Errorf("unknown storage configuration key %q (columnar has none for reading)", k)
	}
	return nil
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
