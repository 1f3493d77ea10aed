//go:build linux

package interop_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

const bagServices = "rosbag2_interfaces::srv::dds_::"

// A recorder and a player are steered by clients of both vendors, as `ros2 service call` does it.
func TestControlServices(t *testing.T) {
	eachVendor(t, func(t *testing.T, n *lab.Net, v lab.Vendor) {
		call := func(service, typ string, request []byte) []byte {
			t.Helper()
			reply, err := n.Call(v, service, bagServices+typ, request)
			must(t, err)
			if len(reply) == 0 {
				t.Fatalf("%s: an empty reply", service)
			}
			return reply
		}
		dir := filepath.Join(t.TempDir(), "bag")
		imu := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 100}}
		rec, err := gobag.Record(n, dir, imu, "--start-paused", "-s", "mcap")
		must(t, err)
		t.Cleanup(rec.Kill)
		pub := publishAs(t, n, v, imu, "--wait", "1")
		const recorder = "/rosbag2_recorder/"
		if r := call(recorder+"is_paused", "IsPaused", nil); r[0] != 1 {
			t.Errorf("is_paused: %x", r)
		}
		if r := call(recorder+"resume", "Resume", nil); len(r) < 4 || binary.LittleEndian.Uint32(r) != 0 {
			t.Errorf("resume: %x", r)
		}
		if r := call(recorder+"is_paused", "IsPaused", nil); r[0] != 0 {
			t.Errorf("is_paused: %x", r)
		}
		time.Sleep(300 * time.Millisecond)
		if r := call(recorder+"split_bagfile", "SplitBagfile", nil); len(r) < 4 || binary.LittleEndian.Uint32(r) != 0 {
			t.Errorf("split_bagfile: %x", r)
		}
		if r := call(recorder+"snapshot", "Snapshot", nil); r[0] != 0 { // not in that mode
			t.Errorf("snapshot: %x", r)
		}
		time.Sleep(300 * time.Millisecond)
		call(recorder+"pause", "Pause", nil)
		must(t, rec.Stop(patience))
		must(t, pub.Stop(patience))
		info, err := gobag.Info(dir)
		must(t, err)
		if len(info.Files) != 2 || info.MessageCount < 30 {
			t.Errorf("%d messages in %d files", info.MessageCount, len(info.Files))
		}

		play, err := gobag.Play(n, dir, "--start-paused", "--remote-control", "full")
		must(t, err)
		t.Cleanup(play.Kill)
		const player = "/rosbag2_player/"
		if r := call(player+"is_paused", "IsPaused", nil); r[0] != 1 {
			t.Errorf("is_paused: %x", r)
		}
		rate := make([]byte, 8)
		binary.LittleEndian.PutUint64(rate, math.Float64bits(2.5))
		if r := call(player+"set_rate", "SetRate", rate); r[0] != 1 {
			t.Errorf("set_rate: %x", r)
		}
		if r := call(player+"get_rate", "GetRate", nil); len(r) < 8 || math.Float64frombits(binary.LittleEndian.Uint64(r)) != 2.5 {
			t.Errorf("get_rate: %x", r)
		}
		five := make([]byte, 8)
		five[0] = 5
		if r := call(player+"burst", "Burst", five); len(r) < 8 || r[0] != 5 {
			t.Errorf("burst: %x", r)
		}
		first := make([]byte, 8) // the start, by a stamp before it
		if r := call(player+"seek", "Seek", first); r[0] != 1 {
			t.Errorf("seek: %x", r)
		}
		call(player+"toggle_paused", "TogglePaused", nil)
		must(t, play.Wait(patience))
	})
}
