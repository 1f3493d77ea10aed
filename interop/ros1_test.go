//go:build linux

package interop_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/ros/ros1"
)

// Debian's ROS 1: what rostopic publishes is recorded, and what is played is recorded by C++ rosbag. make accept-ros1 asks
// for more.
func TestROS1(t *testing.T) {
	const rosbag, rosmaster = "/usr/lib/rosbag/record", "/usr/bin/rosmaster"
	for _, path := range []string{rosbag, rosmaster} {
		if _, err := os.Stat(path); err != nil {
			needs(t, fmt.Errorf("ROS 1 of Debian is not installed: %w", err))
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	must(t, l.Close())
	dir := t.TempDir()
	uri := fmt.Sprintf("http://127.0.0.1:%d", port)
	env := []string{"ROS_MASTER_URI=" + uri, "ROS_IP=127.0.0.1", "ROS_HOME=" + dir, "ROS_LOG_DIR=" + dir}
	network := &lab.Net{} // of its own by its master
	start := func(args ...string) *lab.Proc {
		t.Helper()
		p, err := network.Start(env, args...)
		must(t, err)
		t.Cleanup(p.Kill)
		return p
	}
	start("/usr/bin/python3", rosmaster, "--core", "-p", fmt.Sprint(port))
	var node *ros1.Node
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if node, err = ros1.New(ros1.Options{Master: uri, Host: "127.0.0.1", Name: "watch"}); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	defer func() { _ = node.Close() }() // the test is over
	subscribed := func(topic string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			for _, info := range node.Graph().Topics() {
				if info.Name == topic && len(info.Subscriptions) > 0 {
					return
				}
			}
			if time.Now().After(end) {
				t.Fatalf("nobody subscribes to %s", topic)
			}
		}
	}
	start("/usr/bin/python3", "/usr/bin/rostopic", "pub", "-r", "50", "/chatter", "std_msgs/String", "data: hello")
	bag, again := filepath.Join(dir, "bag"), filepath.Join(dir, "again.bag")
	must(t, start(gobag.Path, "record", "--ros", "1", "/chatter", "-o", bag, "--max-messages", "50").Wait(60*time.Second))
	rec := start(rosbag, "-O", again, "/again")
	subscribed("/again")
	must(t, start(gobag.Path, "play", bag, "--ros", "1", "--remap", "/chatter:=/again", "--disable-keyboard-controls").Wait(60*time.Second))
	time.Sleep(300 * time.Millisecond)
	must(t, rec.Stop(30*time.Second))
	p := start(gobag.Path, "info", again)
	must(t, p.Wait(30*time.Second))
	if !strings.Contains(p.Stdout(), "Topic: /again | Type: std_msgs/String | Count: 50 |") {
		t.Errorf("rosbag recorded\n%s", p.Stdout())
	}
}
