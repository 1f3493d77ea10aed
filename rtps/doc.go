// Package rtps is a participant of the DDS-RTPS network over UDPv4: discovery, and readers and writers of raw
// serialized payloads. It knows no ROS names and never looks into a payload.
//
// A Participant owns the sockets. Its receive goroutines hand batches of datagrams to one state machine behind one
// mutex; replies are collected while the mutex is held and sent, in that order, after it is released. Where the kernel
// grants small buffers only, readers are spread over more sockets (lanes.go); where small datagrams come one by one, a
// receive goroutine lets some come together (coalesce.go). Each Writer has a goroutine that
// sends what is queued and what readers ask for again; pausing between datagrams happens there and never under the
// mutex. One goroutine runs the timers.
//
//	UDP sockets ─► udp*.go ─► participant.receive ─► wire.Decoder ─► dispatch.go ─┬─► discovery (spdp.go, sedp.go, match.go)
//	                                                                              ├─► remote writers of a Reader (source*.go) ─► Handler
//	                                                                              └─► remote readers of a Writer (sink.go)
//	Writer.Write ─► history ─► send.go, emitter.go, pacer.go ─► udp*.go
//
// Samples handed to a ReaderConfig.Handler live in pooled memory and belong to the handler until Sample.Release.
//
// What the protocol asks for is in OMG DDSI-RTPS 2.5; where Cyclone DDS and Fast DDS differ from it, or from each other, the
// code says so at the place.
package rtps
