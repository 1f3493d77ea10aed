package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
)

// fakeKernel is a root with the settings that doctor looks at.
func fakeKernel(t *testing.T, values map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, v := range values {
		path := filepath.Join(root, "proc", "sys", filepath.FromSlash(strings.ReplaceAll(name, ".", "/")))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(v+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestDoctorFix(t *testing.T) {
	stock := map[string]string{"net.core.rmem_max": "212992", "net.ipv4.ipfrag_high_thresh": "4194304", "net.ipv4.ipfrag_time": "30"}
	for _, c := range []struct {
		name, answer string
		yes          bool
		values       map[string]string
		written      []string
	}{
		{"agreed", "y\n", false, stock, []string{"net.core.rmem_max = 33554432", "net.ipv4.ipfrag_high_thresh = 134217728", "net.ipv4.ipfrag_time = 3"}},
		{"not asked", "", true, stock, []string{"net.core.rmem_max = 33554432"}},
		{"refused", "n\n", false, stock, nil},
		{"no answer", "", false, stock, nil},
		{"some are good", "yes\n", false, map[string]string{"net.core.rmem_max": "67108864", "net.ipv4.ipfrag_time": "30"}, []string{"net.ipv4.ipfrag_time = 3"}},
		{"all are good", "y\n", false, map[string]string{"net.core.rmem_max": "33554432", "net.ipv4.ipfrag_time": "3"}, nil},
		{"another system", "y\n", false, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fakeKernel(t, c.values)
			file := filepath.Join(t.TempDir(), "60-gobag.conf")
			var out bytes.Buffer
			if err := fixSettings(&out, strings.NewReader(c.answer), kernelSettings(root), root, file, c.yes); err != nil {
				t.Fatal(err)
			}
			text, _ := os.ReadFile(file)
			if (len(text) > 0) != (c.written != nil) {
				t.Fatalf("file %q; said:\n%s", text, &out)
			}
			for _, line := range c.written {
				if !strings.Contains(string(text), line+"\n") || !strings.Contains(out.String(), line+"\n") {
					t.Errorf("no %q in the file or in what was shown:\n%s\n%s", line, text, &out)
				}
			}
			for _, s := range kernelSettings(root) {
				if c.written != nil && s.low() {
					t.Errorf("%s is %d afterwards", s.name, s.value)
				}
				if c.name == "some are good" && s.name == "net.core.rmem_max" && s.value != 67108864 {
					t.Errorf("%s was lowered to %d", s.name, s.value)
				}
			}
		})
	}
	root := fakeKernel(t, stock)
	err := fixSettings(new(bytes.Buffer), strings.NewReader(""), kernelSettings(root), root, filepath.Join(root, "none", "file"), true)
	if err == nil || !strings.Contains(err.Error(), "sudo gobag doctor --fix") {
		t.Errorf("a file that cannot be written: %v", err)
	}
}

// wantFinding fails unless there is a finding of a level whose text has a part.
func wantFinding(t *testing.T, d *diagnosis, level findingLevel, part string) {
	t.Helper()
	for _, f := range d.list {
		if f.level == level && strings.Contains(f.what+": "+f.text, part) {
			return
		}
	}
	t.Errorf("no %v with %q in %+v", level, part, d.list)
}

func TestDoctorFindings(t *testing.T) {
	d := &diagnosis{out: new(bytes.Buffer)}
	d.settings(kernelSettings(fakeKernel(t, map[string]string{"net.core.rmem_max": "212992", "net.ipv4.ipfrag_time": "3"})))
	wantFinding(t, d, hurts, "net.core.rmem_max: 212992")
	wantFinding(t, d, fine, "net.ipv4.ipfrag_time: 3")
	if len(d.list) != 2 {
		t.Errorf("%+v", d.list)
	}

	root := t.TempDir()
	path := filepath.Join(root, "sys", "devices", "system", "clocksource", "clocksource0")
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "current_clocksource"), []byte("hpet\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.clock(root)
	wantFinding(t, d, hurts, "clock source: hpet")

	d.disk(context.Background(), filepath.Join(root, "none"))
	wantFinding(t, d, prevents, "nothing can be written")

	d.participants(3, nil)
	wantFinding(t, d, noted, "nobody was heard in domain 3")
	d.participants(3, []ros2.Peer{{ID: "1", Vendor: "Fast DDS", Reachable: true}, {ID: "2", Vendor: "Fast DDS", Nodes: []string{"/camera"}, Reason: "no UDP unicast locator"}})
	wantFinding(t, d, fine, "2 in domain 3: 2 of Fast DDS")
	wantFinding(t, d, prevents, "participant /camera: cannot be received (Fast DDS): no UDP unicast locator")

	best, reliable := ros.DefaultQoS(), ros.DefaultQoS()
	best.Reliability, reliable.Reliability = ros.BestEffort, ros.Reliable
	typ := ros.Topic{Name: "/scan", Type: "sensor_msgs/msg/LaserScan"}
	d.qos([]ros.TopicInfo{{Name: "/scan", Types: []string{typ.Type}, Publishers: []ros.Endpoint{{Topic: typ, QoS: best, Node: "/lidar"}},
		Subscriptions: []ros.Endpoint{{Topic: typ, QoS: reliable, Node: "/slam"}, {Topic: typ, QoS: best, Node: "/rviz"}}},
		{Name: "/odd", Types: []string{"a/msg/A", "b/msg/B"}}})
	wantFinding(t, d, noted, "/lidar does not reach /slam: reliability")
	wantFinding(t, d, hurts, "topic /odd: has several types: a/msg/A, b/msg/B")
	for _, f := range d.list {
		if strings.Contains(f.text, "/rviz") {
			t.Errorf("%+v", f)
		}
	}
}

func TestDoctor(t *testing.T) {
	domain := "77"
	var out, errs bytes.Buffer
	none := func(string) string { return "" }
	code := run([]string{"doctor", "--listen", "0.3", "--domain-id", domain, "--localhost", "--dir", t.TempDir()}, strings.NewReader(""), &out, &errs, none)
	if code != 0 {
		t.Errorf("exit code %d: %s%s", code, &out, &errs)
	}
	for _, part := range []string{"interface ", "environment: nothing of ROS or DDS is set", "participants: nobody was heard in domain " + domain, "disk of ", " MB/s, the longest wait was ", "findings that prevent recording: 0"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in:\n%s", part, &out)
		}
	}
	out.Reset()
	zenoh := func(name string) string { return map[string]string{"RMW_IMPLEMENTATION": "rmw_zenoh_cpp"}[name] }
	code = run([]string{"doctor", "--no-disk", "--listen", "0"}, strings.NewReader(""), &out, &errs, zenoh)
	if code != 1 || !strings.Contains(out.String(), "Zenoh cannot be received") {
		t.Errorf("exit code %d:\n%s", code, &out)
	}
}
