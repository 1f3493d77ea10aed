package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestRecordNull: nothing is kept, everything is counted; the flags that need something kept are refused.
func TestRecordNull(t *testing.T) {
	domain := testDomain(t)
	talk(t, domain)
	dir := filepath.Join(t.TempDir(), "run")
	base := []string{"record", "/imu/data", "-s", "null", "-o", dir, "--domain-id", strconv.Itoa(domain), "--localhost"}
	r := cli(nil, append(base, "--max-messages", "100", "--backpressure", "/imu/data")...)
	if r.code != 0 || !strings.Contains(r.out, "Recorded 100 messages") || !strings.Contains(r.out, "into nothing (storage null)") || exists(dir) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	for _, flag := range [][]string{{"--snapshot-mode"}, {"--backpressure", "/imu/data", "-s", "mcap", "--snapshot-mode"}} {
		if r := cli(nil, append(base, flag...)...); r.code != 2 || exists(dir) {
			t.Errorf("%v: exit %d\n%s", flag, r.code, r.errOut)
		}
	}
}
