package rostest

import (
	"sync/atomic"
	"time"
)

// Clock is a wall clock that can be stepped, as by a time server or a user. The zero value runs with the system's. Only
// what is read from it moves; delays and timeouts do not. Safe for concurrent use.
type Clock struct{ offset atomic.Int64 }

// Now is the time in ns since the Unix epoch.
func (c *Clock) Now() int64 { return time.Now().UnixNano() + c.offset.Load() }

// Step sets the clock forward by d, or back if d is negative.
func (c *Clock) Step(d time.Duration) { c.offset.Add(int64(d)) }
