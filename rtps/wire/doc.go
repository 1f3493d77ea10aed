// Package wire reads and writes RTPS datagrams and the discovery data inside them. It knows no sockets and keeps no
// state between datagrams.
//
// Reading: Decoder walks a datagram and hands every submessage to a Handler; ParseParticipant, ParseEndpoint, ParseKey
// and ParseLiveliness read what builtin writers send. Nothing panics on foreign bytes, every length and count is
// checked before it is used, and a datagram is decoded without allocating.
//
// Writing: Append functions, little-endian throughout, every submessage padded to a multiple of 4 bytes (Cyclone DDS
// 0.10 drops the rest of a datagram otherwise).
//
// Sources: OMG DDSI-RTPS 2.5 §8.3, §9.4 and §9.6; OMG XTypes 1.3 §7.6.3; behaviour of Cyclone DDS 0.10 and Fast DDS 2.x.
package wire
