// Package interop holds the tests of the gobag command against real peers: C programs on Cyclone DDS and C++ programs on
// Fast DDS that know nothing of gobag (peers), independent readers of bags (the sqlite3 program, @foxglove/rosbag2) and
// tshark. Folder lab is the bench they stand on, accept the program behind `make accept-main`.
//
// The tests run on Linux. They skip where a peer is not installed (make -C interop install peers), unless the
// environment says GOBAG_INTEROP=required, as `make test` does.
package interop
