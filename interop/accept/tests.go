//go:build linux

package main

import (
	"fmt"
	"regexp"

	"github.com/gobag/gobag/interop/lab"
)

// checkConformance runs the statements of docs/interop.md and writes that page.
func checkConformance(b *bench) error {
	args := []string{"-update"}
	if b.quick {
		args = nil
	}
	r, err := goTest(b, "./interop", "^TestConformance$", args...)
	if err != nil {
		return err
	}
	statements, failed, _ := r.count(2)
	b.figure(statements+failed >= 37 && failed == 0, "statements", "37, none fails", "%d of %d", statements, statements+failed)
	pass, fail, skip := r.count(4) // name, statement, peer, direction
	b.figure(pass > 0 && fail == 0, "cells, statement × peer × direction", "none fails", "%d pass, %d fail, %d not applicable to that peer", pass, fail, skip)
	return nil
}

// checkDefinitions runs the tests of definitions that nodes serve, of hashes and of texts.
func checkDefinitions(b *bench) error {
	served, err := goTest(b, "./interop", "^TestTypeDescription")
	if err != nil {
		b.figure(false, "definitions served by nodes of both vendors", "in the bag, and an independent reader decodes with them", "%s", firstLine(err.Error()))
	} else {
		pass, fail, skip := served.count(1)
		cases, _, _ := served.count(2)
		b.figure(pass > 0 && fail == 0 && skip == 0, "definitions served by nodes of both vendors",
			"in the bag, and an independent reader decodes with them", "%d tests pass (%d cases), %d fail, %d skipped", pass, cases, fail, skip)
	}
	r, err := goTest(b, "./msg", "^(TestHashesOf|TestTexts|TestHashedTexts)")
	if err != nil {
		return err
	}
	hashes, n := r.numbers(regexp.MustCompile(`(\d+) of (\d+) hashes are equal, (\d+) of them seen from real ROS`))
	b.figure(n == 1 && hashes[0] == 544 && hashes[2] == 392, "type hashes", "all 544, the 392 seen from real ROS among them",
		"%d of %d, %d seen from real ROS", hashes[0], hashes[1], hashes[2])
	texts, n := r.numbers(regexp.MustCompile(`(\d+) of (\d+) texts of numbered bags are equal, (\d+) are explained`))
	b.figure(n == 1 && texts[0] == 41 && texts[0]+texts[2] == 50, "definition texts of the fixtures", "41 of 50 byte for byte, nine explained",
		"%d of %d, %d explained", texts[0], texts[1], texts[2])
	r.passed(b, "TestHashesOfVariants", "hashes of other distributions")
	r.passed(b, "TestHashedTexts", "texts that were hashed")
	return nil
}

// checkCaptures runs the tests that read captures.
func checkCaptures(b *bench) error {
	if dir, ok := lab.Shared(); !ok {
		return fmt.Errorf("the captures are not there: %s", dir)
	}
	wire, err := goTest(b, "./rtps/wire", "Captures$")
	if err != nil {
		return err
	}
	graph, err := goTest(b, "./ros/ros2", "Captures")
	if err != nil {
		return err
	}
	for _, r := range []struct {
		run  *testRun
		name string
	}{{wire, "submessages, discovery, payloads"}, {graph, "topics, types, nodes"}} {
		pass, fail, skip := r.run.count(2)
		b.figure(pass > 0 && fail == 0 && skip == 0, "captures of real nodes and of the peers, "+r.name, "all are read whole", "%d of %d", pass, pass+fail+skip)
	}
	bags, n := wire.numbers(regexp.MustCompile(`(\d+) of (\d+) messages of the bag are on the wire`))
	b.figure(n > 0 && bags[0] > 0, "payloads beside the bag that rosbag2 recorded meanwhile", "equal but for the recorder's own log, which did not travel",
		"%d equal of %d in %d bags", bags[0], bags[1], n)
	samples, _ := wire.numbers(regexp.MustCompile(`(?:^|: )\S+ +(\d+) samples$`))
	b.figure(samples[0] > 0, "payloads of the peers decoded", "every one as it was written", "%d", samples[0])
	return nil
}
