package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestRecordUnprivileged: without privileges the kernel gives no more than net.core.rmem_max; record says so, with the
// command that mends it, and records all the same.
func TestRecordUnprivileged(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	text, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	if err != nil {
		t.Skip(err)
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if 2*most >= smallBuffer {
		t.Skipf("this machine gives everybody %d bytes", most)
	}
	dir := t.TempDir()
	cmd := exec.Command(binary(t), "record", "-a", "-o", filepath.Join(dir, "run"), "--duration", "0.3", "--domain-id", strconv.Itoa(testDomain(t)), "--localhost")
	if os.Getuid() == 0 {
		const nobody = 65534
		for d := dir; d != "/" && d != "."; d = filepath.Dir(d) { // the directories of tests are private
			if fi, err := os.Stat(d); err == nil && fi.Mode().Perm()&5 != 5 {
				if err := os.Chmod(d, fi.Mode().Perm()|0o055); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, d := range []string{dir, built.dir} {
			if err := os.Chmod(d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != 3 { // nobody publishes
		t.Fatalf("exit %d, %v\n%s", code, err, out)
	}
	want := "the kernel grants a receive buffer of " + fileSize(int64(2*most)) + " only"
	if !strings.Contains(string(out), want) || !strings.Contains(string(out), "sudo sysctl -w net.core.rmem_max=33554432") {
		t.Errorf("want %q and the command in\n%s", want, out)
	}
	if strings.Count(string(out), "receive buffer") != 1 {
		t.Errorf("said more than once:\n%s", out)
	}
}
