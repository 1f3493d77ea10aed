package mcap

import "github.com/gobag/gobag/plugin/plugintest"

var damageTable []plugintest.Damage
