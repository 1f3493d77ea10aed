package ecmare

import (
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		regexp2.StopTimeoutClock()
	}))
}

func TestMatch(t *testing.T) {
	cases := []struct {
		expr, s       string
		search, whole bool
	}{
		{"camera", "/front/camera/image", true, false},
		{"^/front", "/front/camera", true, false},
		{"/front/.*", "/front/camera", true, true},
		{`/cam\d+`, "/cam12", true, true},
		{`^/(?!tf)`, "/tf_static", false, false},
		{`^/(?!tf).*$`, "/odom", true, true},
		{"/a|/ab", "/ab", true, true}, // std::regex_match tries the second branch too
		{"a$", "/a\n", false, false},  // ECMAScript: $ is the end only
		{"", "/a", true, false},
		{"/o'brien", "/o'brien", true, true},
	}
	for _, c := range cases {
		re, err := Compile(c.expr)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := re.Search(c.s); got != c.search || err != nil {
			t.Errorf("search %q in %q: %v %v, want %v", c.expr, c.s, got, err, c.search)
		}
		if got, err := re.Whole(c.s); got != c.whole || err != nil {
			t.Errorf("whole %q on %q: %v %v, want %v", c.expr, c.s, got, err, c.whole)
		}
		if re.String() != c.expr {
			t.Errorf("string: %q", re.String())
		}
	}
}

func TestBadExpression(t *testing.T) {
	for _, expr := range []string{"(", "[a", "a**", `(?<n>a)\k<m>`, "a)|(b"} {
		_, err := Compile(expr)
		if err == nil {
			t.Errorf("%q compiled", expr)
			continue
		}
		if !strings.Contains(err.Error(), "regular expression") {
			t.Errorf("%q: %v", expr, err)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	re, err := Compile("(a|aa)+$")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	_, err = re.Search(strings.Repeat("a", 64) + "!")
	if err == nil {
		t.Fatal("an exponential match ended without error")
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Fatalf("stopped after %v", d)
	}
}
