package wire

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTshark lets an independent dissector read what we append: every submessage, payloads of many sizes, discovery
// data, goodbyes (conformance statement: everything sent parses). Skipped where tshark is not installed.
func TestTshark(t *testing.T) {
	if testing.Short() {
		t.Skip("short")
	}
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("tshark is not installed")
	}
	var datagrams [][]byte
	add := func(f func(b []byte) []byte) {
		b := AppendInfoTS(AppendInfoDst(AppendHeader(nil, testHeader), testPrefix), TimestampFromUnix(1796042341186541653))
		datagrams = append(datagrams, f(b))
	}
	for _, c := range submessageCases {
		add(func(b []byte) []byte { return appendAny(b, c.want) })
	}
	for _, n := range []int{4, 5, 6, 7, 8, 9, 100, 1343, 1344, 1345, 8191, 8192, 16383, 40000, 65000} {
		payload := append(unhex("00010000"), bytes.Repeat([]byte{0x41}, n-4)...)
		add(func(b []byte) []byte {
			b = AppendData(b, &Data{Reader: testReader, Writer: testWriter, Seq: int64(n), Payload: payload})
			return AppendHeartbeat(b, &Heartbeat{Reader: testReader, Writer: testWriter, First: 1, Last: int64(n), Count: 1})
		})
		add(func(b []byte) []byte {
			b = AppendDataFrag(b, &DataFrag{Reader: testReader, Writer: testWriter, Seq: int64(n), First: 1, Count: 1, Size: uint16(n), SampleSize: uint32(n + 1), Payload: payload})
			return AppendHeartbeatFrag(b, &HeartbeatFrag{Reader: testReader, Writer: testWriter, Seq: int64(n), LastFrag: 1, Count: 1})
		})
	}
	p, e := fullParticipant(), fullEndpoint()
	p.Vendor = VendorGobag
	for writer, payload := range map[EntityID][]byte{EntitySPDPWriter: p.Append(nil), EntityPubWriter: e.Append(nil, true)} {
		add(func(b []byte) []byte {
			return AppendData(b, &Data{Writer: writer, Seq: 1, Payload: payload})
		})
	}
	for writer, g := range map[EntityID]GUID{EntitySPDPWriter: p.GUID, EntityPubWriter: e.GUID} {
		add(func(b []byte) []byte {
			return AppendData(b, &Data{Writer: writer, Seq: 2, Key: true, Payload: AppendKey(nil, g), InlineQoS: InlineQoS{Status: 3, HasKeyHash: true, KeyHash: g}})
		})
	}

	// The last one is broken, to see that tshark would tell.
	add(func(b []byte) []byte { return append(b, unhex("0701 1c00 00000000")...) })

	file := filepath.Join(t.TempDir(), "appended.pcap")
	if err := os.WriteFile(file, pcapOf(datagrams), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		out, err := exec.Command(tshark, append([]string{"-r", file}, args...)...).Output()
		if err != nil {
			t.Fatalf("tshark: %v", err)
		}
		return string(out)
	}
	lines := strings.Split(strings.TrimSpace(run("-T", "fields", "-e", "rtps.sm.id")), "\n")
	if len(lines) != len(datagrams) {
		t.Fatalf("tshark reads %d datagrams of %d", len(lines), len(datagrams))
	}
	for i, l := range lines {
		if !strings.HasPrefix(l, "0x0e,0x09,0x") && !strings.HasPrefix(l, "14,9,") {
			t.Errorf("datagram %d: submessages %q", i, l)
		}
	}
	out := run("-Y", `_ws.malformed || rtps.sm.octetsToNextHeader.error || rtps.sm.octetsToNextHeader.not_zero || _ws.expert.severity == "Error"`,
		"-T", "fields", "-e", "frame.number")
	if got := strings.Fields(out); len(got) != 1 || got[0] != fmt.Sprint(len(datagrams)) {
		t.Errorf("malformed for tshark: datagrams %v, only the last of %d expected", got, len(datagrams))
	}
	text := run("-V", "-Y", fmt.Sprintf("frame.number <= %d || frame.number > %d", len(submessageCases), len(datagrams)-5))
	for _, want := range []string{"rt/a/b", "std_msgs::msg::dds_::String_", "RELIABLE", "TRANSIENT_LOCAL", "10.0.0.1", "bitmapBase: 4294967298"} {
		if !strings.Contains(text, want) {
			t.Errorf("tshark does not see %q", want)
		}
	}
}

// pcapOf makes a capture of UDP datagrams from 10.0.0.1 to 10.0.0.2, port 7411.
func pcapOf(datagrams [][]byte) []byte {
	b := unhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000")
	for i, d := range datagrams {
		frame := 14 + 20 + 8 + len(d)
		b = le.AppendUint32(le.AppendUint32(b, uint32(i)), 0)
		b = le.AppendUint32(le.AppendUint32(b, uint32(frame)), uint32(frame))
		b = append(b, unhex("020000000002 020000000001 0800 45 00")...)
		b = append(b, byte((28+len(d))>>8), byte(28+len(d)))
		b = append(b, unhex("0000 0000 40 11 0000 0a000001 0a000002 1cf3 1cf3")...)
		b = append(b, byte((8+len(d))>>8), byte(8+len(d)), 0, 0)
		b = append(b, d...)
	}
	return b
}
