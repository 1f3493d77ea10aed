package perf

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
)

// Type hashes (REP 2016) of the types below, as ROS 2 computes them.
const (
	hashString    = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
	hashImu       = "RIHS01_7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b"
	hashImage     = "RIHS01_d31d41a9a4c4bc8eae9be757b0beed306564f7526c88ea6a4588fb9582527d47"
	hashTF        = "RIHS01_e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087"
	hashByteArray = "RIHS01_490d5e210afc7cf30cfdf431e1cc1f88291a9e73385729bf319afafa9082b328"
)

// Stream is one topic of a robot. Message n (from 0) of a stream is always the same bytes, so that whoever has the
// stream can check any copy of a message, wherever it went.
type Stream struct {
	Topic  ros.Topic
	QoS    ros.QoS
	Period time.Duration // between messages; 0: one latched message, published when the robot starts

	encode func(e *cdr.Encoder, n uint64, stamp int64)
	base   int64 // stamp of message 0, ns since the Unix epoch
}

// Append appends message n, serialized with its encapsulation header.
func (s *Stream) Append(dst []byte, n uint64) []byte {
	var e cdr.Encoder
	e.Reset(dst, cdr.CDRLE)
	s.encode(&e, n, s.base+int64(n)*int64(s.Period))
	return e.Bytes()
}

// Matches reports whether payload is message n, up to three trailing pad bytes. scratch is used and given back grown.
func (s *Stream) Matches(scratch []byte, n uint64, payload []byte) (bool, []byte) {
	scratch = s.Append(scratch[:0], n)
	extra := len(payload) - len(scratch)
	// The options of the encapsulation header (bytes 2 and 3) declare the padding.
	return extra >= 0 && extra <= 3 && len(payload) > 4 && bytes.Equal(payload[:2], scratch[:2]) &&
		bytes.Equal(payload[4:len(scratch)], scratch[4:]), scratch
}

// Image of the robot's camera: a little over 1 MB.
const (
	imageWidth  = 640
	imageHeight = 540
)

// DemoStreams are the topics of a small robot: an IMU at 1 kHz, a camera with 1 MB frames at 10 Hz, transforms, text and
// a latched description. All are reliable with more than two seconds of history, so that all of it can be recorded.
// start is the stamp of the first messages, ns since the Unix epoch.
func DemoStreams(start int64) []*Stream {
	pixels := noise(imageWidth*imageHeight*3, 1)
	reliable := func(depth int) ros.QoS {
		q := ros.DefaultQoS()
		q.Depth = depth
		return q
	}
	latched := reliable(1)
	latched.Durability = ros.TransientLocal
	streams := []*Stream{
		{Topic: ros.Topic{Name: "/camera/image_raw", Type: "sensor_msgs/msg/Image", TypeHash: hashImage},
			QoS: reliable(30), Period: 100 * time.Millisecond,
			encode: func(e *cdr.Encoder, n uint64, stamp int64) { encodeImage(e, n, stamp, pixels) }},
		{Topic: ros.Topic{Name: "/chatter", Type: "std_msgs/msg/String", TypeHash: hashString},
			QoS: reliable(30), Period: 100 * time.Millisecond,
			encode: func(e *cdr.Encoder, n uint64, _ int64) { e.Str(fmt.Sprintf("Hello World: %d", n)) }},
		{Topic: ros.Topic{Name: "/imu/data", Type: "sensor_msgs/msg/Imu", TypeHash: hashImu},
			QoS: reliable(3000), Period: time.Millisecond, encode: encodeImu},
		{Topic: ros.Topic{Name: "/robot_description", Type: "std_msgs/msg/String", TypeHash: hashString}, QoS: latched,
			encode: func(e *cdr.Encoder, _ uint64, _ int64) {
				e.Str(`<robot name="demo"><link name="base_link"/><link name="imu"/></robot>`)
			}},
		{Topic: ros.Topic{Name: "/tf", Type: "tf2_msgs/msg/TFMessage", TypeHash: hashTF},
			QoS: reliable(300), Period: 20 * time.Millisecond, encode: encodeTF},
	}
	for _, s := range streams {
		s.base = start
	}
	return streams
}

// encodeHeader is std_msgs/msg/Header.
func encodeHeader(e *cdr.Encoder, stamp int64, frame string) {
	e.Int32(int32(stamp / 1e9))
	e.Uint32(uint32(stamp % 1e9))
	e.Str(frame)
}

func encodeImage(e *cdr.Encoder, n uint64, stamp int64, pixels []byte) {
	encodeHeader(e, stamp, "camera")
	e.Uint32(imageHeight)
	e.Uint32(imageWidth)
	e.Str("rgb8")
	e.Uint8(0) // little-endian
	e.Uint32(imageWidth * 3)
	e.SeqLen(len(pixels))
	turn := int(n * 7919 % uint64(len(pixels))) // every frame differs, and no frame is cheap to compress
	e.Raw(pixels[turn:])
	e.Raw(pixels[:turn])
}

func encodeImu(e *cdr.Encoder, n uint64, stamp int64) {
	encodeHeader(e, stamp, "imu")
	angle := float64(n) / 500
	for _, v := range [...]float64{0, 0, math.Sin(angle / 2), math.Cos(angle / 2)} { // orientation
		e.Float64(v)
	}
	encodeCovariance(e, 1e-3)
	for _, v := range [...]float64{0, 0, 2} { // angular velocity
		e.Float64(v)
	}
	encodeCovariance(e, 1e-4)
	for _, v := range [...]float64{math.Sin(angle), math.Cos(angle), 9.81} { // linear acceleration
		e.Float64(v)
	}
	encodeCovariance(e, 1e-2)
}

func encodeCovariance(e *cdr.Encoder, variance float64) {
	for i := range 9 {
		if i%4 == 0 {
			e.Float64(variance)
		} else {
			e.Float64(0)
		}
	}
}

func encodeTF(e *cdr.Encoder, n uint64, stamp int64) {
	e.SeqLen(1)
	encodeHeader(e, stamp, "odom")
	e.Str("base_link")
	angle := float64(n) / 25
	for _, v := range [...]float64{math.Cos(angle), math.Sin(angle), 0, // translation
		0, 0, math.Sin(angle / 2), math.Cos(angle / 2)} { // rotation
		e.Float64(v)
	}
}
