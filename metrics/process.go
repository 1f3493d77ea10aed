package metrics

import (
	"runtime"
	"runtime/metrics"
	"time"
)

var processStart = time.Now()

// Process are the metrics of this process under the names that Prometheus clients give them. What the system does not tell
// is left out.
func Process() []Metric {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}}
	metrics.Read(samples)
	list := []Metric{
		One("process_start_time_seconds", "Start of the process since the Unix epoch.", Gauge, float64(processStart.UnixNano())/1e9),
		One("go_goroutines", "Goroutines.", Gauge, float64(runtime.NumGoroutine())),
		One("go_heap_objects_bytes", "Memory of live and unswept objects.", Gauge, float64(samples[0].Value.Uint64())),
		One("go_memory_total_bytes", "Memory that the Go runtime has mapped.", Gauge, float64(samples[1].Value.Uint64())),
	}
	if cpu, ok := cpuSeconds(); ok {
		list = append(list, One("process_cpu_seconds_total", "User and system time.", Counter, cpu))
	}
	if rss, ok := residentBytes(); ok {
		list = append(list, One("process_resident_memory_bytes", "Resident memory.", Gauge, rss))
	}
	return list
}
