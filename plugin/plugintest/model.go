package plugintest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/gobag/gobag/plugin"
)

// randomOperations does the same random things to the format under test and to the reference driver, and compares
// what both then say. The seed is printed when something differs.
func randomOperations(t T, d plugin.Driver, o Options) {
	seed := uint64(time.Now().UnixNano())
	rounds := uint64(6)
	if raceDetector {
		rounds = 2
	}
	for round := range rounds {
		if err := randomRound(t, d, o, seed+round); err != nil {
			t.Fatalf("seed %d: %v", seed+round, err)
		}
	}
}

func randomRound(t T, d plugin.Driver, o Options, seed uint64) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	ref := NewMemory()
	path, refPath := newPath(t, d), newPath(t, ref)
	w, err := d.Create(background, path, o.Create)
	if err != nil {
		return err
	}
	rw, err := ref.Create(background, refPath, o.Create)
	if err != nil {
		return err
	}
	topics := 0
	for range 150 + rng.IntN(300) {
		switch n := rng.IntN(100); {
		case n < 12:
			tp := randomTopic(rng)
			id, err := w.AddTopic(tp)
			want, refErr := rw.AddTopic(tp)
			if id != want || err != nil || refErr != nil {
				return fmt.Errorf("add topic %+v: %d, %v; reference %d, %v", tp, id, err, want, refErr) //nolint:errorlint // one may be nil, which %w cannot print
			}
			topics = max(topics, int(id))
		case n < 90:
			batch := randomBatch(rng, topics)
			err, refErr := w.Write(batch), rw.Write(batch)
			if (err == nil) != (refErr == nil) || errors.Is(err, plugin.ErrUnknownTopic) != errors.Is(refErr, plugin.ErrUnknownTopic) {
				return fmt.Errorf("write: %v; reference %v", err, refErr) //nolint:errorlint // one is nil, which %w cannot print
			}
		case n < 96:
			if err := errors.Join(w.Sync(), rw.Sync()); err != nil {
				return err
			}
		default:
			if err := sameContent(rng, d, ref, path, refPath, true); err != nil {
				return fmt.Errorf("while writing: %w", err)
			}
		}
	}
	m := plugin.Metadata{Version: 9, Text: fmt.Sprint("version: 9 # ", seed)}
	if err := errors.Join(w.Close(m), rw.Close(m)); err != nil {
		return err
	}
	return sameContent(rng, d, ref, path, refPath, false)
}

func randomTopic(rng *rand.Rand) plugin.Topic {
	t := plugin.Topic{Name: oddNames[rng.IntN(len(oddNames))], Type: fmt.Sprintf("pkg/msg/T%d", rng.IntN(3)), SerializationFormat: "cdr"}
	if rng.IntN(3) == 0 {
		t.OfferedQoS = fmt.Sprintf("- depth: %d\n", rng.IntN(10))
	}
	if rng.IntN(3) == 0 {
		t.Sources = make([]string, rng.IntN(4))
		for i := range t.Sources {
			t.Sources[i] = fmt.Sprint("writer ", rng.IntN(100))
		}
	}
	return t
}

func randomBatch(rng *rand.Rand, topics int) []plugin.Message {
	batch := make([]plugin.Message, rng.IntN(20))
	for i := range batch {
		m := plugin.Message{Topic: plugin.TopicID(1 + rng.IntN(max(topics, 1))), RecvTime: rng.Int64N(50), Source: rng.Uint32N(4), Seq: rng.Uint64N(1000)}
		switch rng.IntN(40) {
		case 0:
			m.RecvTime = math.MinInt64 + rng.Int64N(3)
		case 1:
			m.RecvTime = math.MaxInt64 - rng.Int64N(3)
		case 2:
			m.RecvTime = -rng.Int64N(5)
		case 3:
			m.Topic += 5
		case 4:
			m.Order = rng.Uint64N(3000)
		}
		if rng.IntN(2) == 0 {
			m.SendTime = m.RecvTime - rng.Int64N(10)
		}
		size := rng.IntN(200)
		if rng.IntN(30) == 0 {
			size = rng.IntN(200_000)
		}
		m.Data = payload(rng.Uint64(), size)
		batch[i] = m
	}
	return batch
}

// sameContent compares two storages by a few random queries. With live set both are being written, and the format
// under test may hold back what was not synced.
func sameContent(rng *rand.Rand, d, ref plugin.Driver, path, refPath string, live bool) error {
	r, err := d.OpenReader(background, path, plugin.ReadOptions{})
	if err != nil {
		return err
	}
	defer r.Close()
	rr, err := ref.OpenReader(background, refPath, plugin.ReadOptions{})
	if err != nil {
		return err
	}
	defer rr.Close()
	if live {
		return liveContent(r, rr)
	}
	got, want := r.Info(), rr.Info()
	if got.Messages != want.Messages || got.Start != want.Start || got.End != want.End || len(got.Topics) != len(want.Topics) || got.Unclean {
		return fmt.Errorf("info %+v, reference %+v", got, want)
	}
	f := d.Features()
	for i := range got.Topics {
		g, w := got.Topics[i], want.Topics[i]
		if !f.Source {
			g.Sources, w.Sources = nil, nil
		}
		g.Bytes, w.Bytes = 0, 0
		if a, b := fmt.Sprintf("%+v", g), fmt.Sprintf("%+v", w); a != b {
			return fmt.Errorf("topic %q, reference %q", a, b)
		}
	}
	for range 8 {
		q := randomQuery(rng, len(want.Topics), f.Reverse)
		a, err := ReadAll(r, q)
		if err != nil {
			return err
		}
		b, err := ReadAll(rr, q)
		if err != nil {
			return err
		}
		if len(a) != len(b) {
			return fmt.Errorf("%s: %d messages, reference %d", describe(q), len(a), len(b))
		}
		for i := range a {
			strip(&b[i], f)
			if !SameMessage(&a[i], &b[i]) {
				return fmt.Errorf("%s: message %d is %s, reference %s", describe(q), i, show(&a[i]), show(&b[i]))
			}
		}
	}
	return nil
}

func strip(m *plugin.Message, f plugin.Features) {
	if !f.SendTime {
		m.SendTime = 0
	}
	if !f.Source {
		m.Source, m.Seq = 0, 0
	}
}

// liveContent checks that r holds a part of what the reference holds: the first messages that were written.
func liveContent(r, ref plugin.Reader) error {
	got, err := ReadAll(r, plugin.Query{})
	if err != nil {
		return err
	}
	all, err := ReadAll(ref, plugin.Query{})
	if err != nil {
		return err
	}
	byOrder := map[uint64]*plugin.Message{}
	for i := range all {
		byOrder[all[i].Order] = &all[i]
	}
	for i := range got {
		w := byOrder[got[i].Order]
		if w == nil || w.RecvTime != got[i].RecvTime || string(w.Data) != string(got[i].Data) {
			return fmt.Errorf("message %s was never written like this", show(&got[i]))
		}
	}
	if n := r.Info().Messages; n != uint64(len(got)) {
		return fmt.Errorf("info says %d messages, read were %d", n, len(got))
	}
	return nil
}

func randomQuery(rng *rand.Rand, topics int, reverse bool) plugin.Query {
	q := plugin.Query{Reverse: reverse && rng.IntN(2) == 0}
	if rng.IntN(2) == 0 {
		q.Topics = make([]plugin.TopicID, rng.IntN(topics+1))
		for i := range q.Topics {
			q.Topics[i] = plugin.TopicID(rng.IntN(topics + 2))
		}
	}
	if rng.IntN(2) == 0 {
		a := rng.Int64N(60) - 5
		q.Range = &plugin.TimeRange{Start: a, End: a + rng.Int64N(20)}
	}
	return q
}
