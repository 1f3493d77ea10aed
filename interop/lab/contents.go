//go:build linux

package lab

import (
	"fmt"

	"github.com/gobag/gobag/plugin"
)

// Recorded is what a bag holds of one topic of the peers.
type Recorded struct {
	Type    string
	Hash    string   // type hash
	Numbers []int64  // running numbers in the bag's order
	Stamps  []int64  // RecvTime of each, ns
	Seqs    []uint64 // the writer's sequence number of each
	Errors  []error  // payloads that differ from what was published; at most ten are kept
	Bad     int      // how many there were
}

// Contents reads a bag and compares every payload with what the publisher of its topic wrote. Topics that are not in the
// list are an error.
func Contents(dir string, topics []Topic) (map[string]*Recorded, error) {
	checkers := map[string]*Checker{}
	for _, t := range topics {
		for i, name := range t.Names() {
			checkers[name] = &Checker{Topic: t, Instance: i}
		}
	}
	all := map[string]*Recorded{}
	for name := range checkers {
		all[name] = &Recorded{}
	}
	err := EachMessage(dir, func(t plugin.Topic, m *plugin.Message) error {
		c, ok := checkers[t.Name]
		if !ok {
			return fmt.Errorf("bag %s holds topic %s, which nobody published", dir, t.Name)
		}
		r := all[t.Name]
		r.Type, r.Hash = t.Type, t.TypeHash
		n, err := c.Check(m.Data)
		if err != nil {
			if r.Bad++; r.Bad <= 10 {
				r.Errors = append(r.Errors, err)
			}
		}
		r.Numbers = append(r.Numbers, int64(n))
		r.Stamps = append(r.Stamps, m.RecvTime)
		r.Seqs = append(r.Seqs, m.Seq)
		return nil
	})
	return all, err
}
