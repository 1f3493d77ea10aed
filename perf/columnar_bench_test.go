package perf

import (
	"context"
	"testing"
)

// BenchmarkColumnarIngest stores the samples as `perf columnar` does, for profiles: go test -run - -bench ColumnarIngest/Imu
// -cpuprofile. CPU is that of all threads.
func BenchmarkColumnarIngest(b *testing.B) {
	for i := range ColumnarSamples {
		s := &ColumnarSamples[i]
		for _, t := range ColumnarTargets[:2] {
			if t.Preset == "small" && !s.Blob {
				continue
			}
			b.Run(s.Name+"/"+t.Preset, func(b *testing.B) {
				m, err := s.make(1, s.Count)
				if err != nil {
					b.Fatal(err)
				}
				var cpu, disk float64
				for b.Loop() {
					var c ColumnarCell
					if err := m.write(context.Background(), t, b.TempDir()+"/storage", &c); err != nil {
						b.Fatal(err)
					}
					cpu, disk = cpu+c.WriteCPU, float64(c.Disk)
				}
				n := float64(len(m.all))
				b.ReportMetric(cpu/float64(b.N)/n*1e9, "cpu-ns/message")
				b.ReportMetric(disk/n, "disk-B/message")
			})
		}
	}
}
