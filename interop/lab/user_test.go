//go:build linux

package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What a process that was killed had changed is set back by the next one.
func TestSweepLimits(t *testing.T) {
	value, err := os.ReadFile(rmemMax)
	if err != nil || os.WriteFile(rmemMax, value, 0o644) != nil {
		t.Skip("net.core.rmem_max cannot be set")
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	note := func(pid int) string {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("%s%d%s", namePrefix, pid, rmemNote))
		if err := os.WriteFile(path, value, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(path) })
		return path
	}
	dead, alive := note(gone.Process.Pid), note(os.Getpid())
	sweepLimits()
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the note of a process that is gone is still there: %v", err)
	}
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("the note of a process that runs is gone: %v", err)
	}
}
