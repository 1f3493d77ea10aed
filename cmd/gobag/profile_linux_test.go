package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// With --profile robot every thread of the recorder gives way to others, and the kernel would rather kill it than them.
func TestProfileRobot(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	cmd := exec.Command(binary(t), "record", "-a", "-o", filepath.Join(t.TempDir(), "run"), "--duration", "20", "--domain-id", strconv.Itoa(testDomain(t)),
		"--localhost", "--profile", "robot")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	}()
	pid := cmd.Process.Pid
	look := func() (bad string) {
		score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		if err != nil || strings.TrimSpace(string(score)) != strconv.Itoa(robotOOMScore) {
			return fmt.Sprintf("OOM score %q, %v", score, err)
		}
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil || len(threads) < 3 {
			return fmt.Sprintf("%d threads, %v", len(threads), err)
		}
		for _, e := range threads {
			id, _ := strconv.Atoi(e.Name())
			if p, err := unix.Getpriority(unix.PRIO_PROCESS, id); err == nil && 20-p < robotNice {
				return fmt.Sprintf("thread %d of %d has nice value %d", id, len(threads), 20-p)
			}
		}
		return ""
	}
	bad := look()
	for end := time.Now().Add(15 * time.Second); bad != "" && time.Now().Before(end); bad = look() {
		time.Sleep(50 * time.Millisecond)
	}
	if bad != "" {
		t.Error(bad)
	}
	r := cli(nil, "record", "-a", "--profile", "car")
	if r.code != exitUsage || !strings.Contains(r.errOut, "robot") {
		t.Errorf("%+v", r)
	}
}
