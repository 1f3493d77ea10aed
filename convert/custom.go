package convert

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gobag/gobag/bag"
)

// customData puts together what the inputs and the output say. On a key that several inputs have the earlier counts;
// ledgers are added up and keep the topics that the output has.
func (j *job) customData(own map[string]string, kept []*merged) map[string]string {
	out := map[string]string{}
	var ledger *bag.Ledger
	for _, in := range j.inputs {
		info := in.r.Info()
		if info.Ledger != nil {
			ledger = addLedger(ledger, info.Ledger)
		}
		for _, k := range slices.Sorted(maps.Keys(info.CustomData)) {
			v := info.CustomData[k]
			have, there := out[k]
			switch {
			case k == bag.KeyState || k == bag.KeyVersion || k == bag.KeyRepeats: // the writer's own
			case k == bag.KeyLedger && info.Ledger != nil:
			case !there:
				out[k] = v
			case have != v:
				j.o.Logger.Warn(fmt.Sprintf("custom data %q: the inputs differ; that of the first counts", k))
			}
		}
	}
	if ledger != nil {
		names := map[string]bool{}
		for _, m := range kept {
			names[m.topic.Name] = true
		}
		maps.DeleteFunc(ledger.Topics, func(name string, _ bag.TopicLedger) bool { return !names[name] })
		out[bag.KeyLedger] = ledger.Encode()
	}
	maps.Copy(out, own)
	return out
}

func addLedger(sum, l *bag.Ledger) *bag.Ledger {
	if sum == nil {
		sum = &bag.Ledger{Topics: map[string]bag.TopicLedger{}}
	}
	for name, t := range l.Topics {
		s := sum.Topics[name]
		s.Received += t.Received
		s.Recorded += t.Recorded
		s.Lost.Wire += t.Lost.Wire
		s.Lost.Queue += t.Lost.Queue
		s.Lost.Storage += t.Lost.Storage
		s.UnknownWriters += t.UnknownWriters
		s.Skipped += t.Skipped
		s.Deleted += t.Deleted
		if t.Gap > s.Gap {
			s.Gap, s.GapAt = t.Gap, t.GapAt
		}
		if s.Rate == 0 {
			s.Rate, s.Jitter = t.Rate, t.Jitter
		} else if t.Rate > 0 { // of several bags there is no one rate
			s.Rate, s.Jitter = 0, 0
		}
		sum.Topics[name] = s
	}
	return sum
}

func (j *job) distro() string {
	for _, in := range j.inputs {
		if d := in.r.Info().ROSDistro; d != "" {
			return d
		}
	}
	return ""
}
