package leveldb

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// goleveldb, with which the tests compare, leaves this one behind for a second after Close.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"))
}
