package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// built is the directory of the binary that some tests run; made on first use.
var built struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// binary builds the program once and returns its path.
func binary(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "gobag-test-"); built.err != nil {
			return
		}
		cmd := exec.Command("go", "build", "-o", filepath.Join(built.dir, "gobag"), ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "gobag")
}

// result is what a run of the program did.
type result struct {
	code        int
	out, errOut string
}

// cli runs the program in this process. env holds KEY=VALUE words; nothing else is in the environment.
func cli(env []string, words ...string) result {
	var out, errOut bytes.Buffer
	code := run(words, strings.NewReader(""), &out, &errOut, func(key string) string {
		for _, w := range env {
			if v, ok := strings.CutPrefix(w, key+"="); ok {
				return v
			}
		}
		return ""
	})
	return result{code, out.String(), errOut.String()}
}

// shared is the folder of shared test data; "" if it is not there.
func shared(parts ...string) string {
	dir := os.Getenv("GOBAG_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return filepath.Join(append([]string{dir}, parts...)...)
}

// testDomain is a ROS domain that nobody uses.
func testDomain(t *testing.T) int {
	t.Helper()
	d, err := freeDomain()
	if err != nil {
		t.Fatal(err)
	}
	return d
}
