package bag

import (
	"os"
	"runtime"
	"syscall"
	"testing"
)

// A priority is that of one thread; those that run other things keep theirs.
func TestThreadPriority(t *testing.T) {
	nice := func() int {
		v, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
		if err != nil {
			t.Fatal(err)
		}
		return 20 - v // what the system call returns is never negative
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := nice()
	if before > 10 {
		t.Skipf("the test runs at nice %d already", before)
	}
	var inside int
	withPriority(before+3, func(err error) { t.Error(err) }, func() { inside = nice() })
	if inside != before+3 || nice() != before {
		t.Errorf("nice %d inside, %d outside; want %d, %d", inside, nice(), before+3, before)
	}
	if os.Geteuid() != 0 {
		refused := false
		withPriority(-20, func(error) { refused = true }, func() {})
		if !refused {
			t.Error("the highest priority is given to everybody")
		}
	}
}
