package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestRecordDryRun: what would be recorded is named with its rate, the disk is measured, and nothing is left.
func TestRecordDryRun(t *testing.T) {
	domain := testDomain(t)
	talk(t, domain)
	root := t.TempDir()
	base := []string{"record", "--dry-run", "--domain-id", strconv.Itoa(domain), "--localhost", "-o", filepath.Join(root, "new", "run")}
	r := cli(nil, append(base, "/imu/data", "--duration", "1.5", "-b", "1GB", "-s", "sqlite3")...)
	if r.code != 0 {
		t.Fatalf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	for _, want := range []string{`Would record 1 topic, \d`, `/imu/data +sensor_msgs/msg/Imu +\d+ +0\.\d+ +0 +reliable, volatile, keep_last`, `storage sqlite3, preset resilient`,
		`takes \d+ MB/s, its longest wait was .*: fits`, `are free: enough for`, `ends after 1.5s, a new file at 953.7 MiB, cache `} {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("no %s in\n%s", want, r.out)
		}
	}
	if es, err := os.ReadDir(root); err != nil || len(es) > 0 {
		t.Error(es, err)
	}
	if r := cli(nil, append(base, "/nobody", "--duration", "0.5")...); r.code != exitNothing || !strings.Contains(r.out, "topic '/nobody' is not there") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
}
