package sqlite

import (
	"testing"

	"github.com/gobag/gobag/plugin/plugintest"
)

func TestConformance(t *testing.T) { plugintest.Run(t, Driver{}, plugintest.Options{}) }
