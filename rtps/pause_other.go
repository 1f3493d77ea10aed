//go:build !linux

package rtps

import "time"

// pause sleeps.
func pause(d time.Duration) { time.Sleep(d) }
