// Package perf makes traffic and measures what became of it: a small robot with real message types ([Robot]), a load of
// instances × frequency × size ([Publish]), and the matrix run of `gobag perf record` ([RunRecord]), which records such
// loads with the real recorder in a process of its own and says what share was kept, what the rest was lost to, and what
// it cost. [RunStorage] writes and reads storage formats beside their ceilings and peers, for `gobag perf storage` and
// `gobag perf blobs`.
//
// Everything is measured from the intended time: a publisher that stalls shows the stall in the lateness of every
// message that was due meanwhile, so that no stall is hidden.
package perf
