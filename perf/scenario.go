package perf

import (
	"fmt"
	"strings"
	"time"
)

// NamedGroups is one load of a scenario: what publishes at the same time. Each is a row of cells.
type NamedGroups struct {
	Name   string
	Groups []Group
}

// Scenario is a list of loads, and what its file says of the other dimensions of the matrix; fields that it leaves open
// are zero.
type Scenario struct {
	Name, About string
	Loads       []NamedGroups

	Duration     time.Duration
	Repeat       int
	NoTransport  bool
	Storages     []string
	Presets      []string
	Caches       []int64
	MaxBagSizes  []int64
	Compressions []string // "" or "zstd"
	ConfigFiles  []string // of the storage, "" none
	Notes        []string // what was read and has no effect here
}

// Scenarios are the built-in ones. Sources: the three cells of the proposal to record into LevelDB (2020), and rosbag2's
// own producer sets (rosbag2_performance_benchmarking).
func Scenarios() []Scenario {
	matrix := func(instances int, hz float64, size int) NamedGroups {
		g := Group{Name: "t", Instances: instances, Frequency: hz, Size: size}
		return NamedGroups{Name: g.String(), Groups: []Group{g}}
	}
	one := func(name string, groups ...Group) []NamedGroups { return []NamedGroups{{name, groups}} }
	return []Scenario{
		{Name: "proposal", About: "the three cells of the LevelDB proposal, 100 MB/s each: 1 × 100 Hz × 1 MB, 10 × 100 Hz × 100 kB, 100 × 100 Hz × 10 kB",
			Loads: []NamedGroups{matrix(1, 100, 1_000_000), matrix(10, 100, 100_000), matrix(100, 100, 10_000)}},
		{Name: "small", About: "small messages: 1 × 1 kHz × 1 kB, 100 × 100 Hz × 100 B, 1000 × 10 Hz × 100 B",
			Loads: []NamedGroups{matrix(1, 1000, 1000), matrix(100, 100, 100), matrix(1000, 10, 100)}},
		{Name: "mixed", About: "a mobile robot, 45 MB/s: a camera, a lidar, IMU, odometry, transforms, status",
			Loads: one("mixed robot",
				Group{Name: "camera", Instances: 1, Frequency: 30, Size: 921_600, Depth: 60},
				Group{Name: "lidar", Instances: 1, Frequency: 10, Size: 1_600_000, Depth: 20},
				Group{Name: "imu", Instances: 1, Frequency: 400, Size: 320, Depth: 800},
				Group{Name: "odom", Instances: 2, Frequency: 50, Size: 720, Depth: 100},
				Group{Name: "tf", Instances: 1, Frequency: 100, Size: 1200, Depth: 200},
				Group{Name: "status", Instances: 30, Frequency: 10, Size: 250, Depth: 20})},
		{Name: "overload", About: "transforms, an IMU and a camera beyond the disk: 300 B × 100 Hz, 320 B × 400 Hz, 3 MB × 30 Hz",
			Loads: one("overload",
				Group{Name: "tf", Instances: 1, Frequency: 100, Size: 300, Depth: 300},
				Group{Name: "imu", Instances: 1, Frequency: 400, Size: 320, Depth: 1200},
				Group{Name: "camera", Instances: 1, Frequency: 30, Size: 3_000_000, Depth: 30})},
		{Name: "automotive", About: "rosbag2's automotive set, 570 MB/s: lidars, cameras, radars, GPS, IMU, ultrasonic",
			Loads: one("automotive",
				Group{Name: "lidar_small", Instances: 4, Frequency: 25, Size: 160_000, Count: 1000, Depth: 5},
				Group{Name: "lidar_large", Instances: 1, Frequency: 25, Size: 640_000, Count: 1000, Depth: 5},
				Group{Name: "camera", Instances: 6, Frequency: 24, Size: 3_750_000, Count: 960, Depth: 5},
				Group{Name: "radar", Instances: 5, Frequency: 50, Size: 1600, Count: 2000, Depth: 5},
				Group{Name: "gps", Instances: 1, Frequency: 100, Size: 400, Count: 4000, Depth: 5},
				Group{Name: "imu", Instances: 1, Frequency: 100, Size: 400, Count: 4000, Depth: 5},
				Group{Name: "ultrasonic", Instances: 12, Frequency: 40, Size: 150, Count: 1600, Depth: 5})},
		{Name: "rosbag2-100", About: "rosbag2's 100 MB/s set: 20 × 200 kB × 25 Hz", Loads: one("rosbag2 100 MB/s", rosbag2Set(200_000))},
		{Name: "rosbag2-200", About: "rosbag2's 200 MB/s set: 20 × 400 kB × 25 Hz", Loads: one("rosbag2 200 MB/s", rosbag2Set(400_000))},
		{Name: "rosbag2-300", About: "rosbag2's 300 MB/s set: 20 × 600 kB × 25 Hz", Loads: one("rosbag2 300 MB/s", rosbag2Set(600_000))},
		{Name: "rosbag2-mixed", About: "of rosbag2's mixed set: 500 × 100 B × 200 Hz and 1 × 5 MB × 10 Hz",
			Loads: one("rosbag2 mixed",
				Group{Name: "small", Instances: 500, Frequency: 200, Size: 100, Count: 2000, Depth: 10},
				Group{Name: "big", Instances: 1, Frequency: 10, Size: 5_000_000, Count: 100, Depth: 5})},
		{Name: "rosbag2-small-scale", About: "rosbag2's small scale set: 100 × 50 kB × 100 Hz, 500 MB/s",
			Loads: one("rosbag2 small scale", Group{Name: "t", Instances: 100, Frequency: 100, Size: 50_000, Count: 2000, Depth: 5})},
	}
}

// rosbag2Set is 20 publishers at 25 Hz with 1000 messages each.
func rosbag2Set(size int) Group {
	return Group{Name: "t", Instances: 20, Frequency: 25, Size: size, Count: 1000, Depth: 5}
}

// FindScenario returns the built-in scenario of a name.
func FindScenario(name string) (Scenario, error) {
	var names []string
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("no scenario %q: there is %s, or a .yaml file", name, strings.Join(names, ", "))
}

// String is "10 × 100 Hz × 100 kB".
func (g Group) String() string {
	return fmt.Sprintf("%d × %g Hz × %s", g.Instances, g.Frequency, shortBytes(int64(g.Size)))
}

// shortBytes is a number of bytes in the largest decimal unit that has at most one digit behind the point: "100 kB",
// "1.5 MB", "1001 B".
func shortBytes(n int64) string {
	for _, u := range []struct {
		size int64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= u.size && n*10%u.size == 0 {
			return fmt.Sprintf("%g %s", float64(n)/float64(u.size), u.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}

// Matrix makes one load of a single group for every combination.
func Matrix(instances []int, frequencies []float64, sizes []int, like Group) []NamedGroups {
	var loads []NamedGroups
	for _, size := range sizes {
		for _, hz := range frequencies {
			for _, n := range instances {
				g := like
				g.Name, g.Instances, g.Frequency, g.Size = "t", n, hz, size
				loads = append(loads, NamedGroups{g.String(), []Group{g}})
			}
		}
	}
	return loads
}
