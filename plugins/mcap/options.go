package mcap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/gobag/gobag/plugin"
)

const (
	chunkSize    = 768 << 10 // rosbag2's; fits the second-level cache
	maxChunkSize = 64 << 20
	chunkAge     = time.Second
)

// settings are what presets and configuration decide.
type settings struct {
	compression string // "", "zstd", "lz4", as chunks name it
	level       zstd.EncoderLevel
	chunkSize   int64
	syncEvery   time.Duration // Sync waits for the disk when this much time has passed; negative: only Close does
	syncBytes   int64         // or this much was written

	noChunkCRC, noDataCRC, noSummaryCRC, noChunking, noMessageIndex, noSummary, forceCompression  bool
	noRepeatedSchemas, noRepeatedChannels, noMetadataIndex, noChunkIndex, noStatistics, noOffsets bool
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

var (
	fastSettings = settings{chunkSize: chunkSize, syncEvery: 10 * time.Second, syncBytes: 256 << 20}
	presets      = []preset{
		{plugin.PresetResilient, helpResilient, settings{chunkSize: chunkSize}},
		{plugin.PresetFast, helpFast, fastSettings},
		{plugin.PresetSmall, "zstd; " + helpResilient, settings{chunkSize: 1 << 20, compression: "zstd", level: zstd.SpeedDefault}},
		{plugin.PresetNone, helpNone, settings{chunkSize: chunkSize, syncEvery: -1}},
		{"fastwrite", "the same as fast", fastSettings},
		{"zstd_fast", "zstd at its fastest; " + helpResilient, settings{chunkSize: chunkSize, compression: "zstd", level: zstd.SpeedFastest}},
		{"zstd_small", "zstd at its smallest; " + helpResilient, settings{chunkSize: 1 << 20, compression: "zstd", level: zstd.SpeedBestCompression}},
	}
)

func lookupPreset(name string) (settings, error) {
	if name == "" {
		name = plugin.PresetResilient
	}
	var known []string
	for _, p := range presets {
		if p.name == name {
			return p.set, nil
		}
		known = append(known, p.name)
	}
	return settings{}, fmt.Errorf("unknown preset %q (there is: %s)", name, strings.Join(known, ", "))
}

var (
	compressions = map[string]string{"None": "", "Lz4": "lz4", "Zstd": "zstd"}
	levels       = map[string]zstd.EncoderLevel{"Fastest": zstd.SpeedFastest, "Fast": zstd.SpeedFastest, "Default": zstd.SpeedDefault,
		"Slow": zstd.SpeedBetterCompression, "Slowest": zstd.SpeedBestCompression}
)

// configure overrides s by a storage configuration with rosbag2's keys.
func (s *settings) configure(config map[string]any) error {
	enableDataCRC, ignored := !s.noDataCRC, false
	flags := map[string]*bool{
		"noChunkCRC": &s.noChunkCRC, "enableDataCRC": &enableDataCRC, "noSummaryCRC": &s.noSummaryCRC, "noChunking": &s.noChunking,
		"noMessageIndex": &s.noMessageIndex, "noSummary": &s.noSummary, "forceCompression": &s.forceCompression,
		"noRepeatedSchemas": &s.noRepeatedSchemas, "noRepeatedChannels": &s.noRepeatedChannels, "noMetadataIndex": &s.noMetadataIndex,
		"noChunkIndex": &s.noChunkIndex, "noStatistics": &s.noStatistics, "noSummaryOffsets": &s.noOffsets,
		"noAttachmentCRC": &ignored, "noAttachmentIndex": &ignored, // we write no attachments
	}
	known := append(slices.Sorted(maps.Keys(flags)), "chunkSize", "compression", "compressionLevel")
	for _, k := range slices.Sorted(maps.Keys(config)) {
		v := config[k]
		if p, ok := flags[k]; ok {
			if *p, ok = v.(bool); !ok {
				return fmt.Errorf("storage configuration key %s: want true or false, got %v", k, v)
			}
			continue
		}
		text, _ := v.(string)
		var ok bool
		switch k {
		case "chunkSize":
			if s.chunkSize, ok = integer(v); !ok || s.chunkSize < 1 || s.chunkSize > maxChunkSize {
				return fmt.Errorf("storage configuration key chunkSize: want bytes from 1 to %d, got %v", maxChunkSize, v)
			}
		case "compression":
			if s.compression, ok = compressions[text]; !ok {
				return fmt.Errorf("storage configuration key compression: want None, Lz4 or Zstd, got %v", v)
			}
			if s.level == 0 {
				s.level = zstd.SpeedDefault
			}
		case "compressionLevel":
			if s.level, ok = levels[text]; !ok {
				return fmt.Errorf("storage configuration key compressionLevel: want Fastest, Fast, Default, Slow or Slowest, got %v", v)
			}
		default:
			return fmt.Errorf("unknown storage configuration key %q (there is: %s)", k, strings.Join(known, ", "))
		}
	}
	s.noDataCRC = !enableDataCRC
	return nil
}

func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	case uint64:
		return int64(min(n, 1<<62)), true
	}
	return 0, false
}

// checkReadConfig refuses all keys: there is nothing to set for reading.
func checkReadConfig(config map[string]any) error {
	for _, k := range slices.Sorted(maps.Keys(config)) {
		return fmt.Errorf("unknown storage configuration key %q (mcap has none for reading)", k)
	}
	return nil
}
