package sqlview

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
)

const kernelText = "builtin_interfaces/Time stamp\nbool b\nint8 i8\nuint16 u16\nuint32 u32\nint64 i64\nuint64 u64\nfloat32 f32\nfloat64 f64\nstring host\nstring word\nInner in\nfloat64[] list\n" +
	"================================================================================\nMSG: t/Inner\nint32 n\nfloat64 x\n"

var kernelTopic = plugin.Topic{Name: "/k", Type: "t/msg/Kernel", Definition: plugin.Definition{Encoding: "ros2msg", Text: kernelText}}

// kernelMessages are rows of a few hosts, some of which fall silent; stamps repeat and step back.
func kernelMessages(rng *rand.Rand, n, hosts int) []plugin.Message {
	var ms []plugin.Message
	for i := range n {
		host := i % hosts
		if host%5 == 4 && i > n/2 {
			host = 0
		}
		stamp := start + int64(i/hosts)*1e9
		if i%97 == 0 {
			stamp -= 5e9
		}
		e := cdr.NewEncoder(nil, cdr.CDRLE)
		e.Int32(int32(stamp / 1e9))
		e.Uint32(uint32(i))
		e.Bool(rng.IntN(2) == 0)
		e.Int8(int8(rng.IntN(256)))
		e.Uint16(uint16(rng.IntN(1 << 16)))
		e.Uint32(rng.Uint32())
		e.Int64(rng.Int64N(1000) - 500)
		e.Uint64(uint64(rng.IntN(100)))
		f := math.Round(rng.NormFloat64()*64) / 4
		if rng.IntN(30) == 0 {
			f = []float64{math.NaN(), math.Inf(1), math.Copysign(0, -1)}[rng.IntN(3)]
		}
		e.Float32(float32(f))
		e.Float64(rng.NormFloat64())
		e.Str(fmt.Sprintf("host_%d", host))
		e.Str(fmt.Sprintf("w%x", rng.Uint32()))
		e.Int32(int32(rng.IntN(5)))
		e.Float64(math.Round(rng.Float64()*100) / 10)
		e.SeqLen(1)
		e.Float64(1)
		send := stamp - 1000
		if i%11 == 0 {
			send = 0
		}
		ms = append(ms, plugin.Message{RecvTime: stamp, SendTime: send, Order: uint64(i + 1), Data: e.Bytes()})
	}
	return ms
}

func kernelBag(t *testing.T, dir string, ms []plugin.Message, config map[string]any, closed bool) string {
	t.Helper()
	w, err := bag.Create(t.Context(), dir, bag.WriterOptions{StorageID: "columnar", StorageConfig: config})
	if err != nil {
		t.Fatal(err)
	}
	topic := kernelTopic
	topic.SerializationFormat = "cdr"
	id, err := w.AddTopic(topic)
	for i := range ms {
		ms[i].Topic = id
	}
	for i := 0; i < len(ms) && err == nil; i += 100 {
		err = w.Write(ms[i:min(i+100, len(ms))])
	}
	if err == nil && !closed {
		err = w.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	if closed {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return dir
}

// kernelQueries are answered by kernels, T a table.
var kernelQueries = []string{
	`SELECT count(*) FROM k`,
	`SELECT count(*) AS n FROM "/k" WHERE _log_time >= %[1]d AND _log_time < %[2]d`,
	`SELECT count(*), count(f32), count(_pub_time), count(host), min(_log_time), max(_log_time), min(_pub_time), max(_order) FROM k`,
	`SELECT min(f32), max(f32), sum(f32), avg(f32), min(f64), max(f64), sum(f64), avg(f64) FROM k WHERE f32 < 1e300`,
	`SELECT min(i8), max(u16), sum(u32), avg(i64), sum(i64), max(u64), min(b), max(stamp), min(word), max(word) FROM k`,
	`SELECT host, count(*), sum(i64), avg(f64) FROM k GROUP BY host ORDER BY host`,
	`SELECT host, count(*) AS n FROM k GROUP BY 1 HAVING count(*) > 100 AND host <= 'host_3' ORDER BY n DESC, host LIMIT 3`,
	`SELECT host, max(_log_time), i64, f32, word, "in.x", _order*2 FROM k WHERE i8 > 0 GROUP BY host ORDER BY host`,
	`SELECT host, max(_log_time) FROM k GROUP BY host ORDER BY host`,
	`SELECT host, max(_log_time) AS t FROM k WHERE _log_time < %[2]d GROUP BY host ORDER BY host`,
	`SELECT _log_time/60000000000 AS m, max(i64), min(f64) FROM k WHERE host = 'host_3' AND _log_time BETWEEN %[1]d AND %[2]d GROUP BY m ORDER BY m`,
	`SELECT (_log_time - %[1]d) / 10000000000 * 10000000000 AS m, host, avg(f64), count(*) FROM k GROUP BY m, host ORDER BY 1, 2`,
	`SELECT host, "in.n", b, count(*), sum("in.x") FROM k GROUP BY host, "in.n", b ORDER BY host, "in.n", b`,
	`SELECT max(i64), host FROM k WHERE word IN ('w1', 'nobody')`,
	`SELECT max(i64) - min(i64) AS d, count(*) * 1.5, 7 / 2, sum(i64) / 0 FROM k WHERE host IN ('host_1', 'host_2', 'host_1')`,
	`SELECT * FROM k WHERE host = 'host_2' AND i64 > 450 ORDER BY _log_time`,
	`SELECT _log_time, _pub_time, _order, word, b, u64, f32 FROM k WHERE host IN ('host_0', 'host_9') AND _log_time >= %[1]d AND f32 > 20 ORDER BY _log_time DESC, _order`,
	`SELECT _order, host FROM k ORDER BY _order DESC LIMIT 7`,
	`SELECT word, i64 FROM k WHERE i64 BETWEEN -3 AND 3 AND 2 > "in.n" ORDER BY word LIMIT 20`,
	`SELECT _log_time, host FROM k WHERE host = 'host_4' ORDER BY _log_time DESC LIMIT 1`,
	`SELECT k.host, a.i64 + 1 AS x FROM k AS a WHERE a.host = 'none'`,
	`SELECT count(*) FROM k WHERE i64 = 3.0 OR 0`,
	`SELECT count(*), sum(f64) FROM k WHERE i64 < 3.5 AND i64 >= -2.5 AND u32 > 4294967290.5 AND f32 >= 9007199254740993`,
	`SELECT count(*) FROM k WHERE _pub_time <= 0 AND i64 = 1e30`,
	`SELECT count(*) FROM k WHERE _pub_time < 9223372036854775807 AND b = 1 AND u16 IN (1, 2, 3.5, 60000)`,
	`SELECT _topic, _bag, count(*) FROM k WHERE _topic = '/k' GROUP BY _topic, _bag ORDER BY 2`,
}

// notKernel are those of kernelQueries that are SQLite's all the same.
var notKernel = []string{"a.host", " OR 0", "k.host", "SELECT * FROM"}

// Kernels and virtual tables give the same answers, to questions with answers that are known to be hard.
func TestKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	small := map[string]any{"part_size": 65536}
	dir := t.TempDir()
	many := kernelMessages(rng, 3_500, 7)
	whole := kernelBag(t, filepath.Join(dir, "whole"), many, small, true)
	alive := kernelBag(t, filepath.Join(dir, "alive"), kernelMessages(rng, 900, 11), nil, false)
	odd := kernelMessages(rng, 600, 3)
	for i := range odd { // padding of something else, and text that is no UTF-8
		if i%40 == 3 {
			odd[i].Data[13] = 7
		}
	}
	patched := kernelBag(t, filepath.Join(dir, "patched"), odd, nil, true)
	for name, paths := range map[string][]string{"parts": {whole}, "log": {alive}, "patched": {patched}, "several": {whole, alive, patched}} {
		t.Run(name, func(t *testing.T) { compareKernels(t, paths) })
	}
}

func compareKernels(t *testing.T, paths []string) {
	t.Helper()
	tables := openWith(t, Options{TablesOnly: true}, paths...)
	answers := map[string][][]any{}
	for _, memory := range []int64{0, 64 << 20, 100_000} {
		kernels := openWith(t, Options{Memory: memory}, paths...)
		for round := range 2 + btoi(memory > 1<<20) {
			for _, q := range kernelQueries {
				q = fmt.Sprintf(q+"%[3]s", start+100e9, start+400e9, "")
				if strings.Contains(q, "LIMIT") && strings.Contains(q, "max(_log_time)") && len(paths) > 1 {
					continue // which of equal ones is not said
				}
				got, byKernel, err := rowsOf(t.Context(), kernels, q)
				if err != nil {
					if _, _, err2 := rowsOf(t.Context(), tables, q); err2 == nil {
						t.Errorf("%s: %v", q, err)
					}
					continue
				}
				want, known := answers[q]
				if !known {
					var other bool
					if want, other, err = rowsOf(t.Context(), tables, q); err != nil || other {
						t.Errorf("%s: tables: by a kernel: %v, %v", q, other, err)
					}
					answers[q] = want
				}
				if !slices.ContainsFunc(notKernel, func(s string) bool { return strings.Contains(q, s) }) && !byKernel {
					_, why := kernels.planKernel(t.Context(), q)
					t.Errorf("%s: not answered by a kernel (%v)", q, why)
				}
				if d := differ(got, want); d != "" {
					t.Errorf("memory %d, round %d: %s: %s", memory, round, q, d)
				}
			}
		}
		if kernels.mem > memory {
			t.Errorf("%d bytes are kept of %d", kernels.mem, memory)
		}
	}
}

func openWith(t *testing.T, o Options, paths ...string) *View {
	t.Helper()
	v, err := Open(t.Context(), paths, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// rowsOf is an answer with the names of its columns before it.
func rowsOf(ctx context.Context, v *View, query string) ([][]any, bool, error) {
	rows, err := v.Query(ctx, query)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, false, err
	}
	head := make([]any, len(names))
	for i, n := range names {
		head[i] = n
	}
	out := [][]any{head}
	for rows.Next() {
		row, pointers := make([]any, len(names)), make([]any, len(names))
		for i := range row {
			pointers[i] = &row[i]
		}
		if err := rows.Scan(pointers...); err != nil {
			return nil, false, err
		}
		out = append(out, row)
	}
	return out, rows.ByKernel(), rows.Err()
}

// differ says where answers differ by more than rounding.
func differ(got, want [][]any) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d rows, want %d", len(got)-1, len(want)-1)
	}
	for i := range got {
		for j := range got[i] {
			a, b := got[i][j], want[i][j]
			x, xok := a.(float64)
			y, yok := b.(float64)
			if xok && yok && (x == y || math.Abs(x-y) <= 1e-12*math.Abs(x)) {
				continue
			}
			if !reflect.DeepEqual(a, b) {
				return fmt.Sprintf("row %d, column %d: %v (%T), want %v (%T)", i, j, a, a, b, b)
			}
		}
	}
	return ""
}

// What is damaged, interrupted or too large for kernels.
func TestKernelsGiveUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	ms := kernelMessages(rng, 3000, 5)
	ms[17].Data = ms[17].Data[:20] // no value of its type
	dir := kernelBag(t, filepath.Join(t.TempDir(), "odd"), ms, nil, true)
	v := openWith(t, Options{}, dir)
	got, byKernel, err := rowsOf(t.Context(), v, "SELECT count(*), count(i64) FROM k")
	if err != nil || byKernel || got[1][0] != int64(3000) || got[1][1] != int64(2999) {
		t.Errorf("a message that is no value: %v, %v, %v", got, byKernel, err)
	}
	fine := kernelBag(t, filepath.Join(t.TempDir(), "fine"), kernelMessages(rng, 3000, 5), nil, true)
	v = openWith(t, Options{}, fine)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Query(ctx, "SELECT host, sum(f64) FROM k GROUP BY host"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	for query, want := range map[string]bool{
		"SELECT host, sum(f64) FROM k GROUP BY host":                      true,
		"SELECT host, f64 FROM k":                                         false, // all rows
		"SELECT host, f64 FROM k GROUP BY host":                           false, // any row's
		"SELECT min(f64), max(f64), word FROM k":                          false, // whose word
		"SELECT sum(i64 * i64) FROM k":                                    false,
		"SELECT count(DISTINCT host) FROM k":                              false,
		"SELECT max(f64) FILTER (WHERE b) FROM k":                         false,
		"SELECT host FROM k WHERE host LIKE 'host_1' LIMIT 1":             false,
		"SELECT host FROM k WHERE host = 'host_1' COLLATE NOCASE LIMIT 1": false,
		"SELECT host FROM k NATURAL JOIN k AS l LIMIT 1":                  false,
		"SELECT count(*) FROM messages":                                   false,
		"SELECT count(list) FROM k":                                       false,
		"SELECT rowid FROM k LIMIT 1":                                     false,
		"SELECT word FROM k WHERE i64 = '5' LIMIT 1":                      false,
		"SELECT sum(word) FROM k":                                         false,
	} {
		_, byKernel, err := rowsOf(t.Context(), v, query)
		if err != nil && !strings.Contains(query, "FILTER") || byKernel != want {
			t.Errorf("%s: by a kernel: %v, %v", query, byKernel, err)
		}
	}
	for _, query := range []string{"SELECT", "SELECT count(*) FROM nowhere", "SELECT nothing FROM k LIMIT 1", "SELECT 'a FROM k", "SELECT (1 FROM k", "DELETE FROM k"} {
		if _, _, err := rowsOf(t.Context(), v, query); err == nil {
			t.Errorf("%s: no error", query)
		}
	}
}

// Numbers of SQL: the edges of 64 bits.
func TestArithmetic(t *testing.T) {
	v := openWith(t, Options{}, kernelBag(t, filepath.Join(t.TempDir(), "b"), kernelMessages(rand.New(rand.NewPCG(5, 6)), 10, 2), nil, true))
	rng := rand.New(rand.NewPCG(7, 8))
	edges := []value{intValue(0), intValue(1), intValue(-1), intValue(math.MaxInt64), intValue(math.MinInt64 + 1), intValue(1 << 62), intValue(3037000500), intValue(-7),
		realValue(0.5), realValue(-2.5), realValue(1e300), realValue(-1e19), realValue(9.3e18)}
	for range 300 {
		a, b, op := edges[rng.IntN(len(edges))], edges[rng.IntN(len(edges))], "+-*/%"[rng.IntN(5)]
		got := arithmetic(op, a, b).any()
		query := fmt.Sprintf("SELECT (%s) %c (%s)", literal(a), op, literal(b))
		rows, _, err := rowsOf(t.Context(), v, query)
		if err != nil {
			t.Fatal(err)
		}
		if want := rows[1][0]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s = %v (%T), want %v (%T)", query, got, got, want, want)
		}
		c := compareValues(a, b)
		rows, _, err = rowsOf(t.Context(), v, fmt.Sprintf("SELECT (%[1]s) < (%[2]s), (%[1]s) = (%[2]s)", literal(a), literal(b)))
		if err != nil || rows[1][0] != int64(btoi(c < 0)) || rows[1][1] != int64(btoi(c == 0)) {
			t.Errorf("compare %s and %s: %d, want %v (%v)", literal(a), literal(b), c, rows[1:], err)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func literal(v value) string {
	if v.kind == kindInt {
		return fmt.Sprint(v.i)
	}
	return fmt.Sprintf("%.17e", v.f)
}

// innerQueries have SELECTs inside that are for kernels.
var innerQueries = map[string]int{
	`SELECT host, count(*) AS n, max(v) FROM (SELECT host, _log_time/60000000000 AS m, avg(f64) AS v FROM k GROUP BY host, m HAVING avg(f64) > 0.1) GROUP BY host ORDER BY host`:                                 1,
	`WITH newest AS (SELECT host, max(_log_time) AS t, i64 FROM k GROUP BY host) SELECT a.host, a.i64, b.n FROM newest AS a JOIN (SELECT host, count(*) AS n FROM k GROUP BY host) AS b USING (host) ORDER BY 1`: 2,
	`SELECT host, i64 FROM k WHERE _log_time = (SELECT max(_log_time) FROM k WHERE host = 'host_1') AND host IN (SELECT host FROM k WHERE word > '' LIMIT 0) ORDER BY 1`:                                         1,
	`SELECT count(*) FROM (SELECT host, f64 FROM k)`: 0,
	`SELECT t, host, t - lag(t) OVER (PARTITION BY host ORDER BY t) AS gap FROM (SELECT _log_time/10000000000 AS t, host, min(b) FROM k GROUP BY t, host) ORDER BY host, t LIMIT 50`: 1,
	`SELECT f32, count(*) FROM (SELECT f32, host, count(*) AS n FROM k WHERE f32 > 3 AND f32 < 5 GROUP BY f32, host) GROUP BY f32 ORDER BY f32`:                                      1,
	`SELECT host = 'host_1', typeof(host), typeof(n), typeof(s) FROM (SELECT host, count(*) AS n, sum(f64) AS s FROM k GROUP BY host) ORDER BY host`:                                 1,
	`SELECT a.host FROM (SELECT host, max(i64) AS top FROM k GROUP BY host) AS a WHERE a.top >= (SELECT max(b.i64) FROM k AS b WHERE b.host = a.host) ORDER BY a.host`:               1,
}

// SELECTs inside are answered by kernels; the rest of the query is SQLite's.
func TestInnerKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 2))
	dir := kernelBag(t, filepath.Join(t.TempDir(), "b"), kernelMessages(rng, 2_500, 7), map[string]any{"part_size": 65536}, true)
	tables, kernels := openWith(t, Options{TablesOnly: true}, dir), openWith(t, Options{}, dir)
	remembering := openWith(t, Options{Memory: 64 << 20}, dir)
	for q, inner := range innerQueries {
		got, byKernel, err := rowsOf(t.Context(), kernels, q)
		if err != nil || byKernel {
			t.Errorf("%s: by a kernel: %v, %v", q, byKernel, err)
			continue
		}
		if len(kernels.answers) != inner {
			t.Errorf("%s: kernels answered %d SELECTs inside, want %d", q, len(kernels.answers), inner)
		}
		want, _, err := rowsOf(t.Context(), tables, q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if d := differ(got, want); d != "" {
			t.Errorf("%s: %s", q, d)
		}
		for round := range 4 {
			if got, _, err = rowsOf(t.Context(), remembering, q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			if d := differ(got, want); d != "" {
				t.Errorf("round %d: %s: %s", round, q, d)
			}
		}
	}
	if _, err := kernels.Query(t.Context(), "INSERT INTO _kernel_0 VALUES (1)"); err == nil {
		t.Error("an answer can be written")
	}
}

// gapQueries are about gaps; true: a kernel finds them.
var gapQueries = map[string]bool{
	`SELECT _log_time, gap FROM (SELECT _log_time, _log_time - lag(_log_time) OVER (ORDER BY _log_time) AS gap FROM k) WHERE gap > 900000000 ORDER BY 1, 2`:                                                                                                 true,
	`SELECT host, count(*) AS n, max(gap) FROM (SELECT host, _log_time AS t, _log_time - lag(_log_time) OVER (PARTITION BY host ORDER BY _log_time ASC) AS gap FROM k WHERE i8 > 0) AS g WHERE gap >= 2e9 AND host <> 'host_1' GROUP BY host ORDER BY host`: true,
	`SELECT t, gap FROM (SELECT _log_time AS t, _log_time - lag(_log_time) OVER (PARTITION BY "in.n" ORDER BY _log_time) AS gap FROM k WHERE _log_time > 5) g WHERE gap > 1000 * 1000 ORDER BY t, gap LIMIT 100`:                                            true,
	`SELECT 1 + (SELECT count(*) FROM (SELECT _log_time - lag(_log_time) OVER (ORDER BY _log_time) AS gap FROM k) WHERE gap > 3000000000) AS sessions`:                                                                                                      true,
	`SELECT _topic, gap FROM (SELECT _topic, _log_time - lag(_log_time) OVER (PARTITION BY _topic ORDER BY _log_time) AS gap FROM k) WHERE gap > 900000000 ORDER BY 2`:                                                                                      true,
	`SELECT count(*) FROM (SELECT _log_time - lag(_log_time) OVER (ORDER BY _log_time) AS gap FROM k) WHERE gap > 9e8 OR gap IS NULL`:                                                                                                                       false,
	`SELECT count(*) FROM (SELECT _log_time - lag(_log_time) OVER (ORDER BY _log_time) AS gap FROM k) WHERE gap > 9e8 = 0`:                                                                                                                                  false,
	`SELECT count(*) FROM (SELECT _log_time - lag(_log_time) OVER (ORDER BY _log_time DESC) AS gap FROM k) WHERE gap > 9e8`:                                                                                                                                 false,
	`SELECT count(*) FROM (SELECT _log_time - lag(_log_time, 2) OVER (ORDER BY _log_time) AS gap FROM k) WHERE gap > 9e8`:                                                                                                                                   false,
	`SELECT count(*) FROM (SELECT i64, _log_time - lag(_log_time) OVER (ORDER BY _log_time) AS gap FROM k) WHERE gap > 9e8`:                                                                                                                                 false,
	`SELECT count(*) FROM (SELECT _log_time - lag(_log_time) OVER (ORDER BY _log_time) AS gap FROM k) WHERE gap < 9e8`:                                                                                                                                      false,
	`SELECT count(*) FROM (SELECT _log_time - lag(_log_time) OVER (ORDER BY _log_time) AS gap FROM k LIMIT 9) WHERE gap > 9e8`:                                                                                                                              false,
	`SELECT (SELECT _log_time - lag(_log_time) OVER (ORDER BY _log_time) AS gap FROM k) AS gap WHERE gap > 5`:                                                                                                                                               false,
}

func TestGaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 4))
	dir := kernelBag(t, filepath.Join(t.TempDir(), "b"), kernelMessages(rng, 2_000, 5), map[string]any{"part_size": 65536}, true)
	tables, kernels := openWith(t, Options{TablesOnly: true}, dir), openWith(t, Options{Memory: 1 << 20}, dir)
	for q, want := range gapQueries {
		for range 2 {
			got, _, err := rowsOf(t.Context(), kernels, q)
			if err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			if is := len(kernels.answers) == 1; is != want {
				t.Errorf("%s: found by a kernel: %v", q, is)
			}
			expect, _, err := rowsOf(t.Context(), tables, q)
			if err != nil {
				t.Fatal(err)
			}
			if d := differ(got, expect); d != "" || want && len(got) < 2 {
				t.Errorf("%s: %d rows, %s", q, len(got)-1, d)
			}
		}
	}
}

// All topics of a type are a table, for kernels too.
func TestTypeTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 3))
	dir := filepath.Join(t.TempDir(), "b")
	w, err := bag.Create(t.Context(), dir, bag.WriterOptions{StorageID: "columnar"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		topic := kernelTopic
		topic.SerializationFormat, topic.Name = "cdr", fmt.Sprintf("/truck_%d/k", i)
		id, err := w.AddTopic(topic)
		if err != nil {
			t.Fatal(err)
		}
		ms := kernelMessages(rng, 500+100*i, 3)
		for j := range ms {
			ms[j].Topic, ms[j].Order = id, 0
		}
		if err := w.Write(ms); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	tables, kernels := openWith(t, Options{TablesOnly: true}, dir), openWith(t, Options{Memory: 1 << 20}, dir)
	for _, q := range []string{
		`SELECT count(*) FROM "t/msg/Kernel"`,
		`SELECT _topic, host, count(*), avg(f64), max(_log_time) FROM "t/msg/Kernel" GROUP BY _topic, host ORDER BY 1, 2`,
		`SELECT _topic, sum(i64) FROM "t/msg/Kernel" WHERE _topic IN ('/truck_0/k', '/truck_2/k') AND host = 'host_1' GROUP BY _topic ORDER BY _topic`,
		`SELECT _topic, word FROM "t/msg/Kernel" WHERE i64 > 100 ORDER BY word LIMIT 10`,
	} {
		for range 2 {
			got, byKernel, err := rowsOf(t.Context(), kernels, q)
			if err != nil || !byKernel {
				t.Fatalf("%s: by a kernel: %v, %v", q, byKernel, err)
			}
			want, _, err := rowsOf(t.Context(), tables, q)
			if err != nil {
				t.Fatal(err)
			}
			if d := differ(got, want); d != "" {
				t.Errorf("%s: %s", q, d)
			}
		}
	}
	if rows := ask(t, kernels, `SELECT * FROM "t/msg/Kernel" LIMIT 1`); len(rows[0]) != 3+14 { // stamps, topic, fields
		t.Errorf("%d columns: %v", len(rows[0]), rows[0])
	}
}

// Whatever a query is, kernels read it or leave it: they do not fail, and agree with virtual tables.
func FuzzKernels(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "b")
	rng := rand.New(rand.NewPCG(11, 2))
	w, err := bag.Create(f.Context(), dir, bag.WriterOptions{StorageID: "columnar"})
	if err != nil {
		f.Fatal(err)
	}
	topic := kernelTopic
	topic.SerializationFormat = "cdr"
	id, err := w.AddTopic(topic)
	if err != nil {
		f.Fatal(err)
	}
	ms := kernelMessages(rng, 60, 3)
	for i := range ms {
		ms[i].Topic = id
	}
	if err := errors.Join(w.Write(ms), w.Close()); err != nil {
		f.Fatal(err)
	}
	for _, q := range kernelQueries {
		f.Add(fmt.Sprintf(q+"%[3]s", start+5e9, start+15e9, ""))
	}
	for q := range innerQueries {
		f.Add(q)
	}
	f.Add("SELECT " + strings.Repeat("(", 5000) + "1")
	f.Add("SELECT " + strings.Repeat("-", 5000) + "1 FROM k")
	tables, err := Open(f.Context(), []string{dir}, Options{TablesOnly: true})
	if err != nil {
		f.Fatal(err)
	}
	kernels, err := Open(f.Context(), []string{dir}, Options{Memory: 1 << 20})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := errors.Join(tables.Close(), kernels.Close()); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, query string) {
		if len(query) > 10_000 || strings.Contains(strings.ToLower(query), "recursive") || strings.Contains(strings.ToLower(query), "random") || strings.ContainsRune(query, 0) {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		got, byKernel, err := rowsOf(ctx, kernels, query)
		if p := kernels.plans[query]; err != nil || !byKernel || len(p.bare) > 0 { // which of equal rows is not said
			return
		}
		want, _, err := rowsOf(ctx, tables, query)
		if err != nil {
			t.Fatalf("%q: kernels have an answer, tables %v", query, err)
		}
		slices.SortFunc(got[1:], byText)
		slices.SortFunc(want[1:], byText)
		if d := differ(got, want); d != "" && !strings.Contains(strings.ToLower(query), "limit") {
			t.Fatalf("%q: %s", query, d)
		}
	})
}

func byText(a, b []any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
