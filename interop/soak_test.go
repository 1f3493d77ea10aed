//go:build linux

package interop_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// The robot runs for minutes, with splits, while other publishers come, go in order and are killed. Nothing acknowledged
// is lost, and the recorder's memory and descriptors do not grow.
func TestSoak(t *testing.T) {
	if os.Getenv("GOBAG_SOAK") == "" {
		t.Skip("long: make soak")
	}
	soakTime, err := time.ParseDuration(os.Getenv("GOBAG_SOAK")) // at 32 MB/s: 2 GB a minute
	must(t, err)
	n := newNet(t)
	steady := []lab.Topic{
		{Kind: lab.Imu, Name: "/imu", Hz: 1000},
		{Kind: lab.Image, Name: "/camera/image", Hz: 30, Size: 1_000_000},
		{Kind: lab.Blob, Name: "/load", Instances: 10, Hz: 20, Size: 10_000},
	}
	guest := []lab.Topic{{Kind: lab.String, Name: "/guest", Hz: 100}}
	rec := record(t, n, slices.Concat(steady, guest), "-b", "1000000000")
	pub := publish(t, n, steady, "--seconds", strconv.Itoa(int(soakTime/time.Second)), "--wait", "1")
	var rss, fds []int
	for i := 0; pub.Running(); i++ {
		p := publish(t, n, guest, "--seconds", "8", "--wait", "1")
		time.Sleep(4 * time.Second)
		if i%3 == 2 {
			p.Kill()
		} else {
			must(t, p.Wait(patience))
		}
		rss, fds = append(rss, residentKiB(t, rec.Pid())), append(fds, openFiles(t, rec.Pid()))
		time.Sleep(2 * time.Second)
	}
	must(t, pub.Wait(patience))
	must(t, rec.Stop(2*patience))

	sent := lab.SentBy(pub)
	info, err := gobag.Info(rec.Dir)
	must(t, err)
	for _, topic := range steady {
		for _, name := range topic.Names() {
			if e := info.Topic(name); e.Count != sent[name].Count || e.Lost != (lab.Lost{}) {
				t.Errorf("%s: %d sent, the bag has %d, lost %+v", name, sent[name].Count, e.Count, e.Lost)
			}
		}
	}
	if g := info.Topic("/guest"); g.Count == 0 || g.Lost.Queue+g.Lost.Storage > 0 {
		t.Errorf("/guest: %d recorded, lost %+v", g.Count, g.Lost)
	}
	third := max(len(rss)/3, 1)
	early, late := slices.Max(rss[:third]), slices.Min(rss[len(rss)-third:])
	t.Logf("%d messages in %d files; resident %d KiB at most in the first third, %d KiB at least in the last; descriptors %v",
		info.MessageCount, len(info.Files), early, late, fds)
	if late > early+16<<10 {
		t.Errorf("resident memory grew from %d to %d KiB", early, late)
	}
	if d := fds[len(fds)-1] - fds[0]; d > 8 {
		t.Errorf("%d more open files at the end than at the start", d)
	}
}

// residentKiB is the resident memory of a process.
func residentKiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			must(t, err)
			return kib
		}
	}
	t.Fatalf("process %d: %v", pid, syscall.ESRCH)
	return 0
}

func openFiles(t *testing.T, pid int) int {
	t.Helper()
	es, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(t, err)
	return len(es)
}
