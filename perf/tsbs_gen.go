package perf

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
)

// tsbsSource makes the rows of a use case of the Time Series Benchmark Suite, in the order in which they arrive: as messages
// for us and as rows for a relational peer. The same parameters give the same rows.
type tsbsSource interface {
	topics() []plugin.Topic
	tables() []tsbsTable

	// next makes a row and tells the topic it is on, an index of topics; false at the end.
	next() (topic int, more bool)
	stamp() int64                 // of the row, ns
	message(dst []byte) []byte    // the row as CDR, appended
	row(dst []byte) (int, []byte) // the row for the peer, appended, and the table it is in, an index of tables
}

// tsbsTable is a table of a relational peer.
type tsbsTable struct {
	name   string
	types  string   // one letter a column: s text, i int64, b a whole number 0 to 255, d double
	create []string // statements before rows come
	index  []string // and after that
}

// CPU use case: rows of ten numbers and ten tags from every host every ten seconds.
const (
	cpuTopic = "/cpu"
	cpuType  = "tsbs_msgs/msg/Cpu"
	cpuStep  = int64(10e9)
)

var (
	cpuTags   = []string{"hostname", "region", "datacenter", "rack", "os", "arch", "team", "service", "service_version", "service_environment"}
	cpuFields = []string{"usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq", "usage_softirq", "usage_steal", "usage_guest",
		"usage_guest_nice"}
	cpuRegions = []string{"us-east-1", "us-west-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "sa-east-1"}
)

// cpuSource is the use case cpu-only. All hosts end at the same time, but for one in twenty, which stops at some time in the
// second half.
type cpuSource struct {
	hosts []cpuHost
	steps int
	rng   *rand.Rand
	step  int
	at    int // host of the row
}

type cpuHost struct {
	tags     [10]string
	template []byte // its message; time and numbers are put into it
	ends     int    // step at which it stops
	usage    [10]float64
}

func newCPUSource(seed uint64, hosts, steps int) *cpuSource {
	s := &cpuSource{hosts: make([]cpuHost, hosts), steps: steps, rng: rand.New(rand.NewPCG(seed, 11)), at: -1}
	rng := s.rng
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	var e cdr.Encoder
	for i := range s.hosts {
		h := &s.hosts[i]
		region := pick(cpuRegions...)
		h.tags = [10]string{fmt.Sprintf("host_%d", i), region, region + pick("a", "b", "c"), fmt.Sprint(rng.IntN(100)),
			pick("Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"), pick("x64", "x86"), pick("SF", "NYC", "LON", "CHI"),
			fmt.Sprint(rng.IntN(20)), fmt.Sprint(rng.IntN(2)), pick("production", "staging", "test")}
		for j := range h.usage {
			h.usage[j] = rng.Float64() * 100
		}
		h.ends = steps
		if rng.IntN(20) == 0 {
			h.ends = steps/2 + rng.IntN(steps-steps/2)
		}
		e.Reset(nil, cdr.CDRLE)
		e.Int32(0)
		e.Uint32(0)
		for _, t := range h.tags {
			e.Str(t)
		}
		for range h.usage {
			e.Int64(0)
		}
		h.template = e.Bytes()
	}
	return s
}

// rows is how many rows there are in all.
func (s *cpuSource) rows() int {
	n := 0
	for i := range s.hosts {
		n += s.hosts[i].ends
	}
	return n
}

func (s *cpuSource) topics() []plugin.Topic {
	return []plugin.Topic{{Name: cpuTopic, Type: cpuType, SerializationFormat: "cdr", Sources: []string{"01.0f.00.00"},
		Definition: plugin.Definition{Encoding: "ros2msg", Text: tsbsDefinition}}}
}

func (s *cpuSource) tables() []tsbsTable {
	t := tsbsTable{name: "cpu", types: "ssssssssssbbbbbbbbbbi"}
	create := "CREATE TABLE cpu("
	for _, c := range cpuTags {
		create += c + " TEXT NOT NULL, "
	}
	for _, c := range cpuFields {
		create += c + " INTEGER NOT NULL, "
	}
	t.create = []string{create + "ts INTEGER NOT NULL, PRIMARY KEY(hostname, ts))"}
	return []tsbsTable{t}
}

func (s *cpuSource) next() (int, bool) {
	for {
		if s.at++; s.at == len(s.hosts) {
			s.at = 0
			s.step++
		}
		if s.step >= s.steps {
			s.step, s.at = s.steps, -1
			return 0, false
		}
		h := &s.hosts[s.at]
		if s.step >= h.ends {
			continue
		}
		for j := range h.usage {
			h.usage[j] = max(0, min(100, h.usage[j]+s.rng.NormFloat64()))
		}
		return 0, true
	}
}

func (s *cpuSource) stamp() int64 { return columnarStart + int64(s.step)*cpuStep }

func (s *cpuSource) message(dst []byte) []byte {
	h := &s.hosts[s.at]
	at := len(dst)
	dst = append(dst, h.template...)
	b := dst[at:]
	stamp := s.stamp()
	binary.LittleEndian.PutUint32(b[4:], uint32(stamp/1e9))
	binary.LittleEndian.PutUint32(b[8:], uint32(stamp%1e9))
	b = b[len(b)-80:]
	for j := range h.usage {
		binary.LittleEndian.PutUint64(b[8*j:], uint64(h.usage[j]))
	}
	return dst
}

func (s *cpuSource) row(dst []byte) (int, []byte) {
	h := &s.hosts[s.at]
	for _, t := range h.tags {
		dst = append(binary.LittleEndian.AppendUint16(dst, uint16(len(t))), t...)
	}
	for j := range h.usage {
		dst = append(dst, byte(h.usage[j]))
	}
	return 0, binary.LittleEndian.AppendUint64(dst, uint64(s.stamp()))
}
