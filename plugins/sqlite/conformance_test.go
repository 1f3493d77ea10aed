package sqlite

import (
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Run(t, Driver{}, plugintest.Options{Damage: damageTable})
}

// The same with what users may set differently.
func TestConformanceHumble(t *testing.T) {
	plugintest.Run(t, Driver{}, plugintest.Options{Kills: 1, Create: plugin.WriteOptions{Compat: plugin.CompatHumble}})
}

func TestConformanceFast(t *testing.T) {
	plugintest.Run(t, Driver{}, plugintest.Options{Kills: 2, Create: plugin.WriteOptions{Preset: plugin.PresetFast}})
}

// The same written by SQLite, as with pragmas that it alone can follow, and read by SQLite, as where files cannot be
// mapped.
func TestConformanceSQL(t *testing.T) {
	writePages, mapTrees = false, false
	defer func() { writePages, mapTrees = true, true }()
	plugintest.Run(t, Driver{}, plugintest.Options{Kills: 1})
}

func BenchmarkStorage(b *testing.B) { plugintest.Bench(b, Driver{}) }
