//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// testRun is what go test said of one package.
type testRun struct {
	outcome map[string]string   // by name ("TestX/sub"): pass, fail, skip
	logged  map[string][]string // by name: lines
}

// goTest runs the tests of a package whose names match, and never takes a result from an earlier run. That tests fail is in
// the result; an error is that they were not run. What a failed test printed goes to the notes.
func goTest(b *bench, pkg, run string, args ...string) (*testRun, error) {
	cmd := exec.CommandContext(b.ctx, "go", append([]string{"test", "-json", "-count=1", "-timeout=15m", "-run", run, pkg}, args...)...)
	cmd.Env = append(os.Environ(), "GOBAG_INTEROP=required")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if e := new(exec.ExitError); err != nil && !errors.As(err, &e) {
		return nil, fmt.Errorf("go test %s: %w", pkg, err)
	}
	r, failure := parseTests(out)
	if len(r.outcome) == 0 {
		return nil, fmt.Errorf("go test %s -run %s: no test was run: %s", pkg, run, strings.TrimSpace(stderr.String()+failure))
	}
	for name, outcome := range r.outcome {
		if outcome == "fail" {
			for _, line := range r.logged[name] {
				b.note("%s: %s", name, line)
			}
		}
	}
	return r, nil
}

// tested is what goTest said of a package.
type tested struct {
	of  format
	run *testRun
	err error
}

// goTests runs goTest on several packages, two at the same time, and returns the results in their order.
func goTests(b *bench, of []format, run string, args ...string) []tested {
	results := make([]tested, len(of))
	turns := make(chan struct{}, 2)
	var wg sync.WaitGroup
	for i, f := range of {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			r, err := goTest(b, f.pkg, run, args...)
			results[i] = tested{f, r, err}
		})
	}
	wg.Wait()
	return results
}

// parseTests reads test2json's events. failure is what was printed outside of tests.
func parseTests(out []byte) (r *testRun, failure string) {
	r = &testRun{outcome: map[string]string{}, logged: map[string][]string{}}
	in := bufio.NewScanner(bytes.NewReader(out))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(in.Bytes(), &e) != nil {
			failure += in.Text() + "\n"
			continue
		}
		switch line := strings.TrimSpace(e.Output); {
		case e.Test == "":
			failure += e.Output
		case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
			r.outcome[e.Test] = e.Action
		case e.Action == "output" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- "):
			r.logged[e.Test] = append(r.logged[e.Test], line)
		}
	}
	return r, failure
}

// count counts the tests with that many names in theirs (1: no subtest) by outcome.
func (r *testRun) count(depth int) (pass, fail, skip int) {
	for name, outcome := range r.outcome {
		if strings.Count(name, "/") != depth-1 {
			continue
		}
		switch outcome {
		case "pass":
			pass++
		case "fail":
			fail++
		default:
			skip++
		}
	}
	return pass, fail, skip
}

// numbers adds up the groups of a pattern over every line that was logged; matches is how many lines it fits.
func (r *testRun) numbers(pattern *regexp.Regexp) (sums []int, matches int) {
	sums = make([]int, pattern.NumSubexp())
	for _, lines := range r.logged {
		for _, line := range lines {
			m := pattern.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			matches++
			for i, text := range m[1:] {
				n, _ := strconv.Atoi(text)
				sums[i] += n
			}
		}
	}
	return sums, matches
}

// passed puts a test into a row: it must have run, and everything below it too.
func (r *testRun) passed(b *bench, name, figure string) {
	below, outcome := 0, r.outcome[name]
	for test, o := range r.outcome {
		if strings.HasPrefix(test, name+"/") && o == "pass" {
			below++
		}
	}
	text := map[string]string{"": "not there", "pass": "passes", "fail": "fails", "skip": "skipped"}[outcome]
	if below > 0 {
		text += fmt.Sprintf(" (%d cases)", below)
	}
	b.figure(outcome == "pass", figure, "test "+name+" passes", "%s", text)
}
