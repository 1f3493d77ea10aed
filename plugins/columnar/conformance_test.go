package columnar

import (
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

func TestConformance(t *testing.T) {
	plugintest.Run(t, Driver{}, plugintest.Options{Damage: damageTable})
}

func TestCrashFast(t *testing.T) {
	plugintest.Crash(t, Driver{}, plugintest.Options{Kills: 2, Create: plugin.WriteOptions{Preset: plugin.PresetFast}})
}

func TestCrashNone(t *testing.T) {
	plugintest.Crash(t, Driver{}, plugintest.Options{Kills: 2, Create: plugin.WriteOptions{Preset: plugin.PresetNone}})
}

func BenchmarkStorage(b *testing.B) { plugintest.Bench(b, Driver{}) }
