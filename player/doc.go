// Package player publishes what a bag holds, at the times it was recorded: what the verb play runs.
//
//	bag.Reader ─► read-ahead goroutine, owned buffers ─► clock ─► ros.Publisher
//
// A goroutine reads ahead into pooled buffers, bounded in number and bytes (readahead.go, buffers.go). The goroutine of
// Run waits for each message's due time and publishes it. Due times are absolute: bag time maps to the monotonic clock by
// a reference pair and the rate (clock.go), so that waits do not add up to a drift. A message that is late is sent at
// once, none is skipped, and how late they were is measured (lateness.go). Topics with large messages are sent by
// goroutines of their own (lanes.go). Payloads are published as stored.
package player
