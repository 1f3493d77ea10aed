//go:build linux

// Command accept runs the acceptance checks of a large piece of work on real peers and real disks, prints each figure
// beside its bar, and exits with 1 where one falls short:
//
//	go run ./interop/accept main|ros2|storage|transport|ros1|verbs|columnar|perf [-only record,play] [-format mcap] [-quick] [-list]
//
// It needs the peers (make -C interop install peers) and, for disks and namespaces, root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// check is one acceptance bullet.
type check struct {
	name  string
	about string
	run   func(*bench) error
}

// suite is the checks of one `make accept-NAME`.
type suite struct {
	peer   lab.Vendor // the peer of the checks that have one
	checks []check
}

// groups are the groups by name. What both have is the same code, with another vendor's peer.
var groups = map[string]suite{
	"main": {lab.Cyclone, []check{
		{"record", "a Cyclone publisher recorded for 20 s, both orders of start", checkRecord},
		{"play", "the bag played to a Cyclone subscriber at rate 1", checkPlay},
		{"frozen", "disk frozen for 10 s: the publisher's write calls, the losses counted", checkFrozen},
		{"stopped", "recorder stopped for 10 s: the publisher's write calls, the losses counted", checkStopped},
		{"sigkill", "SIGKILL at random moments", checkKill},
		{"powercut", "power cut at random moments", checkPowerCut},
		{"readers", "sqlite3 and @foxglove/rosbag2 read our bag", checkReaders},
		{"fixtures", "every SQLite bag of the fixtures opens with its counts", checkFixtures},
		{"clock", "wall clock set back 1 h and forward 50 years", checkClock},
		{"arm64", "a static arm64 binary, and its demo under emulation", checkARM64},
		{"mutated", "mutated datagrams", checkMutated},
	}},
	"ros2": {lab.Fast, []check{
		{"record", "a Fast DDS publisher recorded for 20 s, both orders of start; once with shared memory", checkRecord},
		{"play", "the bag played to a Fast DDS subscriber at rate 1", checkPlay},
		{"frozen", "disk frozen for 10 s: a Fast DDS publisher's write calls, the losses counted", checkFrozen},
		{"stopped", "recorder stopped for 10 s: a Fast DDS publisher's write calls, the losses counted", checkStopped},
		{"sigkill", "SIGKILL at random moments", checkKill},
		{"powercut", "power cut at random moments", checkPowerCut},
		{"readers", "sqlite3 and @foxglove/rosbag2 read a bag recorded from Fast DDS", checkReaders},
		{"clock", "wall clock set back 1 h and forward 50 years", checkClock},
		{"mutated", "mutated datagrams of Fast DDS", checkMutated},
		{"loss", "samples of 8 MB with 1, 5 and 10 % of the datagrams lost, beside the same vendor's pair", checkLoss},
		{"unprivileged", "100 MB/s without root, with a stock kernel's receive buffers", checkUnprivileged},
		{"conformance", "the numbered statements with both peers; writes docs/interop.md", checkConformance},
		{"definitions", "definitions served by nodes; hashes and texts", checkDefinitions},
		{"captures", "captures of real nodes", checkCaptures},
		{"tshark", "every datagram of sessions with both peers taken apart by tshark", checkTshark},
		{"compat", "a bag for Humble, recorded from a peer", checkCompat},
	}},
	"transport": transport,
	"ros1":      ros1Suite,
	"columnar":  columnarSuite,
	"verbs":     verbsSuite,
	"perf":      perfSuite,
	"storage": {lab.Cyclone, []check{
		{"conformance", "every format, every case of the suite, with the race detector", checkStorageConformance},
		{"sigkill", "SIGKILL at random moments, each format", checkStorageKill},
		{"powercut", "power cut at random moments, each format", checkStoragePowerCut},
		{"leveldb", "LevelDB beside C++ LevelDB with its defaults, and beside our SQLite", checkLevelDBRatios},
		{"sqlite", "SQLite beside C SQLite", checkSQLiteRatios},
		{"mcap", "MCAP beside the append log and C++ MCAP; seeks", checkMCAPRatios},
		{"blobs", "100,000 blobs of 10,000 bytes beside os.ReadFile and bare system calls", checkBlobs},
		{"readers", "readers that no one here wrote, each format", checkStorageReaders},
		{"fixtures", "every bag of the fixtures, and the MCAP conformance files", checkStorageFixtures},
		{"odd", "odd inputs", checkOddInputs},
		{"roundtrip", "X to Y to X over all pairs of formats", checkRoundTrips},
		{"diskfull", "disk full during recording, each format", checkDiskFull},
	}},
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) > 0 && children[args[0]] != nil { // this program again, inside a network namespace
		if err := children[args[0]](args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if len(args) == 0 || groups[args[0]].checks == nil {
		fmt.Fprintf(os.Stderr, "usage: accept %s [-only NAME,NAME] [-quick] [-list]\n",
			strings.Join(slices.Sorted(maps.Keys(groups)), "|"))
		return 2
	}
	suite := groups[args[0]]
	flags := flag.NewFlagSet("accept "+args[0], flag.ContinueOnError)
	only := flags.String("only", "", "run these checks only, separated by commas")
	formatNames := flags.String("format", "", "judge these storage formats only, separated by commas")
	quick := flags.Bool("quick", false, "short runs and few repetitions: to see that everything works")
	list := flags.Bool("list", false, "name the checks and end")
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	if *list {
		for _, c := range suite.checks {
			fmt.Printf("%-12s %s\n", c.name, c.about)
		}
		return 0
	}
	checks, err := choose(suite.checks, *only)
	var judged []format
	if err == nil {
		judged, err = chooseFormats(*formatNames)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lab.Sweep()
	b, err := newBench(ctx, suite.peer, *quick)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer b.close()
	b.judged = judged
	fmt.Printf("%d processors, %s\n", runtime.NumCPU(), loadText())
	for _, c := range checks {
		if ctx.Err() != nil {
			break
		}
		b.runCheck(c)
	}
	return b.report(os.Stdout)
}

// loadText says how busy the machine is: figures of time measured beside other work say little.
func loadText() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "load unknown"
	}
	f := strings.Fields(string(text))
	return "load " + strings.Join(f[:min(3, len(f))], " ")
}

func choose(all []check, only string) ([]check, error) {
	if only == "" {
		return all, nil
	}
	var chosen []check
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(all, func(c check) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no check named %q; -list names them", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// newBench builds gobag and makes a folder for everything that the checks write.
func newBench(ctx context.Context, peer lab.Vendor, quick bool) (*bench, error) {
	root, err := lab.Root()
	if err != nil {
		return nil, err
	}
	if err := os.Chdir(root); err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", fmt.Sprintf("gobag-lab-%d-accept-", os.Getpid()))
	if err != nil {
		return nil, err
	}
	b := &bench{ctx: ctx, peer: peer, quick: quick, scratch: scratch, gobag: lab.Gobag{Path: filepath.Join(scratch, "gobag")},
		started: time.Now()}
	if err := lab.Build("./cmd/gobag", b.gobag.Path); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	return b, nil
}
