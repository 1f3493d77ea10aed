package bag

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// modelMessage is a message with the file it should be in.
type modelMessage struct {
	plugin.Message
	name string
	file int
}

// Random messages, topics, splits and queries against a slice.
func TestModel(t *testing.T) {
	for _, storage := range []string{"memory", "sqlite3", "leveldb"} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprint(storage, seed), func(t *testing.T) { runModel(t, storage, seed) })
		}
	}
}

func runModel(t *testing.T, storage string, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 99))
	dir := bagDir(t)
	var limit int64
	if seed%2 == 0 {
		limit = 86016 + rnd.Int64N(100_000)
		if storage != "memory" {
			limit += 700_000
		}
	}
	biggest := 100
	if seed%4 == 0 {
		biggest = 40_000
	}
	rounds := 80
	if biggest > 100 {
		rounds = 30
	}
	var splits atomic.Int64
	w := mustCreate(t, dir, WriterOptions{StorageID: storage, MaxBagSize: limit, OnSplit: func(string, string) { splits.Add(1) }})
	var want []modelMessage
	ids := map[string]plugin.TopicID{}
	stamp := rnd.Int64N(1000)
	for range rounds {
		if name := fmt.Sprintf("/t%d", rnd.IntN(6)); ids[name] == 0 || rnd.IntN(10) == 0 {
			id := mustTopic(t, w, name, "x/msg/"+name[1:])
			if ids[name] != 0 && ids[name] != id {
				t.Fatal("the id changed")
			}
			ids[name] = id
		}
		var batch []plugin.Message
		var model []modelMessage
		for range rnd.IntN(30) {
			switch rnd.IntN(20) {
			case 0:
				stamp -= rnd.Int64N(50)
			case 1, 2, 3, 4, 5, 6, 7:
			default:
				stamp += rnd.Int64N(10)
			}
			m := plugin.Message{RecvTime: stamp, SendTime: stamp - 1, Data: make([]byte, rnd.IntN(biggest))}
			if rnd.IntN(500) == 0 {
				m.RecvTime = []int64{math.MinInt64, math.MaxInt64, 0, -1}[rnd.IntN(4)]
			}
			for i := range m.Data {
				m.Data[i] = byte(rnd.Uint32())
			}
			name := slices.Sorted(func(yield func(string) bool) {
				for n := range ids {
					if !yield(n) {
						return
					}
				}
			})[rnd.IntN(len(ids))]
			m.Topic = ids[name]
			batch = append(batch, m)
			model = append(model, modelMessage{Message: m, name: name})
		}
		if len(batch) > 0 {
			mustWrite(t, w, batch...)
		}
		want = append(want, model...)
		if rnd.IntN(40) == 0 {
			if err := w.Split(); err != nil {
				t.Fatal(err)
			}
		}
		if rnd.IntN(40) == 0 {
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files := int(splits.Load())
	if s := w.Stats(); s.Messages != uint64(len(want)) || s.Files != files+1 {
		t.Fatalf("%+v, %d splits", s, files)
	}

	r := mustOpen(t, dir)
	info := r.Info()
	if len(info.Warnings) > 0 || info.CutOff || info.Messages != uint64(len(want)) || len(info.Files) != files+1 {
		t.Fatalf("%+v, want %d messages in %d files", info, len(want), files+1)
	}
	slack := int64(biggest) + 32<<10 + int64(len(readFile(t, filepath.Join(dir, MetadataFile)))) // metadata is written at closing
	at := 0                                                                                      // messages are in the files in the order of writing
	for n, f := range info.Files {
		if f.Messages == 0 && n < files {
			t.Errorf("%s is empty", f.Path)
		}
		var s span
		for range f.Messages {
			want[at].file = n
			s.add(want[at].RecvTime)
			at++
		}
		if start, d := s.times(); f.Start != start || f.Duration != d {
			t.Errorf("%s: start %d, duration %d, want %d, %d", f.Path, f.Start, f.Duration, start, d)
		}
		fi, err := os.Stat(filepath.Join(dir, f.Path))
		if err != nil {
			t.Fatal(err)
		}
		if limit > 0 && fi.Size() > limit+slack {
			t.Errorf("%s has %d bytes, the limit is %d", f.Path, fi.Size(), limit)
		}
	}
	if limit > 0 && biggest > 1000 && files < 2 {
		t.Errorf("only %d splits", files)
	}
	slices.SortStableFunc(want, func(a, b modelMessage) int {
		switch {
		case a.RecvTime != b.RecvTime && a.RecvTime < b.RecvTime:
			return -1
		case a.RecvTime != b.RecvTime:
			return 1
		}
		return a.file - b.file
	})
	if len(want) > 0 && (info.Start != want[0].RecvTime || info.End != want[len(want)-1].RecvTime) {
		t.Errorf("start %d, end %d", info.Start, info.End)
	}
	for range 8 {
		checkQuery(t, r, want, randomQuery(rnd, info, want))
	}
	checkQuery(t, r, want, plugin.Query{})
	checkQuery(t, r, want, plugin.Query{Reverse: true})
	checkQuery(t, r, want, plugin.Query{Topics: []plugin.TopicID{}})
	checkQuery(t, r, want, plugin.Query{Range: &plugin.TimeRange{Start: 5, End: 4}})
}

func randomQuery(rnd *rand.Rand, info Info, want []modelMessage) plugin.Query {
	q := plugin.Query{Reverse: rnd.IntN(3) == 0}
	if rnd.IntN(2) == 0 {
		q.Topics = []plugin.TopicID{}
		for _, tp := range info.Topics {
			if rnd.IntN(2) == 0 {
				q.Topics = append(q.Topics, tp.ID)
			}
		}
	}
	if rnd.IntN(2) == 0 && len(want) > 0 {
		a, b := want[rnd.IntN(len(want))].RecvTime, want[rnd.IntN(len(want))].RecvTime
		q.Range = &plugin.TimeRange{Start: min(a, b), End: max(a, b)}
	}
	return q
}

func checkQuery(t *testing.T, r *Reader, all []modelMessage, q plugin.Query) {
	t.Helper()
	topics := map[plugin.TopicID]TopicInfo{}
	byName := map[string]plugin.TopicID{}
	for _, tp := range r.Info().Topics {
		topics[tp.ID] = tp
		byName[tp.Name] = tp.ID
	}
	var want []modelMessage
	for _, m := range all {
		if q.Topics != nil && !slices.Contains(q.Topics, byName[m.name]) {
			continue
		}
		if q.Range != nil && (m.RecvTime < q.Range.Start || m.RecvTime > q.Range.End) {
			continue
		}
		want = append(want, m)
	}
	if q.Reverse {
		slices.Reverse(want)
	}
	got := readAll(t, r, q)
	if len(got) != len(want) {
		t.Fatalf("%+v: %d messages, want %d", q, len(got), len(want))
	}
	for i, m := range got {
		w := want[i]
		if m.RecvTime != w.RecvTime || m.SendTime != w.SendTime || topics[m.Topic].Name != w.name || string(m.Data) != string(w.Data) {
			t.Fatalf("%+v: message %d is %+v of %s, want %+v", q, i, m, topics[m.Topic].Name, w)
		}
	}
}
