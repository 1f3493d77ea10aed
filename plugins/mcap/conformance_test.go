package mcap

import (
	"context"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Run(t, Driver{}, plugintest.Options{Damage: damageTable})
}

// The same with what users may set differently.
func TestConformanceHumble(t *testing.T) {
	t.Parallel()
	plugintest.Run(t, Driver{}, plugintest.Options{Kills: 1, Create: plugin.WriteOptions{Compat: plugin.CompatHumble, Preset: plugin.PresetSmall}})
}

// configured is the format with a storage configuration, which the suite's reference does not know.
type configured struct {
	Driver
	config map[string]any
}

func (d configured) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	if o.Config == nil {
		o.Config = d.config
	}
	return d.Driver.Create(ctx, path, o)
}

func TestConformanceUnchunked(t *testing.T) {
	t.Parallel()
	plugintest.Run(t, configured{config: map[string]any{"noChunking": true}}, plugintest.Options{Kills: 1, Create: plugin.WriteOptions{Preset: plugin.PresetFast}})
}

// Small chunks that overlap, lz4, no summary.
func TestConformanceLZ4(t *testing.T) {
	t.Parallel()
	plugintest.Run(t, configured{config: map[string]any{"compression": "Lz4", "chunkSize": 2000, "noSummary": true}}, plugintest.Options{Kills: 1})
}

func BenchmarkStorage(b *testing.B) { plugintest.Bench(b, Driver{}) }
