// Package ros1 is a [ros.Node] on the network of ROS 1: the master's API, the nodes' API and TCPROS.
//
//   - Payloads are ROS 1's serialization and are never taken apart. A subscription takes any type; what a publisher says in
//     the header of its connection (type, md5sum, definition, latching) is seen in the graph and by [Node.Definition].
//   - A publisher's QoS is reliable and volatile, or transient local with depth 1 when it latches. Type hashes are md5sums.
//   - The graph is what the master says, asked for once a second. After a restart of the master everything is registered
//     again; connections that are open stay open. A connection that breaks is opened again as long as the master names the
//     publisher.
//   - ROS 1 has neither sequence numbers nor acknowledgements nor source stamps: what a publisher dropped before it sent is
//     not known. What this node drops is counted.
//
// The XML-RPC side and the connection headers are those of goroslib, whose author has archived it since ROS 1 reached its
// end of life in May 2025; messages are framed, queued and pooled here, since goroslib's own subscriber takes typed
// messages up to 16 MiB only. Nothing but this package uses goroslib.
//
// Sources: wiki.ros.org/ROS/Master_API, /ROS/Slave_API, /ROS/TCPROS, /ROS/Connection Header.
package ros1
