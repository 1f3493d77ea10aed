package sqlite

import (
	"testing"

	"github.com/gobag/gobag/plugin/plugintest"
)

func TestConformance(t *testing.T) { plugintest.Run(t, Driver{}, plugintest.Options{}) }

func BenchmarkStorage(b *testing.B) { plugintest.Bench(b, Driver{}) }
