//go:build !race

package columnar

import (
	"testing"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

// raceDetector makes long tests shorter.
const raceDetector = false

// Compression changes nothing that the race detector could see, and the suite takes its time under it.
func TestConformanceSmall(t *testing.T) {
	plugintest.Run(t, Driver{}, plugintest.Options{Kills: 1, Create: plugin.WriteOptions{Preset: plugin.PresetSmall}})
}
