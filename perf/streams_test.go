package perf

import (
	"bytes"
	"testing"

	"github.com/gobag/gobag/cdr"
)

const someStamp = 1796041461_000000005

// TestStreams decodes every stream's messages field by field by an independent reading of the interface definitions.
func TestStreams(t *testing.T) {
	streams := map[string]*Stream{}
	for _, s := range DemoStreams(someStamp) {
		streams[s.Topic.Name] = s
	}
	open := func(name string, n uint64) *cdr.Decoder {
		d, err := cdr.NewDecoder(streams[name].Append(nil, n))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	done := func(name string, d *cdr.Decoder) {
		t.Helper()
		if d.Err() != nil || d.Left() != 0 {
			t.Errorf("%s: %v, %d bytes left", name, d.Err(), d.Left())
		}
	}
	header := func(name string, d *cdr.Decoder, nanosec uint32, frame string) {
		t.Helper()
		if sec, nsec, f := d.Int32(), d.Uint32(), d.Str(); sec != 1796041461 || nsec != nanosec || f != frame {
			t.Errorf("%s: header %d.%09d %q", name, sec, nsec, f)
		}
	}

	d := open("/chatter", 7)
	if s := d.Str(); s != "Hello World: 7" {
		t.Errorf("chatter: %q", s)
	}
	done("chatter", d)

	d = open("/imu/data", 2)
	header("imu", d, 2000005, "imu")
	var v [37]float64
	for i := range v {
		v[i] = d.Float64()
	}
	if v[4] != 1e-3 || v[8] != 1e-3 || v[5] != 0 || v[15] != 2 || v[27] != 9.81 || v[36] != 1e-2 {
		t.Errorf("imu: %v", v)
	}
	done("imu", d)

	d = open("/camera/image_raw", 1)
	header("image", d, 100000005, "camera")
	h, w, enc, be, step := d.Uint32(), d.Uint32(), d.Str(), d.Uint8(), d.Uint32()
	if data := d.ByteSeq(); h != 540 || w != 640 || enc != "rgb8" || be != 0 || step != 1920 || len(data) != 540*1920 {
		t.Errorf("image: %d×%d %q %d %d, %d bytes", w, h, enc, be, step, len(data))
	}
	done("image", d)

	d = open("/tf", 3)
	if n := d.Uint32(); n != 1 {
		t.Errorf("tf: %d transforms", n)
	}
	header("tf", d, 60000005, "odom")
	if c := d.Str(); c != "base_link" {
		t.Errorf("tf: child %q", c)
	}
	for range 7 {
		d.Float64()
	}
	done("tf", d)
}

func TestStreamMatches(t *testing.T) {
	var scratch []byte
	for _, s := range DemoStreams(someStamp) {
		m := s.Append(nil, 4)
		check := func(what string, payload []byte, want bool) {
			t.Helper()
			var got bool
			if got, scratch = s.Matches(scratch, 4, payload); got != want {
				t.Errorf("%s: %s: %v", s.Topic.Name, what, got)
			}
		}
		check("itself", m, true)
		check("padded", append(bytes.Clone(m), 0, 0, 0), true)
		check("padded by 4", append(bytes.Clone(m), 0, 0, 0, 0), false)
		check("cut", m[:len(m)-1], false)
		check("empty", nil, false)
		for _, i := range []int{1, 4, len(m) / 2, len(m) - 1} {
			flipped := bytes.Clone(m)
			flipped[i] ^= 1
			check("a bit flipped", flipped, false)
		}
		options := bytes.Clone(m)
		options[3] = 2
		check("declares padding", options, true)
		if s.Period > 0 {
			check("the next message", s.Append(nil, 5), false)
		}
	}
}
