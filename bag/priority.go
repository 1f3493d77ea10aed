package bag

import (
	"fmt"
	"runtime"
	"sync"
)

// checkPriority says whether n is a priority of threads on this system.
func checkPriority(n int) error {
	if n != 0 && (n < leastPriority || n > mostPriority) {
		return fmt.Errorf("priority %d of compression threads: not in %d..%d", n, leastPriority, mostPriority)
	}
	return nil
}

// withPriority runs f in a thread of its own that has the priority n (0: in any thread) and returns when f does. refused
// is called if the system does not grant the priority; f runs all the same.
func withPriority(n int, refused func(error), f func()) {
	if n == 0 {
		f()
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // it is never unlocked: the thread ends with the goroutine
		if err := setThreadPriority(n); err != nil {
			refused(err)
		}
		f()
	})
	wg.Wait()
}
