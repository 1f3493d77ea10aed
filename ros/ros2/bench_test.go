package ros2

import (
	"fmt"
	"testing"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// BenchmarkGraphBuild makes the snapshot of a thousand topics with a publisher and a subscription each.
func BenchmarkGraphBuild(b *testing.B) {
	var endpoints []rtps.Endpoint
	for i := range 2000 {
		e := rtps.Endpoint{Topic: fmt.Sprintf("rt/robot/part%d/state", i%1000), Type: "std_msgs::msg::dds_::String_", Writer: i < 1000,
			UserData: endpointUserData(infoTypeHash)}
		e.GUID = wire.MakeGUID(wire.Prefix{byte(i), byte(i >> 8)}, wire.EntityID{0, 0, 1, wire.KindWriterKeyless})
		endpoints = append(endpoints, e)
	}
	g := new(graph)
	b.ReportAllocs()
	for b.Loop() {
		g.build(endpoints, nil)
	}
}

type discard struct{}

func (discard) Release([]byte) {}

// BenchmarkDeliver is the way of a sample through a subscription.
func BenchmarkDeliver(b *testing.B) {
	n := 0
	s := &Subscription{handler: func(s ros.Sample) { n += len(s.Data); s.Release() }}
	x := rtps.Sample{Data: make([]byte, 100), Owner: discard{}, Writer: writerID(1)}
	b.ReportAllocs()
	for b.Loop() {
		x.Seq++
		s.deliver(x)
	}
	if n != 100*b.N {
		b.Fatalf("%d bytes", n)
	}
}
