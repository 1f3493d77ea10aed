//go:build linux

package interop_test

// statements are the 37 statements of what gobag does on the wire.
var statements = []statement{
	{number: 1, name: "datagrams_decode", text: "every datagram decodes in tshark, every submessage is a multiple of 4 long, the peer calls nothing malformed",
		receive: everyDatagramDecodes, send: everyDatagramDecodes},
	{number: 2, name: "big_endian", text: "big-endian submessages and payloads are read right", receive: bigEndian, why: "gobag sends little-endian only"},
	{number: 3, name: "odd_submessages", text: "a last submessage of length 0, PAD, unknown ids and vendors' submessages are accepted",
		receive: oddSubmessages, why: "gobag sends none of these"},
	{number: 4, name: "set_bits", text: "the bits of sequence and fragment number sets mean the same on both sides", receive: setBits, send: setBits},
	{number: 31, name: "played_bytes", text: "the payload out of the player is the one in the bag", send: playedBytes, why: "see send: it records from the peer first"},
	{number: 34, name: "mutated", text: "damaged datagrams do no harm", receive: mutated, send: mutated},
}

type trap struct {
	text  string
	tests []string
}

var traps []trap
