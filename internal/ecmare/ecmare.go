// Package ecmare compiles the regular expressions of the command line: ECMAScript's grammar, as rosbag2 uses it
// (std::regex), with a time limit per match, so that no expression and no topic name can stall a recording.
package ecmare

import (
	"fmt"
	"time"

	"github.com/dlclark/regexp2/v2"
)

// Limit is the longest time one match may take. The clock behind it ticks every 100 ms, so a match ends within about
// twice that.
const Limit = 200 * time.Millisecond

// Regexp is a compiled expression. Safe for concurrent use.
type Regexp struct {
	expr   string
	search *regexp2.Regexp
	whole  *regexp2.Regexp
}

// Compile parses expr. The error names the expression and what is wrong with it.
func Compile(expr string) (*Regexp, error) {
	search, err := compile(expr)
	if err != nil {
		return nil, err
	}
	whole, err := compile("^(?:" + expr + ")$")
	if err != nil {
		return nil, err
	}
	return &Regexp{expr, search, whole}, nil
}

func compile(expr string) (*regexp2.Regexp, error) {
	re, err := regexp2.Compile(expr, regexp2.ECMAScript)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", expr, err)
	}
	re.MatchTimeout = Limit
	return re, nil
}

// String returns the expression as it was given.
func (r *Regexp) String() string { return r.expr }

// Search says whether the expression matches anywhere in s, as rosbag2's record does. An error means that the match
// took longer than Limit or too much memory; then nothing is known about s.
func (r *Regexp) Search(s string) (bool, error) { return r.match(r.search, s) }

// Whole says whether the expression matches the whole of s, as rosbag2's play does. Errors are those of Search.
func (r *Regexp) Whole(s string) (bool, error) { return r.match(r.whole, s) }

func (r *Regexp) match(re *regexp2.Regexp, s string) (bool, error) {
	ok, err := re.MatchString(s)
	if err != nil {
		return false, fmt.Errorf("regular expression %q on %q: %w", r.expr, s, err)
	}
	return ok, nil
}
