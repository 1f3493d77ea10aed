//go:build linux

package interop_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// dashboard is the part of a Grafana dashboard that asks for data.
type dashboard struct {
	UID        string `json:"uid"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Query struct {
				Query string `json:"query"`
			} `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		Type    string `json:"type"`
		Title   string `json:"title"`
		Targets []struct {
			Expr string `json:"expr"`
		} `json:"targets"`
	} `json:"panels"`
}

// readDashboard reads the one in deploy.
func readDashboard(t *testing.T, root string) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "grafana", "dashboards", "gobag.json"))
	must(t, err)
	must(t, json.Unmarshal(text, &d))
	return d
}

// query asks Prometheus and returns how many series the answer has.
func query(n *lab.Net, expr string) (int, error) {
	p, err := n.Start(nil, "promtool", "query", "instant", "--format=json", "http://127.0.0.1:9090", expr)
	if err != nil {
		return 0, err
	}
	if err := p.Wait(patience); err != nil {
		return 0, fmt.Errorf("%w: %s", err, p.Stdout())
	}
	var series []json.RawMessage
	if err := json.Unmarshal([]byte(p.Stdout()), &series); err != nil {
		return 0, fmt.Errorf("%w in %.200s", err, p.Stdout())
	}
	return len(series), nil
}

var (
	labelValues = regexp.MustCompile(`^label_values\((.+), ([a-z]+)\)$`)
	variable    = regexp.MustCompile(`\$(instance|topic)`)
)

// A real Prometheus, with the configuration of deploy, reads a recorder, a player and a measurement; every query of the
// dashboard gives an answer, and the recorder's figures add up to the publisher's.
func TestPrometheus(t *testing.T) {
	for _, tool := range []string{"prometheus", "promtool"} {
		_, err := lab.Tool(tool)
		needs(t, err)
	}
	n := newNet(t)
	if n.Namespace == "" {
		t.Skip("needs a network namespace: its ports are fixed")
	}
	root, err := lab.Root()
	must(t, err)
	config := filepath.Join(root, "deploy", "prometheus", "prometheus.yml")
	if out, err := exec.Command("promtool", "check", "config", config).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(config)
	must(t, err)
	dir := t.TempDir()
	fast := filepath.Join(dir, "prometheus.yml")
	must(t, os.WriteFile(fast, []byte(strings.Replace(string(text), "scrape_interval: 5s", "scrape_interval: 1s", 1)), 0o666))

	imu := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 100}}
	rec, err := gobag.Record(n, filepath.Join(dir, "bag"), imu, "--metrics", "127.0.0.1:9477")
	must(t, err)
	t.Cleanup(rec.Kill)
	pub := publishAs(t, n, lab.Cyclone, imu, "--wait", "1", "--seconds", "60")
	prometheus, err := n.Start(nil, "prometheus", "--config.file="+fast, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address=127.0.0.1:9090", "--log.level=warn")
	must(t, err)
	t.Cleanup(prometheus.Kill)
	// A bag to be played, in a domain of its own; and a measurement of several cells.
	bag := filepath.Join(dir, "played")
	if out, err := exec.Command(gobag.Path, "perf", "record", "--no-transport", "--quick", "--output", bag).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	play, err := gobag.Play(n, filepath.Join(bag, "cell001", "bag"), "--loop", "--metrics", "127.0.0.1:9478", "--domain-id", "7")
	must(t, err)
	t.Cleanup(play.Kill)
	perf, err := n.Start(nil, gobag.Path, "perf", "record", "--no-transport", "--duration", "1", "--repeat", "40", "--metrics", "127.0.0.1:9479")
	must(t, err)
	t.Cleanup(perf.Kill)

	d := readDashboard(t, root)
	var waiting []string
	for _, v := range d.Templating.List {
		m := labelValues.FindStringSubmatch(v.Query.Query)
		if m == nil {
			t.Fatalf("variable %s: %s", v.Name, v.Query.Query)
		}
		waiting = append(waiting, fmt.Sprintf(`count by (%s) (%s)`, m[2], m[1]))
	}
	panels := 0
	for _, p := range d.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			panels++
			waiting = append(waiting, variable.ReplaceAllString(strings.ReplaceAll(target.Expr, "$__rate_interval", "10s"), ".*"))
		}
	}
	if d.UID != "gobag" || panels < 20 {
		t.Errorf("dashboard %q with %d queries", d.UID, panels)
	}
	// Every query must have an answer at some moment within the time.
	var last map[string]error
	for deadline := time.Now().Add(60 * time.Second); len(waiting) > 0 && time.Now().Before(deadline); time.Sleep(time.Second) {
		last = map[string]error{}
		var still []string
		for _, q := range waiting {
			if k, err := query(n, q); err != nil || k == 0 {
				still, last[q] = append(still, q), err
			}
		}
		waiting = still
	}
	for _, q := range waiting {
		t.Errorf("no answer to %s (%v)", q, last[q])
	}
	// What Prometheus says of the recorder is what the bag has.
	must(t, pub.Stop(patience))
	time.Sleep(500 * time.Millisecond)
	sent := lab.SentBy(pub)["/imu"].Count
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(time.Second) {
		k, err := query(n, fmt.Sprintf(`gobag_record_recorded_messages_total{topic="/imu"} == %d`, sent))
		must(t, err)
		if k == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("Prometheus does not say that %d messages were recorded", sent)
			break
		}
	}
	must(t, rec.Stop(patience))
}
