//go:build linux

package interop_test

import (
	"testing"

	"github.com/gobag/gobag/interop/lab"
)

// sqlite3 and @foxglove/rosbag2 read a recorded bag, split into files, as gobag does: without repeats, which only gobag
// knows to leave out.
func TestOtherReaders(t *testing.T) {
	t.Parallel()
	_, err := lab.Tool("sqlite3")
	needs(t, err)
	_, err = lab.NodeReader()
	needs(t, err)
	n := newNet(t)
	rec := record(t, n, robot, "-d", "1", "-s", "sqlite3", "--repeat-all-transient-local", "0")
	pub := publish(t, n, robot, "--seconds", "3", "--wait", "1")
	must(t, pub.Wait(patience))
	must(t, rec.Stop(patience))
	own, err := lab.ReadOwn(rec.Dir)
	must(t, err)
	if len(own) < 1000 {
		t.Fatalf("%d messages recorded", len(own))
	}
	for name, read := range map[string]func(string) ([]lab.Line, error){"sqlite3": lab.ReadSQLite, "@foxglove/rosbag2": lab.ReadNode} {
		theirs, err := read(rec.Dir)
		must(t, err)
		if err := lab.SameLines("gobag", own, name, theirs); err != nil {
			t.Error(err)
		}
	}
}
