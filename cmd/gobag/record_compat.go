package main

import (
	"context"
	"time"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// Times of chooseCompat.
const (
	compatLimit  = 500 * time.Millisecond // for the first publisher to appear
	compatSettle = 200 * time.Millisecond // for more to appear behind it
)

// chooseCompat is --compat auto: Humble when publishers are there and none announces a type hash, as Humble's do not.
// A publisher with a hash decides at once; with nobody there it takes half a second.
func chooseCompat(ctx context.Context, g ros.Graph) plugin.Compat {
	limit := time.NewTimer(compatLimit)
	defer limit.Stop()
	var settled <-chan time.Time
	for {
		changed := g.Changed()
		seen := false
		for _, t := range g.Topics() {
			for _, p := range t.Publishers {
				if p.Local {
					continue
				}
				if p.Topic.TypeHash != "" {
					return plugin.CompatJazzy
				}
				seen = true
			}
		}
		if seen && settled == nil {
			t := time.NewTimer(compatSettle)
			defer t.Stop()
			settled = t.C
		}
		select {
		case <-changed:
		case <-settled:
			return plugin.CompatHumble
		case <-limit.C:
			if seen {
				return plugin.CompatHumble
			}
			return plugin.CompatJazzy
		case <-ctx.Done():
			return plugin.CompatJazzy
		}
	}
}
