package mcap

import (
	"os"
	"strconv"
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// Kills at random moments for each preset that differs, with Sync and without. GOBAG_KILLS sets how many.
func TestCrash(t *testing.T) {
	plugintest.Crash(t, Driver{}, plugintest.Options{Kills: kills()})
}

func TestCrashSmall(t *testing.T) {
	plugintest.Crash(t, Driver{}, plugintest.Options{Kills: kills(), Create: plugin.WriteOptions{Preset: plugin.PresetSmall}})
}

func kills() int {
	if n, err := strconv.Atoi(os.Getenv("GOBAG_KILLS")); err == nil && n > 0 {
		return n
	}
	return 6
}
