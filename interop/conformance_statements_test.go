//go:build linux

package interop_test

import "github.com/gobag/gobag/interop/lab"

// onlyFor is a check that is about one peer.
func onlyFor(v lab.Vendor, check func(c *cell)) func(c *cell) {
	return func(c *cell) {
		c.only(v, "about "+string(v))
		check(c)
	}
}

// statements are the 37 statements of what gobag does on the wire.
var statements = []statement{
	{number: 1, name: "datagrams_decode", text: "every datagram decodes in tshark, every submessage is a multiple of 4 long, the peer calls nothing malformed",
		receive: everyDatagramDecodes, send: everyDatagramDecodes},
	{number: 2, name: "big_endian", text: "big-endian submessages and payloads are read right", receive: bigEndian, why: "gobag sends little-endian only"},
	{number: 3, name: "odd_submessages", text: "a last submessage of length 0, PAD, unknown ids and vendors' submessages are accepted",
		receive: oddSubmessages, why: "gobag sends none of these"},
	{number: 4, name: "set_bits", text: "the bits of sequence and fragment number sets mean the same on both sides", receive: setBits, send: setBits},
	{number: 5, name: "found_cyclone", text: "found within 1 s by Cyclone, whoever starts first", receive: onlyFor(lab.Cyclone, found), send: onlyFor(lab.Cyclone, found)},
	{number: 6, name: "found_fast", text: "found within 1 s by Fast DDS, whoever starts first", receive: onlyFor(lab.Fast, found), send: onlyFor(lab.Fast, found)},
	{number: 7, name: "odd_announcements", text: "an announcement without DOMAIN_ID or with unknown parameters is taken, with an unknown one that must be understood ignored",
		receive: oddAnnouncements, why: "about what is read"},
	{number: 8, name: "other_domain", text: "a peer of another DOMAIN_ID or DOMAIN_TAG is ignored", receive: otherDomain, why: "about what is read"},
	{number: 9, name: "vanishes", text: "a killed publisher vanishes with its lease ± 1 s, one that ends in order within 0.1 s", receive: vanishes, send: vanishes, waits: true},
	{number: 10, name: "goodbye", text: "SIGTERM to the player: the peer has no writers at once", send: goodbye, why: "about writers of gobag"},
	{number: 11, name: "crowd", text: "processes of gobag, Fast DDS and Cyclone on one host have distinct ports and all see all", receive: crowd, why: "one run shows both"},
	{number: 12, name: "no_multicast", text: "without multicast: the range LOCALHOST finds peers by unicast", receive: withoutMulticast, send: withoutMulticast},
	{number: 13, name: "same_host", text: "data on the same host arrives by loopback, whatever address was announced", receive: sameHost, send: sameHost},
	{number: 14, name: "shared_memory", text: "Fast DDS with shared memory talks UDP to gobag, which needs nothing of /dev/shm", receive: besideSharedMemory, send: besideSharedMemory},
	{number: 15, name: "after_match", text: "volatile, reliable: all samples written after the match arrive, none that the writer had let go before", receive: afterMatch, send: afterMatch},
	{number: 16, name: "latched_in", text: "the last N samples of a latched writer arrive within 0.2 s of the match", receive: latchedIn, why: "see statement 17"},
	{number: 17, name: "latched_out", text: "a latched writer of gobag serves late subscribers its depth, in order", send: latchedOut, why: "see statement 16"},
	{number: 18, name: "requested", text: "data flows in exactly the cells in which the offered QoS satisfies the requested", receive: requested, send: requested},
	{number: 19, name: "xcdr2", text: "XCDR2 is recorded as it comes and sent as it is", receive: xcdr2, send: xcdr2},
	{number: 20, name: "keyed", text: "keyed topics and other type names do not pair with ours", receive: keyed, send: keyed},
	{number: 21, name: "large_in", text: "samples of 8 MiB arrive whole within 2 s, 1 % of datagrams lost", receive: largeSamples(false), why: "see statement 22"},
	{number: 22, name: "large_out", text: "the same from gobag, to receive buffers of 208 KiB", send: largeSamples(true), why: "see statement 21"},
	{number: 23, name: "late_large", text: "a latched sample of 1 MB takes at most twice the least number of NACK_FRAGs", receive: lateLarge, why: "about what gobag asks for"},
	{number: 24, name: "fragments", text: "ten fragments to a submessage and short tails are put together", receive: fragmentShapes, send: fragmentShapes},
	{number: 25, name: "disorder", text: "datagrams repeated, overtaken and late: output in order, nothing twice", receive: disorder, send: disorder},
	{number: 26, name: "control", text: "lost HEARTBEATs, ACKNACKs and endpoint announcements are made good within 3 s", receive: control, send: control},
	{number: 27, name: "many_topics", text: "100 topics at 100 Hz, nothing lost", receive: manyTopics, send: manyTopics},
	{number: 28, name: "preemptive", text: "preemptive ACKNACKs end within two packets", send: preemptive, why: "about what gobag answers"},
	{number: 29, name: "gaps", text: "GAP never stalls delivery", receive: gapsIn, send: gapsOut},
	{number: 30, name: "lively", text: "writers with a liveliness lease stay alive while they exist; those of the peers are recorded", receive: lively, send: lively},
	{number: 31, name: "played_bytes", text: "the payload out of the player is the one in the bag", send: playedBytes, why: "see send: it records from the peer first"},
	{number: 32, name: "node_names", text: "ros_discovery_info is understood with ids of 16 and of 24 bytes, and sent to each node with those that it knows", receive: nodeNames, send: sentNames},
	{number: 33, name: "type_hashes", text: "RIHS01 equals the published hashes (tests of package msg)", why: "not about a peer"},
	{number: 34, name: "mutated", text: "damaged datagrams do no harm", receive: mutated, send: mutated},
	{number: 35, name: "adaptive", text: "a latched reliable publisher first, best-effort ones later: all recorded", receive: adaptive, why: "about the recorder"},
	{number: 36, name: "offered", text: "the player offers the recorded QoS, the default with a warning where publishers differed", send: offered, why: "see send: it records from the peer first"},
	{number: 37, name: "idle", text: "at most 2 datagrams a second to a peer once everything is acknowledged", receive: idle, send: idle, waits: true},
}
