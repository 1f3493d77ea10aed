package columnar

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
)

// columnsOf are the stamps, order numbers, names and x of a topic's chunks, a line each.
func columnsOf(t *testing.T, c *Columns, topic plugin.TopicID, lo, hi int64) (lines map[string]int, typed, loose int, err error) {
	t.Helper()
	p := program(reading.Type, "cdr", reading.Definition)
	chunks, err := c.Chunks(t.Context(), topic, p, lo, hi)
	if err != nil {
		return nil, 0, 0, err
	}
	r, err := NewColumnReader()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	lines = map[string]int{}
	for _, k := range chunks {
		_, _, ok := k.ID()
		if ok != (k.Part() != nil) {
			t.Fatal("a chunk with a part has an ID, others have none")
		}
		if ok {
			typed++
		} else {
			loose++
		}
		name, err := k.Column("name", shred.String)
		if err != nil {
			t.Fatal(err)
		}
		x, err := k.Column("at.x", shred.Int32)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Column("values", shred.Float64); !errors.Is(err, ErrNoColumn) {
			t.Errorf("column of a list: %v", err)
		}
		if _, err := k.Column("at.x", shred.Int64); !errors.Is(err, ErrNoColumn) {
			t.Errorf("column of another kind: %v", err)
		}
		vs, err := r.Read(k, []int{ColumnLogTime, ColumnPubTime, ColumnOrder, name, x})
		if err != nil {
			return nil, 0, 0, err
		}
		low, high, bounded := k.Bounds(x)
		for i := range k.Rows {
			text, n := vs[3].text(i), vs[4].number(i)
			if bounded && (float64(n) < low || float64(n) > high) {
				t.Fatalf("x is %d, bounds are %g and %g", n, low, high)
			}
			if at := vs[0].I64[i]; at < k.Start || at > k.End {
				t.Fatalf("stamp %d of a chunk from %d to %d", at, k.Start, k.End)
			}
			lines[fmt.Sprint(vs[0].I64[i], vs[1].I64[i], vs[2].I64[i], text, n)]++
		}
		for _, v := range vs {
			r.Recycle(k, v)
		}
	}
	return lines, typed, loose, nil
}

func (v *Vector) code(i int) int {
	switch {
	case v.Codes8 != nil:
		return int(v.Codes8[i])
	case v.Codes16 != nil:
		return int(v.Codes16[i])
	}
	return int(v.Codes32[i])
}

func (v *Vector) text(i int) string {
	if v.Dict != nil {
		return string(v.Dict.At(v.code(i)))
	}
	return string(v.At(i))
}

func (v *Vector) number(i int) int32 {
	if v.Dict != nil {
		return v.Dict.I32[v.code(i)]
	}
	return v.I32[i]
}

func wantColumns(ms []plugin.Message) map[string]int {
	want := map[string]int{}
	for i, m := range ms {
		want[fmt.Sprint(m.RecvTime, m.SendTime, m.Order, fmt.Sprint("sensor ", i%13), i)]++
	}
	return want
}

// Columns have every message once, whether it lies in a part, in a part of payloads, in a mixed one or in the log.
func TestColumns(t *testing.T) {
	ms := readings(18_000)
	for _, what := range []string{"parts", "log", "small"} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "s.columnar")
			w := mustCreate(t, dir, plugin.WriteOptions{Config: map[string]any{"part_size": 65536}})
			id := mustTopic(t, w, reading)
			mine := ms
			if what == "small" { // more small topics than get parts of their own
				mine = ms[:5]
				for i := range smallTopics + 5 {
					other := reading
					other.Name = fmt.Sprint("/other", i)
					k := mustTopic(t, w, other)
					for j := range 10 {
						mustWrite(t, w, plugin.Message{Topic: k, RecvTime: int64(j), Data: readingData(j)})
					}
				}
			}
			for i := 0; i < len(mine); i += 500 {
				part := mine[i:min(i+500, len(mine))]
				for j := range part {
					part[j].Topic = id
					if what == "small" {
						part[j].Order = 0
					}
				}
				mustWrite(t, w, part...)
			}
			if what == "log" {
				if err := w.Sync(); err != nil {
					t.Fatal(err)
				}
			} else if err := w.Close(plugin.Metadata{}); err != nil {
				t.Fatal(err)
			}
			c, err := OpenColumns(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			got, typed, loose, err := columnsOf(t, c, id, math.MinInt64, math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			want := wantColumns(mine)
			if what == "small" {
				if n := len(got); n != len(mine) || loose != 1 || typed != 0 {
					t.Errorf("%d messages in %d and %d chunks", n, typed, loose)
				}
				return
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%d different messages, want %d", len(got), len(want))
			}
			if what == "parts" && (typed < 2 || loose > 0) || what == "log" && loose == 0 {
				t.Errorf("%d chunks of columns and %d others", typed, loose)
			}
			n, known := c.CountRows(id, math.MinInt64, math.MaxInt64)
			if !known || n != uint64(len(mine)) {
				t.Errorf("%d rows, %v", n, known)
			}
			lo, hi := ms[1000].RecvTime, ms[2000].RecvTime
			if _, known := c.CountRows(id, lo, hi); known {
				t.Error("the number in a range is known without a look")
			}
			some, _, _, err := columnsOf(t, c, id, lo, hi)
			if err != nil {
				t.Fatal(err)
			}
			for line := range wantColumns(ms[:2003]) {
				var at int64
				if _, err := fmt.Sscan(line, &at); err != nil {
					t.Fatal(err)
				}
				if at >= lo && at <= hi && some[line] != 1 {
					t.Fatalf("%s is not in its range", line)
				}
			}
		})
	}
}

// Damage, and messages that are no values of their type, are said.
func TestColumnsDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	id := mustTopic(t, w, reading)
	ms := readings(4_000)
	for i := range ms {
		ms[i].Topic = id
	}
	mustWrite(t, w, ms...)
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	path := files(t, dir, "topic=*", "part-*")[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	noticed := 0
	for at := 100; at < len(b); at += len(b) / 41 {
		b[at] ^= 8
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := OpenColumns(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = columnsOf(t, c, id, math.MinInt64, math.MaxInt64)
		var corrupt *plugin.CorruptError
		if errors.As(err, &corrupt) {
			noticed++
		} else if err != nil {
			t.Errorf("byte %d: %v is no CorruptError", at, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		b[at] ^= 8
	}
	if noticed == 0 { // other columns have the rest
		t.Error("no damage was noticed")
	}
	odd := filepath.Join(t.TempDir(), "o.columnar")
	w = mustCreate(t, odd, plugin.WriteOptions{})
	id = mustTopic(t, w, reading)
	mustWrite(t, w, plugin.Message{Topic: id, RecvTime: 1, Data: readingData(1)[:12]})
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	c, err := OpenColumns(t.Context(), odd)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, _, err := columnsOf(t, c, id, math.MinInt64, math.MaxInt64); !errors.Is(err, ErrOdd) {
		t.Errorf("a message that is no value of its type: %v", err)
	}
	if _, err := OpenColumns(t.Context(), t.TempDir()); err == nil {
		t.Error("an empty directory is a storage")
	}
}
