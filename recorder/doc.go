// Package recorder records topics of a ROS graph into a bag: what the verb record runs.
//
//	receive goroutine ─► topic.handle ─► bag.Queue ─► writer goroutine ─► bag.Writer
//
// A Recorder looks at the graph (discovery.go) and decides which topics to record (filter.go); the subscription's handler
// puts each sample into the queue without copying it (topic.go); one goroutine takes all that is queued and writes it
// (writer.go). The definition of a topic's type is looked for on this machine, then asked for at the node that publishes it
// (definitions.go). Nothing here ever blocks a publisher: what the storage cannot keep up with is dropped by the queue and
// counted. Every message received ends as recorded, lost in the queue or lost at the storage, and what the transport
// knows to be lost on the way is counted beside it (ledger.go); the sum is exact. The ledger and steps of the wall clock
// (clock.go) are stored in the bag.
//
// Stamps are wall clock and come from the transport; durations, splits and stop conditions run on the monotonic clock.
package recorder
