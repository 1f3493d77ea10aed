package perf

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gobag/gobag/cdr"
)

// ColumnarSample is a kind of traffic that `perf columnar` stores: messages of one type on one topic.
type ColumnarSample struct {
	Name       string // "Imu"
	Type       string // "sensor_msgs/msg/Imu"
	Definition string // text of a type that is in no package; "" for those of ROS
	Count      int    // messages of a run at full size
	Blob       bool   // nearly all of it is one array of bytes

	messages func(rng *rand.Rand, n int, put func(stamp int64, e *cdr.Encoder))
}

// ColumnarSamples are what robots send most, images, point clouds, and the rows of the time series benchmark TSBS.
var ColumnarSamples = []ColumnarSample{
	{"Imu", "sensor_msgs/msg/Imu", "", 200_000, false, sampleImu},
	{"TransformStamped", "geometry_msgs/msg/TransformStamped", "", 400_000, false, sampleTransform},
	{"TFMessage", "tf2_msgs/msg/TFMessage", "", 120_000, false, sampleTF},
	{"JointState", "sensor_msgs/msg/JointState", "", 160_000, false, sampleJoints},
	{"DiagnosticArray", "diagnostic_msgs/msg/DiagnosticArray", "", 60_000, false, sampleDiagnostics},
	{"TSBS", "tsbs_msgs/msg/Cpu", tsbsDefinition, 1_000_000, false, sampleTSBS},
	{"PointCloud2", "sensor_msgs/msg/PointCloud2", "", 2_000, true, sampleCloud},
	{"Image", "sensor_msgs/msg/Image", "", 2_000, true, sampleImage},
}

// columnarStart is the stamp of the first message.
const columnarStart = int64(1_764_500_000) * 1e9

// tsbsHosts is how many machines send rows.
const tsbsHosts = 4000

const tsbsDefinition = `builtin_interfaces/Time time
string hostname
string region
string datacenter
string rack
string os
string arch
string team
string service
string service_version
string service_environment
int64 usage_user
int64 usage_system
int64 usage_idle
int64 usage_nice
int64 usage_iowait
int64 usage_irq
int64 usage_softirq
int64 usage_steal
int64 usage_guest
int64 usage_guest_nice

================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
`

// jitter is the stamp of message i of a period, off by a hundredth of it.
func jitter(rng *rand.Rand, i int, period int64) int64 {
	return columnarStart + int64(i)*period + int64(rng.NormFloat64()*float64(period)/100)
}

func header(e *cdr.Encoder, stamp int64, frame string) {
	e.Int32(int32(stamp / 1e9))
	e.Uint32(uint32(stamp % 1e9))
	e.Str(frame)
}

// single is a float64 of a sensor that measures float32.
func single(v float64) float64 { return float64(float32(v)) }

func sampleImu(rng *rand.Rand, n int, put func(int64, *cdr.Encoder)) {
	var e cdr.Encoder
	var buf []byte
	var yaw, pitch, roll, wx, wy, wz float64
	covariance := func(a, b, c float64) {
		for i := range 9 {
			switch i {
			case 0:
				e.Float64(a)
			case 4:
				e.Float64(b)
			case 8:
				e.Float64(c)
			default:
				e.Float64(0)
			}
		}
	}
	for i := range n {
		stamp := jitter(rng, i, 5e6)
		wz += rng.NormFloat64()*0.002 - wz*0.001
		wx += rng.NormFloat64()*0.001 - wx*0.01
		wy += rng.NormFloat64()*0.001 - wy*0.01
		yaw, roll, pitch = yaw+wz*0.005, roll+wx*0.005, pitch+wy*0.005
		e.Reset(buf[:0], cdr.CDRLE)
		header(&e, stamp, "imu_link")
		cy, sy, cp, sp, cr, sr := math.Cos(yaw/2), math.Sin(yaw/2), math.Cos(pitch/2), math.Sin(pitch/2), math.Cos(roll/2), math.Sin(roll/2)
		for _, v := range []float64{sr*cp*cy - cr*sp*sy, cr*sp*cy + sr*cp*sy, cr*cp*sy - sr*sp*cy, cr*cp*cy + sr*sp*sy} {
			e.Float64(v)
		}
		covariance(0.0017, 0.0017, 0.01)
		for _, v := range []float64{wx, wy, wz} {
			e.Float64(single(v + rng.NormFloat64()*0.003))
		}
		covariance(0.0003, 0.0003, 0.0003)
		for _, v := range []float64{9.81 * math.Sin(pitch), -9.81 * math.Sin(roll), 9.81} {
			e.Float64(single(v + rng.NormFloat64()*0.03))
		}
		covariance(0.04, 0.04, 0.04)
		buf = e.Bytes()
		put(stamp+200_000+int64(rng.ExpFloat64()*50_000), &e)
	}
}

func transform(e *cdr.Encoder, stamp int64, parent, child string, x, y, z, yaw float64) {
	header(e, stamp, parent)
	e.Str(child)
	for _, v := range []float64{x, y, z, 0, 0, math.Sin(yaw / 2), math.Cos(yaw / 2)} {
		e.Float64(v)
	}
}

// drive calls f for n poses of a robot that drives about.
func drive(rng *rand.Rand, n int, f func(i int, stamp int64, x, y, yaw, speed float64)) {
	var x, y, yaw float64
	for i := range n {
		yaw += rng.NormFloat64() * 0.002
		v := 1.5 + 0.2*math.Sin(float64(i)/500)
		x, y = x+v*0.02*math.Cos(yaw), y+v*0.02*math.Sin(yaw)
		f(i, jitter(rng, i, 2e7), x, y, yaw, v)
	}
}

func sampleTransform(rng *rand.Rand, n int, put func(int64, *cdr.Encoder)) {
	var e cdr.Encoder
	drive(rng, n, func(_ int, stamp int64, x, y, yaw, _ float64) {
		e.Reset(e.Bytes()[:0], cdr.CDRLE)
		transform(&e, stamp, "odom", "base_link", x, y, 0, yaw)
		put(stamp+100_000+int64(rng.ExpFloat64()*50_000), &e)
	})
}

func sampleTF(rng *rand.Rand, n int, put func(int64, *cdr.Encoder)) {
	var e cdr.Encoder
	wheels := []string{"wheel_front_left", "wheel_front_right", "wheel_rear_left", "wheel_rear_right"}
	angle := make([]float64, len(wheels))
	drive(rng, n, func(i int, stamp int64, x, y, yaw, speed float64) {
		e.Reset(e.Bytes()[:0], cdr.CDRLE)
		k := len(wheels)
		if i%7 == 0 {
			k = 0
		}
		e.SeqLen(1 + k)
		transform(&e, stamp, "odom", "base_link", x, y, 0, yaw)
		for j, w := range wheels[:k] {
			angle[j] += speed * 0.02 / 0.3
			transform(&e, stamp, "base_link", w, 0.5*float64(j&1), 0.3*float64(j>>1), 0.15, math.Mod(angle[j], 2*math.Pi))
		}
		put(stamp+100_000+int64(rng.ExpFloat64()*50_000), &e)
	})
}

func sampleJoints(rng *rand.Rand, n int, put func(int64, *cdr.Encoder)) {
	const joints, step = 7, 2 * math.Pi / (1 << 18) // of an encoder of 18 bits
	var e cdr.Encoder
	var q, dq [joints]float64
	for i := range n {
		stamp := jitter(rng, i, 2e6)
		e.Reset(e.Bytes()[:0], cdr.CDRLE)
		header(&e, stamp, "base_link")
		e.SeqLen(joints)
		for j := range joints {
			e.Str(fmt.Sprintf("panda_joint%d", j+1))
		}
		e.SeqLen(joints)
		for j := range q {
			dq[j] += rng.NormFloat64()*0.01 - dq[j]*0.005
			q[j] += dq[j] * 0.002
			e.Float64(math.Round(q[j]/step) * step)
		}
		e.SeqLen(joints)
		for j := range q {
			e.Float64(dq[j] + rng.NormFloat64()*0.001)
		}
		e.SeqLen(joints)
		for j := range q {
			e.Float64(single(5*math.Sin(q[j]) + rng.NormFloat64()*0.05))
		}
		put(stamp+100_000+int64(rng.ExpFloat64()*20_000), &e)
	}
}

func sampleDiagnostics(rng *rand.Rand, n int, put func(int64, *cdr.Encoder)) {
	var e cdr.Encoder
	var errors [6]int
	for i := range n {
		stamp := jitter(rng, i, 1e8)
		e.Reset(e.Bytes()[:0], cdr.CDRLE)
		header(&e, stamp, "")
		k := 3 + i%4
		e.SeqLen(k)
		for j := range k {
			errors[j] += rng.IntN(20)
			e.Uint8([]byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 2}[rng.IntN(10)])
			e.Str(fmt.Sprintf("controller_manager: joint_%d status", j))
			e.Str([]string{"OK", "OK", "OK", "Temperature high", "Communication lost"}[rng.IntN(5)])
			e.Str(fmt.Sprintf("can0-node-%02d", j))
			e.SeqLen(4)
			for _, kv := range [][2]string{{"temperature", fmt.Sprintf("%.2f", 41+3*math.Sin(float64(i)/200)+rng.NormFloat64()*0.1)},
				{"error_count", fmt.Sprint(errors[j] / 10)}, {"rate_hz", fmt.Sprintf("%.3f", 100+rng.NormFloat64()*0.2)}, {"firmware", "v2.14.7"}} {
				e.Str(kv[0])
				e.Str(kv[1])
			}
		}
		put(stamp+300_000, &e)
	}
}

// sampleTSBS makes rows as TSBS's use case cpu-only does: every host in turn sends ten values that walk at random.
func sampleTSBS(rng *rand.Rand, n int, put func(int64, *cdr.Encoder)) {
	type host struct {
		tags  [10]string
		usage [10]float64
	}
	regions := []string{"us-east-1", "us-west-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-1", "sa-east-1"}
	hosts := make([]host, tsbsHosts)
	for i := range hosts {
		region := regions[rng.IntN(len(regions))]
		hosts[i].tags = [10]string{fmt.Sprintf("host_%d", i), region, region + string(rune('a'+rng.IntN(3))), fmt.Sprint(rng.IntN(100)),
			[]string{"Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"}[rng.IntN(3)], []string{"x64", "x86"}[rng.IntN(2)],
			[]string{"SF", "NYC", "LON", "CHI"}[rng.IntN(4)], fmt.Sprint(rng.IntN(20)), fmt.Sprint(rng.IntN(2)), []string{"production", "staging", "test"}[rng.IntN(3)]}
		for j := range hosts[i].usage {
			hosts[i].usage[j] = rng.Float64() * 100
		}
	}
	var e cdr.Encoder
	for i := range n {
		h := &hosts[i%tsbsHosts]
		stamp := columnarStart + int64(i/tsbsHosts)*10e9
		e.Reset(e.Bytes()[:0], cdr.CDRLE)
		e.Int32(int32(stamp / 1e9))
		e.Uint32(uint32(stamp % 1e9))
		for _, s := range h.tags {
			e.Str(s)
		}
		for j := range h.usage {
			e.Int64(int64(h.usage[j]))
			h.usage[j] = max(0, min(100, h.usage[j]+rng.NormFloat64()))
		}
		put(stamp+int64(i%tsbsHosts)*1000, &e)
	}
}

// sampleCloud makes clouds of a lidar with 32 rings: x, y, z, intensity and ring, 20 bytes a point.
func sampleCloud(rng *rand.Rand, n int, put func(int64, *cdr.Encoder)) {
	const points, step = 2000, 20
	var e cdr.Encoder
	for i := range n {
		stamp := jitter(rng, i, 1e8)
		e.Reset(e.Bytes()[:0], cdr.CDRLE)
		header(&e, stamp, "lidar_top")
		e.Uint32(1)
		e.Uint32(points)
		e.SeqLen(5)
		for j, f := range []string{"x", "y", "z", "intensity", "ring"} {
			e.Str(f)
			e.Uint32(uint32(4 * j))
			e.Uint8([]byte{7, 7, 7, 7, 4}[j])
			e.Uint32(1)
		}
		e.Bool(false)
		e.Uint32(step)
		e.Uint32(step * points)
		e.SeqLen(step * points)
		for j := range points {
			ring := j & 31
			azimuth := float64(j>>5) / float64(points>>5) * 2 * math.Pi
			elevation := (float64(ring) - 16) * 0.02
			d := 10 + 3*math.Sin(3*azimuth+float64(i)*0.01) + rng.NormFloat64()*0.02
			for _, v := range []float64{d * math.Cos(azimuth) * math.Cos(elevation), d * math.Sin(azimuth) * math.Cos(elevation), d * math.Sin(elevation),
				math.Floor(60 + 30*math.Sin(azimuth*5) + rng.NormFloat64()*5)} {
				e.Float32(float32(v))
			}
			e.Uint32(uint32(ring))
		}
		e.Bool(true)
		put(stamp+3_000_000, &e)
	}
}

// sampleImage makes grey images with noise; eight are different but for their stamp.
func sampleImage(rng *rand.Rand, n int, put func(int64, *cdr.Encoder)) {
	const width, height = 320, 240
	var pixels [8][]byte
	for i := range pixels {
		for y := range height {
			for x := range width {
				pixels[i] = append(pixels[i], byte(100+60*math.Sin(float64(x+5*i)/40)*math.Cos(float64(y)/30)+rng.NormFloat64()*2))
			}
		}
	}
	var e cdr.Encoder
	for i := range n {
		stamp := jitter(rng, i, 33e6)
		e.Reset(e.Bytes()[:0], cdr.CDRLE)
		header(&e, stamp, "camera_front_optical")
		e.Uint32(height)
		e.Uint32(width)
		e.Str("mono8")
		e.Uint8(0)
		e.Uint32(width)
		e.ByteSeq(slices.Clone(pixels[i%len(pixels)]))
		put(stamp+8_000_000, &e)
	}
}
