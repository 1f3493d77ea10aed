// Package rostest is a ROS network in memory: nodes that implement [ros.Node], for tests of what stands on package ros.
// It can lose and delay samples, its wall clock can be stepped, and it counts what it did, so that an account of losses
// can be checked exactly.
//
// It keeps to what a ROS 2 network does: quality of service has to match, transient-local publishers keep their history
// for those who come later, a reliable publisher waits for a receiver that is behind, sequence numbers start at 1. It
// works inside a testing/synctest bubble: all waiting is on channels and timers.
package rostest
