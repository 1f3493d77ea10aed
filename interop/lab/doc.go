// Package lab is the bench of the interop tests: it starts real peers (C programs on Cyclone DDS, see interop/peers) and
// the built gobag command as separate processes in a network namespace of their own, knows what the peers publish, reads
// bags with three independent readers, and makes disks that freeze and lose power. Linux only; what needs root says so.
package lab
