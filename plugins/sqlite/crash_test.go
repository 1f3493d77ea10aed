package sqlite

import (
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// Thirty kills at random moments for each preset that differs, with Sync and without.
func TestCrash(t *testing.T) {
	plugintest.Crash(t, Driver{}, plugintest.Options{Kills: kills()})
}

func TestCrashFast(t *testing.T) {
	plugintest.Crash(t, Driver{}, plugintest.Options{Kills: kills(), Create: plugin.WriteOptions{Preset: plugin.PresetFast}})
}

func TestCrashNone(t *testing.T) {
	plugintest.Crash(t, Driver{}, plugintest.Options{Kills: kills() / 2, Create: plugin.WriteOptions{Preset: plugin.PresetNone}})
}

func kills() int {
	if testing.Short() {
		return 3
	}
	return 15
}
