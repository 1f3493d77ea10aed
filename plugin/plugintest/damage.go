package plugintest

import (
	"errors"

	"github.com/gobag/gobag/plugin"
)

// Damage is one row of a format's table of damages. The suite makes a storage of DamageMessages messages, closes it,
// lets Break damage it, and reads it. Whatever the damage, nothing may panic, and every message that is read must be
// one that was written, unchanged and in order, without gaps when reading forwards; an end without an error means that
// all of them came.
type Damage struct {
	Name    string
	Break   func(path string) error
	Refused bool // OpenReader fails, with a CorruptError or ErrFormat
	Least   int  // messages that must come before the CorruptError
	Whole   bool // the damage does not matter: all messages come
	Offset  bool // the CorruptError says where
}

// DamageMessages is how many messages the storages for [Damage] hold: DamageSize bytes each, in topics 1 to 3 in turn,
// stamps ascending.
const (
	DamageMessages = 2000
	DamageSize     = 1000
)

func damage(t T, d plugin.Driver, o Options) {
	for _, c := range o.Damage {
		s := newStorage(t, d, o.Create)
		ids := []plugin.TopicID{s.topic("/a"), s.topic("/b"), s.topic("/c")}
		for i := range DamageMessages {
			s.write(plugin.Message{Topic: ids[i%3], RecvTime: int64(i), Data: payload(uint64(i), DamageSize)})
		}
		s.close()
		if err := c.Break(s.path); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		checkDamaged(t, d, s, c)
	}
}

func checkDamaged(t T, d plugin.Driver, s *storage, c Damage) {
	t.Helper()
	var corrupt *plugin.CorruptError
	r, err := d.OpenReader(background, s.path, plugin.ReadOptions{})
	if err != nil {
		if !errors.As(err, &corrupt) && !errors.Is(err, plugin.ErrFormat) {
			t.Errorf("%s: open: %v, want a CorruptError or ErrFormat", c.Name, err)
		}
		if !c.Refused {
			t.Errorf("%s: open: %v, want it to open", c.Name, err)
		}
		return
	}
	defer closeReader(t, r)
	if c.Refused {
		t.Errorf("%s: opens, want it refused", c.Name)
	}
	queries := []plugin.Query{{}, {Topics: []plugin.TopicID{2}}}
	if s.f.Reverse {
		queries = append(queries, plugin.Query{Reverse: true})
	}
	for i, q := range queries {
		got, err := ReadAll(r, q)
		want := s.expected(q)
		at := 0 // in want
		for k := range got {
			for q.Reverse && at < len(want) && got[k].Order < want[at].Order {
				at++ // the end of a log may be out of reach
			}
			if at >= len(want) || !SameMessage(&got[k], &want[at]) {
				t.Errorf("%s: read %s: message %d is %s, which was not written there", c.Name, describe(q), k, show(&got[k]))
				break
			}
			at++
		}
		switch {
		case err == nil && len(got) != len(want):
			t.Errorf("%s: read %s: ends after %d of %d messages without an error", c.Name, describe(q), len(got), len(want))
		case err != nil && c.Whole:
			t.Errorf("%s: read %s: %v, want all messages", c.Name, describe(q), err)
		case err != nil && !errors.As(err, &corrupt):
			t.Errorf("%s: read %s: %v, want a CorruptError", c.Name, describe(q), err)
		case err != nil && c.Offset && corrupt.Offset < 0:
			t.Errorf("%s: read %s: %v does not say where", c.Name, describe(q), err)
		case i == 0 && len(got) < c.Least:
			t.Errorf("%s: %d messages before %v, want at least %d", c.Name, len(got), err, c.Least)
		}
	}
}
