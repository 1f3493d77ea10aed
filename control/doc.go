// Package control lets others steer a recorder or a player while it runs: by the services of rosbag2 over DDS (services.go),
// by commands over a local Unix socket (socket.go), and with the events of rosbag2 (events.go).
//
// Both ways end in the same calls. Over DDS anybody on the network can call, so a recorder offers what does no harm there,
// pause, resume, split and snapshot, and the rest only when asked to (Remote). The socket is for the user who started the
// program: its file has mode 0600.
package control
