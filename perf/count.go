package perf

import (
	"context"
	"fmt"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/ros"
)

// count reads the bag of a cell: what is in it, and what its ledger says is lost.
func (c *Cell) count(ctx context.Context, dir string) error {
	r, err := bag.Open(ctx, dir, bag.ReaderOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	info := r.Info()
	if info.CutOff {
		return fmt.Errorf("the bag was not closed in order")
	}
	c.Storage, c.BagBytes = info.StorageID, info.Size
	for _, t := range info.Topics {
		if !strings.HasPrefix(t.Name, LoadTopicRoot) {
			continue
		}
		c.Recorded += t.Count
		if t.Ledger == nil {
			return fmt.Errorf("the bag has no ledger for %s", t.Name)
		}
		c.Lost.Wire += t.Ledger.Lost.Wire
		c.Lost.Queue += t.Ledger.Lost.Queue
		c.Lost.Storage += t.Ledger.Lost.Storage
	}
	c.balance()
	return nil
}

// balance checks that every message sent is recorded or counted as lost. Only of a best-effort publisher may some be
// unaccounted for.
func (c *Cell) balance() {
	c.Unknown = int64(c.Publisher.Sent) - int64(c.Recorded) - int64(c.Lost.Total())
	c.Balanced = c.Unknown == 0 || c.Unknown > 0 && c.Reliability == ros.BestEffort.String()
}
