package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/recorder"
)

func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	r := cli(nil, "demo", "--duration", "1", "-r", "5", "-o", dir)
	if r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	checkPlain(t, r)
	for _, want := range []string{"/imu/data                1000      1000  100.00 %", "/robot_description          1         1  100.00 %", "Topic information: Topic: /camera/image_raw",
		"Every byte in the bag is what was published", "every byte arrived as published", "Demo passed"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	if got := counts(t, dir); got["/imu/data"] != 1000 || got["/camera/image_raw"] != 10 {
		t.Errorf("%v", got)
	}
}

// TestDemoBites: the demo's own check of a bag finds what is not what was published.
func TestDemoBites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bag")
	makeBag(t, dir, nil) // its /chatter says something else than the robot
	var out strings.Builder
	d := demo{app: newApp(strings.NewReader(""), &out, &out, func(string) string { return "" }), output: dir, streams: perf.DemoStreams(start)}
	d.sent = []uint64{0, 3, 1, 0, 0}
	if _, err := d.checkBag(t.Context(), recorder.Result{}); err == nil || !strings.Contains(err.Error(), "none that was published") {
		t.Errorf("%v", err)
	}
	kept := [][]uint64{{}, {0, 2}, {0}, {}, {}}
	if err := d.reportKept(recorder.Result{}, kept); err == nil || !strings.Contains(err.Error(), "/chatter: published 3, but recorded 2 and lost 0") {
		t.Errorf("%v", err)
	}
}

func TestPerfRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	file := filepath.Join(t.TempDir(), "out.json")
	p := launch(t, nil, "perf", "record", "--instances", "1", "3", "--frequency", "50", "--size", "1000", "--duration", "1", "--json", file)
	r := p.result()
	if r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	checkPlain(t, r)
	if !strings.Contains(r.out, "Machine: ") || !strings.Contains(r.out, "recorder CPU s") {
		t.Errorf("%s", r.out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rep perf.Report
	if err := json.Unmarshal(text, &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Cells) != 2 {
		t.Fatalf("%d cells", len(rep.Cells))
	}
	for i, n := range []uint64{50, 150} {
		c := rep.Cells[i]
		if c.Publisher.Sent != n || c.Recorded+c.Lost.Total() != n || !c.Balanced || c.Storage != "mcap" || c.Recorder.CPUSeconds <= 0 || c.Recorder.PeakRSS < 1<<20 || c.BagBytes == 0 {
			t.Errorf("%+v", c)
		}
	}
}

// TestPerfStop: Ctrl-C keeps the cells that are finished and leaves no process behind.
func TestPerfStop(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	p := launch(t, nil, "perf", "record", "--instances", "1", "--frequency", "20", "--duration", "1", "--repeat", "100")
	p.await("cell 2 of 100")
	p.cmd.Process.Signal(os.Interrupt)
	r := p.result()
	if r.code != 1 || !strings.Contains(r.errOut, "stopped after 1 of 100 cells") || !strings.Contains(r.out, "mcap") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
}
