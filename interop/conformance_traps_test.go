//go:build linux

package interop_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gobag/gobag/interop/lab"
)

// trap is a mistake that other implementations made or that the peers invite, and the tests that would see it here:
// "package.Test" or "package.Test/subtest", package being a folder of the module.
type trap struct {
	text  string
	tests []string
}

func conformance(names ...string) (tests []string) {
	for _, n := range names {
		tests = append(tests, "interop.TestConformance/"+n)
	}
	return tests
}

func rules(names ...string) (tests []string) {
	for _, n := range names {
		tests = append(tests, "interop.TestWireRules/"+n)
	}
	return tests
}

var traps = []trap{
	// What other implementations stumbled over.
	{"Fast DDS ignores ACKNACK and HEARTBEAT with count 0", rules("counts")},
	{"preemptive ACKNACK: base 0 is malformed to Cyclone, base 1 has no effect on Fast DDS",
		append(rules("preemptive"), append(conformance("28_preemptive"), "rtps.TestPreemptiveAckNack")...)},
	{"HEARTBEAT (2, 0) is rejected: first ≥ 1, last ≥ first − 1", rules("heartbeats")},
	{"samples before the first HEARTBEAT are lost at a Cyclone reader", append(rules("heartbeat_first"), "rtps.TestWriterHandshake")},
	{"the first seconds of a Fast DDS talker are lost to a listener that answers its preemptive ACKNACK late",
		append(conformance("06_found_fast", "15_after_match"), "interop.TestFastRecorderFirst")},
	{"a sample asked for again is sent as one datagram of more than 64 kB", append(rules("sizes"), "rtps.TestWriterSendsFragments")},
	{"HEARTBEAT_FRAG unknown; several fragments in a DATA_FRAG taken for too small", append(conformance("24_fragments"), "rtps.TestFragmentShapes")},
	{"padding within DATA_FRAG spoils the sample", conformance("01_datagrams_decode", "24_fragments", "31_played_bytes")},
	{"length 0 of the last submessage", append(conformance("03_odd_submessages"), "rtps/wire.TestTolerated")},
	{"the vendor's submessage 0x80 behind every datagram of Fast DDS taken for malformed", append(conformance("03_odd_submessages"), "rtps/wire.TestTolerated")},
	{"type information that differs or is malformed keeps endpoints apart", append(rules("discovery"), "rtps/wire.TestSharedCaptures")},
	{"several participants behind one address: without INFO_DST the wrong one answers", append(rules("info_dst"), conformance("11_crowd")...)},
	{"the sequence number of announcements does not rise, or begins anew", append(conformance("09_vanishes"), "rtps.TestGoodbyeAndLease")},
	{"HEARTBEAT (1, 0) answered with base 0 loops for ever with Fast DDS", append(conformance("28_preemptive", "37_idle"), "rtps.TestPreemptiveAckNack")},
	{"Fast DDS sends to 127.0.0.1 whatever address was announced: the same port on all interfaces", conformance("13_same_host")},
	{"containers without a common /dev/shm: topics seen, no data", append(conformance("14_shared_memory"), "interop.TestFastSharedMemoryIsNotOurs")},
	{"payloads padded to 4 seen as extra bytes", append(conformance("31_played_bytes"), "interop/lab.TestCheckerBites")},
	{"Humble crashes on graph samples of the Iron form", append(rules("discovery"), "ros/ros2.TestParseInfo", "interop.TestNodeFormsStayApart")},
	{"a recorder that subscribes before it knows a writer keeps the default QoS", append(conformance("35_adaptive"), "interop.TestMixedReliability")},
	{"the first messages are lost when recording starts", []string{"interop.TestRecorderFirst", "interop.TestFastRecorderFirst", "interop.TestPublisherFirst"}},
	{"IP fragments of a lost 64 kB datagram clog the kernel for 30 s", []string{"interop.TestNoIPFragments"}},
	{"one lost fragment kills a best-effort sample: reliable where all offer it", append(conformance("21_large_in", "35_adaptive"), "interop.TestLossyWire")},
	{"the identity of a service call has two parameter ids, 0x800f and 0x0083", []string{"rtps/wire.TestSubmessages", "interop.TestTypeDescriptionService"}},
	{"services of the two RMWs differ: 16 bytes before the value, or an identity in the inline QoS", []string{"interop.TestTypeDescriptionService"}},
	// What the peers did to the first prototype.
	{"only base 0 makes Fast DDS send a HEARTBEAT at once", append(rules("preemptive"), "rtps.TestProbesFast")},
	{"the lost tail of a Fast DDS writer waits for its timer of 3 s", append(conformance("26_control"), "rtps.TestProbesFast")},
	{"HEARTBEAT up to a sample that is still being sent", append(rules("whole_sample"), "rtps.TestNacksOnlyWhatWasSent")},
	{"a Cyclone reader throws away the first fragmented sample when a HEARTBEAT comes in the middle of it", append(rules("whole_sample"), conformance("24_fragments")...)},
	{"disposals differ: with a key, or with a key hash only", append(conformance("09_vanishes", "10_goodbye"), "rtps.TestGoodbyeForms")},
	{"fragments of 1344 bytes, ten to a submessage, and of 65324 bytes", append(conformance("24_fragments", "23_late_large"), "rtps.TestPullsFragments")},
	{"Cyclone names no reader and uses one port for everything", conformance("11_crowd", "15_after_match")},
	{"Cyclone sends data by multicast once two readers announce a group", append(rules("discovery"), conformance("11_crowd")...)},
	{"Fast DDS among itself uses shared memory only", append(conformance("14_shared_memory"), "interop.TestTriangle")},
	{"loopback without the MULTICAST flag: Cyclone turns multicast off and is found by unicast only", append(conformance("12_no_multicast"), "interop.TestLoopbackWithoutFlag")},
	{"endpoint announcements to a peer that has not heard of us are lost", conformance("26_control")},
	{"Fast DDS asks for participant messages for ever where nobody answers", conformance("37_idle")},
	{"KEEP_LAST writers overwrite what was not read: counted as lost", append(conformance("29_gaps"), "rtps.TestOverrunIsCounted")},
	{"counts that do not rise are ignored; Cyclone sends datagrams of one byte", append(rules("counts"), "rtps/wire.TestNotRTPS")},
	{"sockets closed by a finalizer, sleeps that are too long, buffers reused too early", []string{"rtps.TestCloseWhileBusy", "rtps.TestPacer", "rtps.TestReliableUnderLoss"}},
	// What this work found.
	{"after fragments were sent again the HEARTBEAT behind them is lost, and repeated ever more rarely", append(conformance("22_large_out"), "rtps.TestWriterHeartbeatsAfterRepair")},
	{"a repair that is lost again is asked for only after a time", append(conformance("21_large_in"), "rtps.TestAsksAgainForLostRepairs")},
	{"interface files that rosidl compiles into nodes are escaped and cut off", []string{"interop.TestRecordCompiledDefinitions", "interop/lab.TestCompiled"}},
	{"the question of a reader for more, or the answer, is lost as well", append(conformance("26_control"), "rtps.TestProbesFast")},
}

// Every test that the table names exists.
func TestTrapsAreCovered(t *testing.T) {
	root, err := lab.Root()
	must(t, err)
	for _, x := range traps {
		if len(x.tests) == 0 {
			t.Errorf("%s: no test", x.text)
		}
		for _, name := range x.tests {
			folder, test, _ := strings.Cut(name, ".")
			test, sub, _ := strings.Cut(test, "/")
			if !slices.Contains(testsIn(t, filepath.Join(root, folder)), test) {
				t.Errorf("%s: there is no %s in %s", x.text, test, folder)
			}
			known := sub == "" ||
				test == "TestConformance" && slices.ContainsFunc(statements, func(s statement) bool { return fmt.Sprintf("%02d_%s", s.number, s.name) == sub }) ||
				test == "TestWireRules" && slices.ContainsFunc(wireRules, func(r wireRule) bool { return r.name == sub })
			if !known {
				t.Errorf("%s: %s has no %s", x.text, test, sub)
			}
		}
	}
}

// testsIn lists the test functions of a folder.
func testsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	files := token.NewFileSet()
	paths, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	must(t, err)
	for _, path := range paths {
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		must(t, err)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}
