package perf

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
)

// IoT use case: readings and diagnostics of trucks, ten numbers of each every ten seconds. Rows are missing (one in a
// hundred) and late (one in a hundred comes up to ten rows behind those of its truck).
const (
	iotReadings    = "tsbs_msgs/msg/Readings"
	iotDiagnostics = "tsbs_msgs/msg/Diagnostics"
	iotStep        = int64(10e9)

	// trucksAsTopics is up to how many trucks each has topics of its own; of more, each table is one topic.
	trucksAsTopics = 100
)

const iotTagsDefinition = "builtin_interfaces/Time time\nstring name\nstring fleet\nstring driver\nstring model\nstring device_version\n" +
	"float64 load_capacity\nfloat64 fuel_capacity\nfloat64 nominal_fuel_consumption\n"

const iotTimeDefinition = "\n================================================================================\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"

var iotDefinitions = []string{
	iotTagsDefinition + "float64 latitude\nfloat64 longitude\nfloat64 elevation\nfloat64 velocity\nfloat64 heading\nfloat64 grade\nfloat64 fuel_consumption\n" + iotTimeDefinition,
	iotTagsDefinition + "float64 fuel_state\nfloat64 current_load\nint64 status\n" + iotTimeDefinition,
}

var (
	iotTables      = []string{"readings", "diagnostics"}
	iotTypes       = []string{iotReadings, iotDiagnostics}
	iotTags        = "name, fleet, driver, model, device_version, load_capacity, fuel_capacity, nominal_fuel_consumption"
	iotFields      = []string{"latitude, longitude, elevation, velocity, heading, grade, fuel_consumption", "fuel_state, current_load, status"}
	iotFieldLetter = []string{"ddddddd", "ddi"}
)

// iotSource is the use case.
type iotSource struct {
	trucks []iotTruck
	steps  int
	rng    *rand.Rand
	late   []iotRow // rows that come later
	step   int
	at     int // of the next row: 2*truck + table
	now    iotRow
}

type iotTruck struct {
	name, fleet, driver, model, version string
	load, fuel, nominal                 float64
	head                                []byte // of its messages, the stamp to be put in
	lat, lon, ele, vel, dir, grade, use float64
	tank, cargo                         float64
	until                               int // step at which it stops, or drives on
	drives, broken                      bool
}

// iotRow is a row.
type iotRow struct {
	truck, table int
	stamp        int64
	due          int // step at which a late row comes
	v            [7]float64
}

func newIoTSource(seed uint64, trucks, steps int) *iotSource {
	s := &iotSource{trucks: make([]iotTruck, trucks), steps: steps, rng: rand.New(rand.NewPCG(seed, 13))}
	rng := s.rng
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	models := []struct {
		name                string
		load, fuel, nominal float64
	}{{"F-150", 2000, 200, 15}, {"G-2000", 5000, 300, 19}, {"H-2", 1500, 150, 12}}
	for i := range s.trucks {
		m := models[rng.IntN(len(models))]
		t := &s.trucks[i]
		*t = iotTruck{name: fmt.Sprintf("truck_%d", i), fleet: pick("East", "West", "North", "South"), driver: pick("Derek", "Rodney", "Albert", "Andy", "Seth", "Trish"),
			model: m.name, version: pick("v1.0", "v1.5", "v2.0", "v2.3"), load: m.load, fuel: m.fuel, nominal: m.nominal,
			lat: rng.Float64()*180 - 90, lon: rng.Float64()*360 - 180, ele: rng.Float64() * 500, dir: rng.Float64() * 360, use: m.nominal, tank: rng.Float64(), cargo: rng.Float64() * m.load}
		var e cdr.Encoder
		e.Reset(nil, cdr.CDRLE)
		e.Int32(0)
		e.Uint32(0)
		for _, text := range []string{t.name, t.fleet, t.driver, t.model, t.version} {
			e.Str(text)
		}
		for _, f := range []float64{t.load, t.fuel, t.nominal} {
			e.Float64(f)
		}
		t.head = e.Bytes()
	}
	return s
}

func (s *iotSource) ownTopics() bool { return len(s.trucks) <= trucksAsTopics }

func (s *iotSource) topics() []plugin.Topic {
	var out []plugin.Topic
	add := func(name string, table int) {
		out = append(out, plugin.Topic{Name: name, Type: iotTypes[table], SerializationFormat: "cdr", Sources: []string{"01.0f.00.00"},
			Definition: plugin.Definition{Encoding: "ros2msg", Text: iotDefinitions[table]}})
	}
	if !s.ownTopics() {
		add("/readings", 0)
		add("/diagnostics", 1)
		return out
	}
	for i := range s.trucks {
		add("/"+s.trucks[i].name+"/readings", 0)
		add("/"+s.trucks[i].name+"/diagnostics", 1)
	}
	return out
}

func (s *iotSource) tables() []tsbsTable {
	var out []tsbsTable
	for i, name := range iotTables {
		var cols []string
		for _, c := range strings.Split(iotTags+", "+iotFields[i], ", ") {
			kind := "REAL"
			switch c {
			case "name", "fleet", "driver", "model", "device_version":
				kind = "TEXT"
			case "status":
				kind = "INTEGER"
			}
			cols = append(cols, c+" "+kind+" NOT NULL")
		}
		out = append(out, tsbsTable{name: name, types: "sssssddd" + iotFieldLetter[i] + "i",
			create: []string{"CREATE TABLE " + name + "(" + strings.Join(cols, ", ") + ", ts INTEGER NOT NULL)"},
			index:  []string{"CREATE INDEX " + name + "_name ON " + name + "(name, ts)", "CREATE INDEX " + name + "_ts ON " + name + "(ts)"}})
	}
	return out
}

func (s *iotSource) next() (int, bool) {
	for {
		if n := len(s.late); s.at == 0 && n > 0 && (s.late[0].due <= s.step || s.step >= s.steps) { // before the rows of a step
			s.now, s.late = s.late[0], s.late[1:]
			return s.topic(), true
		}
		if s.step >= s.steps {
			return 0, false
		}
		i, table, step := s.at/2, s.at%2, s.step
		if s.at++; s.at == 2*len(s.trucks) {
			s.at = 0
			s.step++
		}
		t := &s.trucks[i]
		if table == 0 {
			t.drive(s.rng, step)
		}
		s.now = iotRow{truck: i, table: table, stamp: columnarStart + int64(step)*iotStep, due: step + 10}
		if table == 0 {
			s.now.v = [7]float64{t.lat, t.lon, t.ele, t.vel, t.dir, t.grade, t.use}
		} else {
			status := 1 + float64(int(t.vel)%4)
			if t.broken {
				status = 0
			}
			s.now.v = [7]float64{t.tank, t.cargo, status}
		}
		switch s.rng.IntN(100) {
		case 0:
			continue // missing
		case 1:
			s.late = append(s.late, s.now)
			continue
		}
		return s.topic(), true
	}
}

// drive moves a truck by a step. It drives for hours and rests; now and then it breaks down.
func (t *iotTruck) drive(rng *rand.Rand, step int) {
	if step >= t.until {
		t.drives = !t.drives
		t.until = step + 180 + rng.IntN(1800) // 30 minutes to 5 hours and a half
		t.broken = !t.drives && rng.IntN(5) == 0
		if t.drives && rng.IntN(3) == 0 {
			t.tank, t.cargo = 1, rng.Float64()*t.load
		}
	}
	round := func(f float64) float64 { return math.Round(f*1e5) / 1e5 }
	if !t.drives {
		t.vel = 0
		return
	}
	t.vel = round(max(2, min(100, t.vel+rng.NormFloat64()*2)))
	t.dir = round(math.Mod(t.dir+rng.NormFloat64()*3+360, 360))
	t.lat = round(max(-90, min(90, t.lat+rng.NormFloat64()*0.005)))
	t.lon = round(max(-180, min(180, t.lon+rng.NormFloat64()*0.005)))
	t.ele = round(max(0, min(5000, t.ele+rng.NormFloat64())))
	t.grade = round(max(0, min(100, t.grade+rng.NormFloat64()*0.1)))
	t.use = round(max(0, min(50, t.use+rng.NormFloat64()*0.1)))
	t.tank = round(max(0, t.tank-0.0001))
}

// topic is the topic of the row.
func (s *iotSource) topic() int {
	if !s.ownTopics() {
		return s.now.table
	}
	return 2*s.now.truck + s.now.table
}

func (s *iotSource) stamp() int64 { return s.now.stamp }

func (s *iotSource) message(dst []byte) []byte {
	t, r := &s.trucks[s.now.truck], &s.now
	at := len(dst)
	dst = append(dst, t.head...)
	binary.LittleEndian.PutUint32(dst[at+4:], uint32(r.stamp/1e9))
	binary.LittleEndian.PutUint32(dst[at+8:], uint32(r.stamp%1e9))
	for i := range len(iotFieldLetter[r.table]) {
		dst = binary.LittleEndian.AppendUint64(dst, r.word(i))
	}
	return dst
}

// word is a field's bits.
func (r *iotRow) word(i int) uint64 {
	if iotFieldLetter[r.table][i] == 'i' {
		return uint64(int64(r.v[i]))
	}
	return math.Float64bits(r.v[i])
}

func (s *iotSource) row(dst []byte) (int, []byte) {
	t, r := &s.trucks[s.now.truck], &s.now
	for _, text := range []string{t.name, t.fleet, t.driver, t.model, t.version} {
		dst = append(binary.LittleEndian.AppendUint16(dst, uint16(len(text))), text...)
	}
	for _, f := range []float64{t.load, t.fuel, t.nominal} {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
	}
	for i := range len(iotFieldLetter[r.table]) {
		dst = binary.LittleEndian.AppendUint64(dst, r.word(i))
	}
	return r.table, binary.LittleEndian.AppendUint64(dst, uint64(r.stamp))
}

// iotQuestions are the twelve queries. R, D and T stand for the tables and the column of time of who is asked.
func iotQuestions(s *iotSource) []tsbsQuestion {
	end := columnarStart + int64(s.steps)*iotStep
	within := func(span int64) string {
		return fmt.Sprintf("T >= %d AND T < %d", end-min(span, end-columnarStart), end)
	}
	const ten = "T/600000000000"
	newest := func(table, tags, fields string) string { // of each truck
		return fmt.Sprintf("(SELECT name, %s, max(T) AS t, %s FROM %s GROUP BY name)", tags, fields, table)
	}
	// Of SQLite in its best form: a loose index scan.
	loose := func(table, tags, fields string) string {
		return fmt.Sprintf("(WITH RECURSIVE h(n) AS (SELECT min(name) FROM %[1]s UNION ALL SELECT (SELECT min(name) FROM %[1]s WHERE name > h.n) FROM h WHERE h.n IS NOT NULL) "+
			"SELECT name, %[2]s, T AS t, %[3]s FROM h JOIN %[1]s ON name = h.n AND T = (SELECT max(T) FROM %[1]s WHERE name = h.n))", table, tags, fields)
	}
	duckNewest := func(table, tags, fields string) string {
		return fmt.Sprintf("(SELECT name, %[2]s, T AS t, %[3]s FROM %[1]s JOIN (SELECT name, max(T) AS T FROM %[1]s GROUP BY name) USING (name, T))", table, tags, fields)
	}
	driving := func(keys, span, least string) string {
		return fmt.Sprintf("(SELECT %s, %s AS ten, avg(velocity) AS v FROM R WHERE %s GROUP BY %s, ten HAVING avg(velocity) > %s)", keys, ten, span, keys, least)
	}
	all := within(math.MaxInt64)
	var qs []tsbsQuestion
	ask := func(id, text string, other ...string) {
		q := tsbsQuestion{id: fmt.Sprint(len(qs) + 1), about: id, ours: text, sqlite: text, duck: text}
		if len(other) == 2 {
			q.sqlite, q.duck = other[0], other[1]
		}
		put := func(text, r, d, t string) string {
			words := strings.Fields(text)
			text = strings.Join(words, " ")
			for _, w := range []struct{ from, to string }{{"FROM R ", "FROM " + r + " "}, {"FROM D ", "FROM " + d + " "}, {"JOIN R ", "JOIN " + r + " "}, {"JOIN D ", "JOIN " + d + " "},
				{"max(T)", "max(" + t + ")"}, {"T/600000000000", t + "/600000000000"}, {"T >=", t + " >="}, {"T <", t + " <"}, {" T AS", " " + t + " AS"}, {"T = (", t + " = ("},
				{"AS T FROM", "AS " + t + " FROM"}, {"(name, T)", "(name, " + t + ")"}} {
				text = strings.ReplaceAll(text, w.from, w.to)
			}
			return text
		}
		r, d := `"/readings"`, `"/diagnostics"`
		if s.ownTopics() {
			r, d = `"`+iotReadings+`"`, `"`+iotDiagnostics+`"`
		}
		q.ours, q.sqlite = put(q.ours, r, d, "_log_time"), put(q.sqlite, "readings", "diagnostics", "ts")
		q.duck = strings.ReplaceAll(put(q.duck, "readings", "diagnostics", "ts"), "ts/600000000000", "ts//600000000000")
		qs = append(qs, q)
	}
	three := func(id, form, table, tags, fields string) {
		ask(id, fmt.Sprintf(form, newest(table, tags, fields)), fmt.Sprintf(form, loose(table, tags, fields)), fmt.Sprintf(form, duckNewest(table, tags, fields)))
	}
	three("last-loc", "SELECT name, driver, t, longitude, latitude FROM %s WHERE fleet = 'South' ORDER BY name", "R", "fleet, driver", "longitude, latitude")
	three("low-fuel", "SELECT name, driver, fuel_state FROM %s WHERE fuel_state < 0.1 ORDER BY name", "D", "fleet, driver", "fuel_state")
	three("high-load", "SELECT name, driver, current_load, load_capacity FROM %s WHERE current_load / load_capacity > 0.9 ORDER BY name", "D", "driver, load_capacity", "current_load")
	ask("stationary-trucks", "SELECT name, driver, avg(velocity) AS v FROM R WHERE "+within(10*minute)+" GROUP BY name, driver HAVING avg(velocity) < 1 ORDER BY name")
	sessions := func(id string, hours int64, tens int) {
		ask(id, fmt.Sprintf("SELECT name, driver, count(*) AS n FROM %s AS s GROUP BY name, driver HAVING count(*) > %d ORDER BY name", driving("name, driver", within(hours*hour), "1"), tens))
	}
	sessions("long-driving-sessions", 4, 21)
	sessions("long-daily-sessions", 24, 60)
	ask("avg-vs-projected-fuel-consumption", "SELECT fleet, avg(fuel_consumption) AS used, avg(nominal_fuel_consumption) AS projected FROM R WHERE velocity > 1 GROUP BY fleet ORDER BY fleet")
	ask("avg-daily-driving-duration", "SELECT fleet, name, driver, avg(h) AS hours FROM (SELECT fleet, name, driver, day, count(*)/6.0 AS h FROM (SELECT fleet, name, driver, (ten - ten % 144) AS day FROM "+
		driving("fleet, name, driver", all, "1")+" AS a) AS b GROUP BY fleet, name, driver, day) AS c GROUP BY fleet, name, driver ORDER BY name")
	ask("avg-daily-driving-session", "SELECT name, day, avg(tens)/6.0 AS hours FROM (SELECT name, (start - start % 144) AS day, stop - start AS tens FROM "+
		"(SELECT name, drives, ten AS start, lead(ten) OVER (PARTITION BY name ORDER BY ten) AS stop FROM "+
		"(SELECT name, ten, drives, lag(drives) OVER (PARTITION BY name ORDER BY ten) AS before FROM "+
		"(SELECT name, ten, v > 5 AS drives FROM (SELECT name, "+ten+" AS ten, avg(velocity) AS v FROM R WHERE "+all+" GROUP BY name, ten) AS a) AS b) AS c WHERE before IS NULL OR before <> drives) AS d "+
		"WHERE drives AND stop IS NOT NULL) AS e GROUP BY name, day ORDER BY name, day")
	ask("avg-load", "SELECT fleet, model, load_capacity, avg(m / load_capacity) AS share FROM (SELECT fleet, model, name, load_capacity, avg(current_load) AS m FROM D WHERE "+all+
		" GROUP BY fleet, model, name, load_capacity) AS a GROUP BY fleet, model, load_capacity ORDER BY fleet, model, load_capacity")
	ask("daily-activity", "SELECT fleet, model, (ten - ten % 144) AS day, count(*)/144.0 AS days FROM (SELECT fleet, model, name, "+ten+" AS ten, avg(status) AS s FROM D WHERE "+all+
		" GROUP BY fleet, model, name, ten HAVING avg(status) >= 1) AS a GROUP BY fleet, model, day ORDER BY fleet, model, day")
	ask("breakdown-frequency", "SELECT model, count(*) AS n FROM (SELECT model, name, broken, lead(broken) OVER (PARTITION BY name ORDER BY ten) AS after FROM "+
		"(SELECT model, name, ten, s < 0.5 AS broken FROM (SELECT model, name, "+ten+" AS ten, avg(status) AS s FROM D WHERE "+all+" GROUP BY model, name, ten) AS a) AS b) AS c "+
		"WHERE NOT broken AND after GROUP BY model ORDER BY model")
	return qs
}
