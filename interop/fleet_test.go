//go:build linux

package interop_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/perf"
	"github.com/gobag/gobag/plugin"
)

// runRecipe runs a recipe of docs/fleet.md and prints how many rows it gives.
const runRecipe = `
import sys
kind, text = sys.argv[1], sys.stdin.read()
if kind == "duckdb":
    import duckdb
    rows = duckdb.connect().sql(text).fetchall()
    print(len(rows), rows[:3])
elif kind == "spark":
    names = {}
    exec(text, names)
    print(len(names["result"]), names["result"][:3])
else:
    names = {}
    exec(text, names)
    print(len(names["result"]), names["result"].rows()[:3])
`

// makeFleet makes two bags of an IMU and transforms, one of which also has a topic of nothing.
func makeFleet(t *testing.T, root string) {
	t.Helper()
	for i, name := range []string{"bag=monday", "bag=tuesday"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		w, err := bag.Create(context.Background(), filepath.Join(root, name, "rec"), bag.WriterOptions{StorageID: "columnar", SyncInterval: -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range perf.ColumnarSamples {
			if s.Name != "Imu" && s.Name != "TFMessage" {
				continue
			}
			topic, ms, err := s.Messages(uint64(i), 3000)
			if err != nil {
				t.Fatal(err)
			}
			topic.Name = map[string]string{"Imu": "/imu/data", "TFMessage": "/tf"}[s.Name]
			id, err := w.AddTopic(topic)
			if err != nil {
				t.Fatal(err)
			}
			for k := range ms {
				ms[k].Topic, ms[k].Order = id, 0
				if k > 2000 {
					ms[k].RecvTime += 70_000_000 // a gap
				}
			}
			if err := w.Write(ms); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := w.AddTopic(plugin.Topic{Name: "/none", Type: "std_msgs/msg/Empty"}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Every recipe of the page runs and finds something.
func TestFleetRecipes(t *testing.T) { runRecipes(t, "duckdb|polars", 6, "venv") }

// The recipe for Spark, whose installation is large, runs in the soak tier.
func TestSoakFleetSpark(t *testing.T) {
	if os.Getenv("GOBAG_SOAK") == "" {
		t.Skip("large: make soak")
	}
	runRecipes(t, "spark", 1, "spark")
}

// runRecipes runs the recipes of the kinds given, of which there are at least so many, in a virtual environment of
// interop/python.
func runRecipes(t *testing.T, kinds string, least int, venv string) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "fleet.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipes := regexp.MustCompile("(?s)```(?:sql|python) ("+kinds+")\n(.*?)```").FindAllSubmatch(page, -1)
	if len(recipes) < least {
		t.Fatalf("%d recipes", len(recipes))
	}
	root := t.TempDir()
	makeFleet(t, filepath.Join(root, "fleet"))
	interpreter, err := filepath.Abs(filepath.Join("python", venv, "bin", "python"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recipes {
		var out, stderr bytes.Buffer
		cmd := exec.Command(interpreter, "-c", runRecipe, string(r[1]))
		cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = root, bytes.NewReader(r[2]), &out, &stderr
		if err := cmd.Run(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", r[1], err, r[2], stderr.String())
			continue
		}
		if out.Len() == 0 || out.Bytes()[0] == '0' {
			t.Errorf("%s finds nothing:\n%s", r[1], r[2])
		}
		t.Logf("%s: %.200s", r[1], out.String())
	}
}
