//go:build linux

package main

import (
	"regexp"
	"testing"
)

func TestParseTests(t *testing.T) {
	r, failure := parseTests([]byte(`{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA/b","Output":"    x_test.go:7: 12 of 30 messages\n"}
{"Action":"output","Package":"p","Test":"TestA/c","Output":"    x_test.go:7: 5 of 6 messages\n"}
{"Action":"output","Package":"p","Test":"TestA/b","Output":"--- PASS: TestA/b (0.00s)\n"}
{"Action":"pass","Package":"p","Test":"TestA/b"}
{"Action":"fail","Package":"p","Test":"TestA/c"}
{"Action":"skip","Package":"p","Test":"TestA/d"}
{"Action":"fail","Package":"p","Test":"TestA"}
# p
{"Action":"output","Package":"p","Output":"FAIL\n"}
`))
	if failure != "# p\nFAIL\n" {
		t.Errorf("outside of tests: %q", failure)
	}
	if pass, fail, skip := r.count(2); pass != 1 || fail != 1 || skip != 1 {
		t.Errorf("%d pass, %d fail, %d skip", pass, fail, skip)
	}
	if sums, n := r.numbers(regexp.MustCompile(`(\d+) of (\d+) messages`)); n != 2 || sums[0] != 17 || sums[1] != 36 {
		t.Errorf("%v in %d lines", sums, n)
	}
}
