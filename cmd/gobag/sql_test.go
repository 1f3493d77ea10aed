package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

func TestSQL(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "b")
	makeTopicBag(t, dir)
	file := filepath.Join(t.TempDir(), "q.sql")
	if err := os.WriteFile(file, []byte("-- comment\nSELECT count(*) AS n FROM messages;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name  string
		words []string
		code  int
		out   string // the whole of it
		err   string // a part
	}{
		{"table", []string{dir, `SELECT _log_time, "values" v, pair->>'$[1].name' AS name FROM secret LIMIT 2`}, 0,
			"_log_time            v          name\n-------------------  ---------  ----\n" +
				fmt.Sprintf("%d  [0.5,0.0]  it 0\n%d  [0.5,1.0]  it 1\n(2 rows)\n", int64(start), int64(start)+1e8), ""},
		{"table of all kinds", []string{dir, `SELECT NULL a, 1.0 b, 10 c, x'00ff' d, zeroblob(40) e, 'x' || char(10) f`}, 0,
			"a     b    c   d        e                                                                                f\n" +
				"----  ---  --  -------  -------------------------------------------------------------------------------  ---\n" +
				"NULL  1.0  10  x'00ff'  x'" + strings.Repeat("00", 32) + "…' (40 bytes)  x\\n\n(1 row)\n", ""},
		{"no rows", []string{dir, "SELECT data FROM chatter WHERE 0"}, 0, "data\n----\n(0 rows)\n", ""},
		{"csv", []string{dir, "--csv", `SELECT data, _size, x'00ff' AS b, NULL AS n, 1e300 AS f, 'a,"b' AS s FROM chatter`}, 0,
			"data,_size,b,n,f,s\ntrue,13,00ff,,1e+300,\"a,\"\"b\"\nx,12,00ff,,1e+300,\"a,\"\"b\"\n", ""},
		{"json", []string{dir, "--format", "json", `SELECT data, _size, x'00ff' AS b, NULL AS n, 9e999 AS f FROM chatter`}, 0,
			"[\n{\"data\": \"true\", \"_size\": 13, \"b\": \"AP8=\", \"n\": null, \"f\": \"+Inf\"},\n{\"data\": \"x\", \"_size\": 12, \"b\": \"AP8=\", \"n\": null, \"f\": \"+Inf\"}\n]\n", ""},
		{"file", []string{dir, dir, "--csv", "-f", file}, 0, "n\n16\n", ""},
		{"two bags", []string{dir, dir, "--csv", "SELECT count(*) n FROM secret"}, 0, "n\n10\n", ""},
		{"undecoded", []string{dir, "--csv", "SELECT _size, _type FROM odd"}, 0, "_size,_type\n5,odd_msgs/msg/Odd\n", "/odd (odd_msgs/msg/Odd) has no columns for its fields"},

		{"ROS 1", []string{"../../rosbag1/testdata/bz2.bag", "--csv", `SELECT count(*) n, max("header.stamp") t, min("linear_acceleration.z") z FROM imu`}, 0, "n,t,z\n60,1700000000590000000,9.81\n", ""},

		{"writes", []string{dir, "DELETE FROM topics"}, 1, "", "queries only read"},
		{"no such column", []string{dir, "SELECT dada FROM chatter"}, 1, "", "no such column: dada"},
		{"no bag", []string{dir + "x", "SELECT 1"}, 1, "", "does not exist"},
		{"nothing", nil, 2, "", "a bag is needed"},
		{"form", []string{dir, "--format", "xml", "SELECT 1"}, 2, "", "not one of table, csv, json"},
		{"both", []string{dir, "--csv", "--json", "SELECT 1"}, 2, "", "exclude each other"},
		{"no file", []string{dir, "-f", file + "x"}, 1, "", "--file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := cli(nil, append([]string{"sql"}, c.words...)...)
			if r.code != c.code || r.out != c.out || !strings.Contains(r.errOut, c.err) || c.err == "" && r.errOut != "" {
				t.Errorf("exit %d, want %d\n%s\nwant\n%s\nerrors: %s", r.code, c.code, r.out, c.out, r.errOut)
			}
			checkPlain(t, r)
		})
	}
	r := cli(nil, "sql", dir)
	for _, part := range []string{"\"/secret\" or secret  secret_msgs/msg/Reading, 5 rows\n", "    \"values\"                                 TEXT\n", "\"messages\"  all topics, 8 rows", "    no columns for its fields: definition not found: odd_msgs/msg/Odd"} {
		if r.code != 0 || !strings.Contains(r.out, part) {
			t.Errorf("exit %d, no %q in\n%s%s", r.code, part, r.out, r.errOut)
		}
	}
	for _, line := range strings.Split(r.out, "\n") {
		if strings.HasSuffix(line, " ") {
			t.Errorf("trailing blanks: %q", line)
		}
	}
}

// TestSQLRecipes runs what docs/sql.md shows on a bag that has these topics.
func TestSQLRecipes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "sql.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "b")
	w, err := bag.Create(t.Context(), dir, bag.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, topic := range []plugin.Topic{{Name: "/imu/data", Type: "sensor_msgs/msg/Imu"}, {Name: "/tf", Type: "tf2_msgs/msg/TFMessage"},
		{Name: "/joint_states", Type: "sensor_msgs/msg/JointState"}, {Name: "/rosout", Type: "rcl_interfaces/msg/Log"}, {Name: "/cmd_vel", Type: "geometry_msgs/msg/Twist"}} {
		topic.SerializationFormat = "cdr"
		id, err := w.AddTopic(topic)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: start + int64(i), Data: append([]byte{0, 1, 0, 0}, make([]byte, 400)...)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	recipes := ""
	for _, block := range strings.Split(string(text), "```sql\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		recipes += block
	}
	n := 0
	for query := range strings.SplitSeq(recipes, ";\n") {
		if query = strings.TrimSpace(query); strings.HasPrefix(query, "--") { // would be a flag
			_, query, _ = strings.Cut(query, "\n")
		}
		if query == "" {
			continue
		}
		n++
		if r := cli(nil, "sql", dir, query); r.code != 0 || !strings.Contains(r.out, "row") {
			t.Errorf("%s: exit %d\n%s%s", query, r.code, r.out, r.errOut)
		}
	}
	if n < 9 {
		t.Errorf("%d recipes", n)
	}
}
