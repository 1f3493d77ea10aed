// Package netsim is a network for tests: hosts in memory, between which datagrams get lost, doubled, overtaken and
// delayed, by chance from a seed or by a rule that looks at the RTPS submessages inside ("the third HEARTBEAT of a user
// writer"). A Host takes the place of a participant's UDP sockets; Wrap puts the same faults around real ones.
//
// Chance is drawn separately for each pair of addresses, so that what happens on one path does not depend on how
// goroutines interleave on others. All waiting uses package time: inside a testing/synctest bubble it costs none.
package netsim
