package perf

import (
	"bytes"
	"context"
	"strings"
	"testing"

	_ "github.com/gobag/gobag/plugins/all"
)

// Every sample is stored and comes back in every target, and the report names them all.
func TestColumnar(t *testing.T) {
	cells, err := Columnar(context.Background(), ColumnarOptions{Scale: 0.002, Seed: 3, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(ColumnarSamples) * len(ColumnarTargets); len(cells) != want {
		t.Errorf("%d cells, want %d", len(cells), want)
	}
	for _, c := range cells {
		if c.Error != "" || c.Disk <= 0 || c.Messages == 0 {
			t.Errorf("%+v", c)
		}
	}
	var b bytes.Buffer
	if err := (ColumnarReport{Scale: 0.002, Cells: cells}).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, s := range ColumnarSamples {
		if !strings.Contains(b.String(), s.Name) {
			t.Errorf("the report does not name %s:\n%s", s.Name, b.String())
		}
	}
}

func TestColumnarRatios(t *testing.T) {
	cell := func(sample, target, preset string, cpu float64, disk int64) ColumnarCell {
		return ColumnarCell{Sample: sample, Target: target, Preset: preset, Messages: 10, Payload: 100, WriteCPU: cpu, Write: 1, Disk: disk}
	}
	r := ColumnarReport{Cells: []ColumnarCell{cell("Imu", "columnar", "none", 1, 50), cell("Imu", "columnar", "none", 3, 50), cell("Imu", "c-sqlite", "rosbag2", 8, 200),
		cell("TSBS", "columnar", "none", 4, 50), cell("TSBS", "c-sqlite", "rosbag2", 4, 100), cell("Image", "columnar", "none", 100, 1), cell("Image", "c-sqlite", "rosbag2", 1, 1)}}
	rows := r.Rows()
	if rows[0].CPURatio != 4 || rows[0].SizeRatio != 4 || rows[0].Runs != 2 {
		t.Errorf("%+v", rows[0])
	}
	if mean, least := ColumnarGain(rows, StorageTarget{"columnar", "none"}); mean != 2 || least != 1 {
		t.Errorf("gain %v, least %v", mean, least) // blobs do not count
	}
}
