package sqlview

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
)

// imu is a sensor_msgs/msg/Imu.
func imu(n int) []byte {
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	e.Int32(int32(n / 1000))
	e.Uint32(uint32(n % 1000 * 1e6))
	e.Str("imu_link")
	for i := range 37 {
		e.Float64(float64(n*i) / 7)
	}
	return e.Bytes()
}

// BenchmarkQuery is the time of a query for each row of a bag of Imu.
func BenchmarkQuery(b *testing.B) {
	const rows = 50000
	dir := filepath.Join(b.TempDir(), "imu")
	w, err := bag.Create(b.Context(), dir, bag.WriterOptions{StorageID: "leveldb"})
	if err != nil {
		b.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/imu", Type: "sensor_msgs/msg/Imu", SerializationFormat: "cdr"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range rows {
		if err := w.Write([]plugin.Message{{Topic: id, RecvTime: start + int64(i)*1e6, Data: imu(i)}}); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	v, err := Open(b.Context(), []string{dir}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	for name, query := range map[string]string{
		"count":   `SELECT count(*) FROM imu`,
		"time":    `SELECT max(_log_time-_pub_time) FROM imu`,
		"one":     `SELECT avg("linear_acceleration.x") FROM imu`,
		"ten":     `SELECT avg("orientation.x"+"orientation.y"+"orientation.z"+"orientation.w"+"angular_velocity.x"+"angular_velocity.y"+"angular_velocity.z"+"linear_acceleration.x"+"linear_acceleration.y"+"linear_acceleration.z") FROM imu`,
		"text":    `SELECT count(*) FROM imu WHERE "header.frame_id" = 'imu_link'`,
		"json":    `SELECT count("orientation_covariance") FROM imu`,
		"buckets": `SELECT _log_time/1000000000 AS s, max("linear_acceleration.x") FROM imu GROUP BY s`,
		"range":   fmt.Sprintf(`SELECT max("linear_acceleration.x") FROM imu WHERE _log_time BETWEEN %d AND %d`, start+1e9, start+2e9),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := v.Query(b.Context(), query)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for r.Next() {
					n++
				}
				if err := r.Err(); err != nil || n == 0 {
					b.Fatal(n, err)
				}
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
