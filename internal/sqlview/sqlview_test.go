package sqlview

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
	_ "github.com/gobag/gobag/plugins/all"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const start = int64(1_700_000_000_000_000_000)

const richText = "builtin_interfaces/Time stamp\nbool b\nint8 i8\nuint8 u8\nint16 i16\nuint16 u16\nint32 i32\nuint32 u32\nint64 i64\nuint64 u64\nfloat32 f32\nfloat64 f64\n" +
	"string s\nwstring w\nuint8[] bytes\nuint8[3] three\nfloat64[2] pair\nstring[] names\nInner in\nInner[] list\n" +
	"================================================================================\nMSG: t/Inner\nuint8 Id\nuint8 id\nint8[] raw\nbuiltin_interfaces/Duration d\n" +
	"================================================================================\nMSG: builtin_interfaces/Duration\nint32 sec\nuint32 nanosec\n"

// rich is a t/msg/Rich.
func rich(n int, f64 float64) []byte {
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	e.Int32(int32(n))
	e.Uint32(5)
	e.Bool(n%2 == 0)
	e.Int8(-8)
	e.Uint8(200)
	e.Int16(-300)
	e.Uint16(60000)
	e.Int32(-70000)
	e.Uint32(4e9)
	e.Int64(math.MinInt64)
	e.Uint64(math.MaxUint64 - uint64(n))
	e.Float32(0.5)
	e.Float64(f64)
	e.Str(fmt.Sprintf("text %d", n))
	e.WStr("wide €𝄞")
	e.ByteSeq([]byte{0, 1, 255})
	e.Raw([]byte{7, 8, 9})
	e.Float64(1)
	e.Float64(math.NaN())
	e.SeqLen(2)
	e.Str("a\"b")
	e.Str("\x01")
	inner := func(i int) {
		e.Uint8(uint8(i))
		e.Uint8(uint8(i + 1))
		e.ByteSeq([]byte{255})
		e.Int32(1)
		e.Uint32(2)
	}
	inner(10)
	e.SeqLen(n)
	for i := range n {
		inner(i)
	}
	return e.Bytes()
}

// message is a message of a bag to be made.
type message struct {
	topic string
	recv  int64
	data  []byte
}

func makeBag(t *testing.T, name, storage string, topics []plugin.Topic, messages []message) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	w, ids := openBag(t, dir, storage, topics)
	write(t, w, ids, messages)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openBag(t *testing.T, dir, storage string, topics []plugin.Topic) (*bag.Writer, map[string]plugin.TopicID) {
	t.Helper()
	w, err := bag.Create(t.Context(), dir, bag.WriterOptions{StorageID: storage})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]plugin.TopicID{}
	for _, topic := range topics {
		topic.SerializationFormat = "cdr"
		if ids[topic.Name], err = w.AddTopic(topic); err != nil {
			t.Fatal(err)
		}
	}
	return w, ids
}

func write(t *testing.T, w *bag.Writer, ids map[string]plugin.TopicID, messages []message) {
	t.Helper()
	for _, m := range messages {
		if err := w.Write([]plugin.Message{{Topic: ids[m.topic], RecvTime: m.recv, SendTime: m.recv - 1, Data: m.data}}); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	richTopic    = plugin.Topic{Name: "/a/rich", Type: "t/msg/Rich", Definition: plugin.Definition{Encoding: "ros2msg", Text: richText}}
	chatterTopic = plugin.Topic{Name: "/chatter", Type: "std_msgs/msg/String"}
)

func text(s string) []byte {
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	e.Str(s)
	return e.Bytes()
}

func open(t *testing.T, paths ...string) *View {
	t.Helper()
	v, err := Open(t.Context(), paths, Options{})
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

// ask returns all rows of a query.
func ask(t *testing.T, v *View, query string) [][]any {
	t.Helper()
	out, err := try(t.Context(), v, query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

func try(ctx context.Context, v *View, query string) ([][]any, error) {
	rows, err := v.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	out := [][]any{}
	for rows.Next() {
		values, pointers := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			pointers[i] = &values[i]
		}
		if err := rows.Scan(pointers...); err != nil {
			return nil, err
		}
		out = append(out, values)
	}
	return out, rows.Err()
}

func TestValues(t *testing.T) {
	dir := makeBag(t, "b", "", []plugin.Topic{richTopic}, []message{{"/a/rich", start, rich(2, 1e300)}, {"/a/rich", start + 1, rich(1, math.Inf(-1))}, {"/a/rich", start + 2, rich(0, math.NaN())}})
	v := open(t, dir)
	got := ask(t, v, `SELECT * FROM "/a/rich" LIMIT 1`)
	inner := func(i int) string {
		return fmt.Sprintf(`{"Id":%d,"id":%d,"raw":[-1],"d":{"sec":1,"nanosec":2}}`, i, i+1)
	}
	want := []any{start, start - 1, int64(2e9 + 5), int64(1), int64(-8), int64(200), int64(-300), int64(60000), int64(-70000), int64(4e9), int64(math.MinInt64),
		"18446744073709551613", 0.5, 1e300, "text 2", "wide €𝄞", []byte{0, 1, 255}, []byte{7, 8, 9}, "[1.0,null]", `["a\"b","\u0001"]`, int64(10), int64(11), []byte{255},
		int64(1e9 + 2), "[" + inner(0) + "," + inner(1) + "]"}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, c := range want[18:] {
		if s, ok := c.(string); ok && !json.Valid([]byte(s)) {
			t.Errorf("%s is no JSON", s)
		}
	}
	for query, want := range map[string][]any{
		`SELECT f64 FROM a_rich ORDER BY _log_time DESC`:                                           {nil, math.Inf(-1), 1e300},
		`SELECT "in.id_2", "in.Id" FROM a_rich LIMIT 1`:                                            {int64(11), int64(10)},
		`SELECT sum(json_array_length(list)), max(s) FROM A_RICH`:                                  {int64(3), "text 2"},
		`SELECT t.value->>'$.Id' FROM a_rich, json_each(list) t WHERE b`:                           {int64(0), int64(1)},
		`SELECT hex(_cdr)=hex(_cdr), _size > 100, _source, _seq FROM a_rich LIMIT 1`:               {int64(1), int64(1), nil, nil},
		`SELECT count(*) FROM a_rich`:                                                              {int64(3)},
		`SELECT a.s FROM a_rich a JOIN a_rich b ON b._log_time = a._log_time+1`:                    {"text 2", "text 1"},
		`WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c WHERE x<3) SELECT x FROM c`: {int64(1), int64(2), int64(3)},
		`SELECT _topic, _type, _size FROM messages LIMIT 1`:                                        {"/a/rich", "t/msg/Rich", int64(len(rich(2, 0)))},
		`SELECT topic, messages FROM topics`:                                                       {"/a/rich", int64(3)},
		`SELECT max(_log_time) FROM a_rich`:                                                        {start + 2},
		`SELECT "name" FROM pragma_table_info('a_rich') LIMIT 2`:                                   {"_log_time", "_pub_time"},
	} {
		var flat []any
		for _, row := range ask(t, v, query) {
			flat = append(flat, row...)
		}
		if !reflect.DeepEqual(flat, want) {
			t.Errorf("%s: %v, want %v", query, flat, want)
		}
	}
	if trouble := v.Trouble(); len(trouble) != 0 {
		t.Errorf("%q", trouble)
	}
}

// TestPushdown compares what is pushed down with the same condition on an expression, which is not.
func TestPushdown(t *testing.T) {
	for _, storages := range [][2]string{{"sqlite3", "leveldb"}, {"mcap", "columnar"}} {
		t.Run(strings.Join(storages[:], " and "), func(t *testing.T) { testPushdown(t, storages) })
	}
}

func testPushdown(t *testing.T, storages [2]string) {
	var one, two []message
	for i := range 50 {
		m := message{"/chatter", start + int64(i/3)*1000, text(fmt.Sprint(i))}
		if i%2 == 0 {
			one = append(one, m)
		} else {
			two = append(two, m)
		}
		if i%10 == 0 {
			two = append(two, message{"/a/rich", m.recv + 1, rich(1, 0)})
		}
	}
	topics := []plugin.Topic{chatterTopic, richTopic}
	a, b := makeBag(t, "a", storages[0], topics, one), makeBag(t, "b", storages[1], topics, two)
	v := open(t, a, b)
	if n := ask(t, v, "SELECT count(*), count(DISTINCT _bag) FROM chatter")[0]; !reflect.DeepEqual(n, []any{int64(50), int64(2)}) {
		t.Fatalf("%v rows", n)
	}
	s := func(n int64) string { return fmt.Sprint(start + n) }
	conditions := []string{"_log_time >= " + s(3000), "_log_time > " + s(3000), "_log_time < " + s(3000), "_log_time <= " + s(3000), "_log_time = " + s(3000),
		"_log_time BETWEEN " + s(2000) + " AND " + s(5000), "_log_time > " + s(5000) + " AND _log_time < " + s(2000), "_log_time IN (" + s(1000) + "," + s(7000) + "," + s(1) + ")",
		"_log_time > 1.7e18", "_log_time < 1.7e18 + 4000.5", "_log_time >= '" + s(3000) + "'", "_log_time > NULL", "_log_time = NULL", "_log_time < 9e999", "_log_time > -9e999",
		"_log_time > 9e18", "_log_time IS NOT NULL", "_log_time < x'00'", "_log_time > 'text'", "NOT _log_time > " + s(3000), "_log_time > " + s(3000) + " OR _log_time < " + s(1000), "_log_time > " + s(3000) + " OR _log_time > " + s(2000) + " OR _bag = '" + a + "'",
		"_bag = '" + a + "'", "_bag = 'none'", "_bag = 5", "_bag IN ('" + a + "','" + b + "')", "_bag = '" + b + "' AND _log_time >= " + s(3000), "_bag = NULL",
		"_topic = '/chatter'", "_topic IN ('/a/rich', '/none')", "_topic = '/none'", "_topic = '/a/rich' AND _log_time < " + s(2500)}
	orders := []string{"", "ORDER BY _log_time", "ORDER BY _log_time DESC", "ORDER BY _log_time DESC LIMIT 3", "ORDER BY _bag, _log_time"}
	plain := strings.NewReplacer("_log_time", "CAST(_log_time AS INTEGER)", "_bag", "CAST(_bag AS TEXT)", "_topic", "CAST(_topic AS TEXT)")
	for _, c := range conditions {
		for _, table := range []string{"chatter", "messages"} {
			for _, o := range orders {
				query := fmt.Sprintf("SELECT _log_time, _bag, _topic FROM %s WHERE %s %s", table, c, o)
				got := ask(t, v, query)
				want := ask(t, v, fmt.Sprintf("SELECT _log_time, _bag, _topic FROM %s WHERE %s %s", table, plain.Replace(c), plain.Replace(o)))
				if o == "" || strings.HasSuffix(o, "DESC") { // rows of equal stamps may come in another order
					got, want = sorted(t, got, o), sorted(t, want, o)
				}
				if strings.Contains(o, "LIMIT") {
					got, want = stamps(got), stamps(want)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %d rows, want %d\n%v\n%v", query, len(got), len(want), got, want)
				}
			}
		}
	}
}

// sorted checks the order of stamps and returns the rows ordered by everything.
func sorted(t *testing.T, rows [][]any, order string) [][]any {
	t.Helper()
	for i := 1; i < len(rows); i++ {
		if x, y := rows[i-1][0].(int64), rows[i][0].(int64); order != "" && x < y {
			t.Errorf("%s: %d before %d", order, x, y)
		}
	}
	out := append([][]any{}, rows...)
	for i := range out {
		for j := i; j > 0 && fmt.Sprint(out[j]) < fmt.Sprint(out[j-1]); j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

func stamps(rows [][]any) (out [][]any) {
	for _, r := range rows {
		out = append(out, r[:1])
	}
	return out
}

// TestFields compares tests of fields, which leave rows out before SQLite sees them, with the same on expressions.
func TestFields(t *testing.T) {
	var messages []message
	for i := range 40 {
		f := float64(i%8) / 2
		switch i % 8 {
		case 5:
			f = math.NaN()
		case 6:
			f = math.Inf(1)
		case 7:
			f = 1e17
		}
		messages = append(messages, message{"/a/rich", start + int64(i), rich(i%5, f)})
	}
	other := plugin.Topic{Name: "/a/rich", Type: "t/msg/Poor", Definition: plugin.Definition{Encoding: "ros2msg", Text: "string i32\nstring s\n"}}
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	e.Str("-70000")
	e.Str("TEXT 1 ")
	v := open(t, makeBag(t, "a", "sqlite3", []plugin.Topic{richTopic}, messages), makeBag(t, "b", "sqlite3", []plugin.Topic{other}, []message{{"/a/rich", start, e.Bytes()}, {"/a/rich", start + 1, []byte{0, 1}}}))
	for _, c := range []string{"f64 = 1", "f64 = 1.5", "f64 < 1", "f64 <= 1", "f64 > 1", "f64 >= 1", "f64 > 9e999", "f64 >= 9e999", "f64 = 9e999", "f64 < -9e999", "f64 = 100000000000000001",
		"f64 > 99999999999999999", "f64 = '1.5'", "f64 = 'x'", "f64 = NULL", "f64 IS NULL", "f64 BETWEEN 0.5 AND 1.5", "f64 IN (0, 1, 1.5)", "f64 <> 1", "NOT f64 > 1",
		"b = 1", "b > 0.5", "b = '1'", "u32 = 4000000000", "u32 > 3999999999.5", "i64 = -9223372036854775808", "i64 <= -9223372036854775807.5", "i64 > -1e18", "u8 < 200", "i16 >= -300", "stamp > 1000000005",
		"stamp = 2000000005", "s = 'text 1'", "s = 'Text 1'", "s = 'TEXT 1' COLLATE NOCASE", "s = 'text 1  ' COLLATE RTRIM", "s = 'text 1  '", "s > 'text 2'", "s LIKE 'TEXT%'", "s = 5",
		"i32 = -70000", "i32 = '-70000'", "i32 < 0", "i32 > 'a'", "s = 'text 1' OR f64 = 1", "s = 'text 1' AND f64 > 1", "w = 'wide €𝄞'", "pair = '[1.0,null]'", "\"in.Id\" = 10 AND u16 = 60000",
		"bytes = x'0001ff'", "bytes > x'00'"} {
		for _, o := range []string{"", "ORDER BY _log_time DESC"} {
			// A subquery with LIMIT -1 that SQLite does not look into gives values with the affinity of their columns.
			query := "SELECT _log_time, _bag, s FROM a_rich WHERE " + c + " " + o
			plain := "SELECT _log_time, _bag, s FROM (SELECT * FROM a_rich LIMIT -1 OFFSET 0) WHERE " + c + " " + o
			got, want := sorted(t, ask(t, v, query), o), sorted(t, ask(t, v, plain), o)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %d rows, want %d", query, len(got), len(want))
			}
		}
	}
	for query, want := range map[string]int{"SELECT list FROM a_rich WHERE s = 'text 3'": 8, "SELECT s, list, names FROM a_rich WHERE i8 = -8 LIMIT 9": 9} {
		if got := ask(t, v, query); len(got) != want || got[0][0] == nil {
			t.Errorf("%s: %v", query, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	v.ctx = ctx
	cancel()
	c := &cursor{t: v.tables[0], states: map[*source]*state{}, skipped: 1023}
	if err := c.Filter(0, "0 =0", []driver.Value{int64(-1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("a search of a query that was given up: %v", err)
	}
	c.Close()
}

// TestPlans: what is pushed down is in the plan.
func TestPlans(t *testing.T) {
	v := open(t, makeBag(t, "a", "sqlite3", []plugin.Topic{chatterTopic}, nil))
	for query, want := range map[string]string{
		"SELECT data FROM chatter WHERE _log_time > 5 AND _log_time <= 7":     "0:401 G l",
		"SELECT _log_time FROM chatter WHERE _log_time = 5":                   "0:1 e",
		"SELECT count(*) FROM chatter":                                        "0:0 ",
		"SELECT data FROM chatter ORDER BY _log_time DESC":                    "1:401 ",
		"SELECT _size FROM messages WHERE _topic = '/chatter' AND _bag = 'x'": "0:10c ",
		"SELECT data FROM chatter WHERE _log_time > 5 ORDER BY data":          "0:401 G",
		"SELECT _bag FROM chatter WHERE data = 'x' AND data > 'a'":            "0:404 =0 >0",
	} {
		rows := ask(t, v, "EXPLAIN QUERY PLAN "+query)
		detail := rows[0][3].(string)
		if !strings.Contains(detail, "VIRTUAL TABLE INDEX "+want) {
			t.Errorf("%s: %s, want %s", query, detail, want)
		}
		if sorts := len(rows) > 1; sorts != strings.HasSuffix(query, "ORDER BY data") {
			t.Errorf("%s: %v", query, rows)
		}
	}
}

func TestReadOnly(t *testing.T) {
	dir := makeBag(t, "b", "", []plugin.Topic{chatterTopic}, []message{{"/chatter", start, text("x")}})
	v := open(t, dir)
	file := filepath.Join(t.TempDir(), "x.db")
	for _, query := range []string{"DELETE FROM topics", "INSERT INTO topics(topic) VALUES('x')", "UPDATE chatter SET data = 'y'", "DROP TABLE chatter", "CREATE TABLE y(z)",
		"CREATE TEMP TABLE y(z)", "CREATE VIEW y AS SELECT 1", "ATTACH '" + file + "' AS y", "VACUUM INTO '" + file + "'", "PRAGMA journal_mode = WAL", "PRAGMA writable_schema = 1",
		"CREATE VIRTUAL TABLE y USING topic(0)", "SELECT load_extension('x')", "BEGIN", "ANALYZE", "SELECT 1; DELETE FROM topics", "SELECT writefile('" + file + "', 'x')"} {
		if rows, err := try(t.Context(), v, query); err == nil {
			t.Errorf("%s: %v", query, rows)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was written")
	}
	if got := ask(t, v, "SELECT data FROM chatter"); len(got) != 1 || got[0][0] != "x" {
		t.Errorf("%v", got)
	}
}

// TestOdd: topics and messages that cannot be decoded, names that differ in case only, types that differ between bags.
func TestOdd(t *testing.T) {
	other := plugin.Topic{Name: "/x", Type: "t/msg/Other", Definition: plugin.Definition{Encoding: "ros2msg", Text: "string v\nint32 only\n"}}
	mine := plugin.Topic{Name: "/x", Type: "t/msg/Mine", Definition: plugin.Definition{Encoding: "ros2msg", Text: "int32 v\n"}}
	e := cdr.NewEncoder(nil, cdr.CDRBE)
	e.Str("seven")
	e.Int32(8)
	seven := cdr.NewEncoder(nil, cdr.CDRLE)
	seven.Int32(7)
	a := makeBag(t, "a", "", []plugin.Topic{mine, chatterTopic, {Name: "/Chatter", Type: "std_msgs/msg/String"}, {Name: "/u", Type: "u_msgs/msg/Unknown"}, {Name: "messages", Type: "std_msgs/msg/String"}},
		[]message{{"/x", start, seven.Bytes()}, {"/chatter", start, text("low")}, {"/chatter", start + 1, []byte{0, 1, 0, 0, 9, 0, 0, 0}}, {"/Chatter", start, text("High")}, {"/u", start, text("?")}})
	b := makeBag(t, "b", "", []plugin.Topic{other}, []message{{"/x", start + 1, e.Bytes()}})
	v := open(t, a, b)
	for query, want := range map[string][][]any{
		`SELECT v, only FROM x`: {{int64(7), nil}, {"seven", int64(8)}},
		`SELECT data FROM "/chatter_2" UNION ALL SELECT data FROM "/Chatter"`: {{"low"}, {nil}, {"High"}},
		`SELECT _size, hex(_cdr) FROM u`:                                      {{int64(10), "00010000020000003F00"}},
		`SELECT * FROM messages`:                                              {},
	} {
		if got := ask(t, v, query); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	trouble := strings.Join(v.Trouble(), "\n")
	for _, part := range []string{"/u (u_msgs/msg/Unknown) has no columns for its fields", "/chatter: 1 messages not decoded", "payload too short"} {
		if !strings.Contains(trouble, part) {
			t.Errorf("%s: no %q", trouble, part)
		}
	}
	for query, want := range map[string]string{"SELECT nothing_of_it FROM x": "no such column", "SELECT": "incomplete input", "SELEC 1": "syntax error", "SELECT * FROM y": "no such table"} {
		if _, err := try(t.Context(), v, query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := Open(t.Context(), []string{a, filepath.Join(a, "none")}, Options{}); err == nil {
		t.Error("a bag that is not there was opened")
	}
}

// TestManyColumns: SQLite tells of columns from 63 on together.
func TestManyColumns(t *testing.T) {
	def, e := "", cdr.NewEncoder(nil, cdr.CDRLE)
	for i := range 2500 {
		def += fmt.Sprintf("int32 c%d\n", i)
		e.Int32(int32(i))
	}
	v := open(t, makeBag(t, "b", "", []plugin.Topic{{Name: "/wide", Type: "t/msg/Wide", Definition: plugin.Definition{Encoding: "ros2msg", Text: def}}}, []message{{"/wide", start, e.Bytes()}}))
	got := ask(t, v, "SELECT c0, c52, c53, c54, c1900 FROM wide")
	if !reflect.DeepEqual(got, [][]any{{int64(0), int64(52), int64(53), int64(54), int64(1900)}}) {
		t.Errorf("%v", got)
	}
}

// TestLive asks while the bag is being written.
func TestLive(t *testing.T) {
	for _, storage := range []string{"sqlite3", "leveldb", "mcap", "columnar"} {
		t.Run(storage, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "live")
			w, ids := openBag(t, dir, storage, []plugin.Topic{chatterTopic})
			defer w.Close()
			write(t, w, ids, []message{{"/chatter", start, text("one")}, {"/chatter", start + 1, text("two")}})
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			v := open(t, dir)
			if got := ask(t, v, "SELECT data FROM chatter"); !reflect.DeepEqual(got, [][]any{{"one"}, {"two"}}) {
				t.Errorf("%v", got)
			}
		})
	}
}

// TestCancel: a query that would run for ever ends with its context.
func TestCancel(t *testing.T) {
	v := open(t, makeBag(t, "b", "", []plugin.Topic{chatterTopic}, nil))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := try(ctx, v, "WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) SELECT max(x) FROM c"); err == nil {
		t.Error("it ended by itself")
	}
	if got := ask(t, v, "SELECT 1"); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestFixtures reads every topic of the real bags.
func TestFixtures(t *testing.T) {
	root := os.Getenv("GOBAG_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	dirs, _ := filepath.Glob(filepath.Join(root, "fixtures", "bags", "*"))
	more, _ := filepath.Glob(filepath.Join(root, "fixtures", "rosbag2", "bags", "jazzy_*"))
	tables := 0
	for _, dir := range append(dirs, more...) {
		if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
			continue
		}
		v, err := Open(t.Context(), []string{dir}, Options{})
		if err != nil {
			t.Logf("%s: %v", filepath.Base(dir), err)
			continue
		}
		counts := map[string]int64{}
		for _, column := range []string{"_topic", "_type"} {
			for _, row := range ask(t, v, "SELECT "+column+", count(*) FROM messages GROUP BY 1") {
				counts[row[0].(string)] = row[1].(int64)
			}
		}
		for _, table := range v.Tables() {
			tables++
			if table.Name != "messages" && counts[table.Name] != int64(table.Rows) {
				t.Errorf("%s: %s has %d rows, want %d", filepath.Base(dir), table.Name, counts[table.Name], table.Rows)
			}
			if all := ask(t, v, "SELECT * FROM "+quote(table.Name)+" LIMIT 5"); len(all) != int(min(5, table.Rows)) || len(all) > 0 && len(all[0]) != len(table.Columns) {
				t.Errorf("%s: %s: %d rows", filepath.Base(dir), table.Name, len(all))
			}
		}
		for _, line := range v.Trouble() {
			t.Log(line)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(dirs) == 0 {
		t.Skip("no shared bags")
	}
	if tables < 300 {
		t.Errorf("%d tables", tables)
	}
}
