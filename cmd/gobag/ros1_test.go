package main

import (
	enc "encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros1"
	"github.com/gobag/gobag/ros/ros1/mastertest"
	"github.com/gobag/gobag/ros/ros2"
)

const ros1Bag = "../../rosbag1/testdata/lz4.bag"

// topicsOf returns topic to type and serialization format.
func topicsOf(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, x := range oddInfo(t, path).Topics {
		out[x.Name] = x.Type + " " + x.Format
	}
	return out
}

// A bag of ROS 1 becomes one of ROS 2 and comes back; what cannot be turned stops the run and is named.
func TestConvertROS1(t *testing.T) {
	dir := t.TempDir()
	two, one := filepath.Join(dir, "two"), filepath.Join(dir, "one")
	if r := cli(nil, "convert", ros1Bag, "-o", two, "--to", "cdr"); r.code != 0 {
		t.Fatal(r.errOut)
	}
	if got := topicsOf(t, two); got["/imu"] != "sensor_msgs/msg/Imu cdr" || got["/chatter"] != "std_msgs/msg/String cdr" || len(got) != 4 {
		t.Errorf("topics are %v", got)
	}
	if r := cli(nil, "convert", two, "-o", one, "--to", "ros1", "-s", "sqlite3"); r.code != 0 {
		t.Fatal(r.errOut)
	}
	if got := topicsOf(t, one); got["/imu"] != "sensor_msgs/Imu ros1" {
		t.Errorf("topics are %v", got)
	}
	oddFail(t, "no counterpart", "convert", recordedService(t), "-o", filepath.Join(dir, "x"), "--to", "ros1")
	if r := cli(nil, "convert", ros1Bag, "-o", filepath.Join(dir, "y"), "--to", "json"); r.code != exitUsage || !strings.Contains(r.errOut, "not one of cdr, ros1") {
		t.Error(r.errOut)
	}
	if exists(filepath.Join(dir, "x")) || exists(filepath.Join(dir, "y")) {
		t.Error("something half-made was left")
	}
}

// recordedService is a bag with the events of a service, which ROS 1 does not have.
func recordedService(t *testing.T) string {
	t.Helper()
	return madeBag(t, schema2+`INSERT INTO topics VALUES (1, '/add/_service_event', 'example_interfaces/srv/AddTwoInts_Event', 'cdr', '');
		INSERT INTO messages VALUES (1, 1, 5, x'00010000');`)
}

func TestROS1Flags(t *testing.T) {
	for want, words := range map[string][]string{
		"--ros \"3\": 1 or 2":               {"record", "-a", "--ros", "3"},
		"--ros1-as \"json\"":                {"record", "-a", "--ros1-as", "json"},
		"--ros1-as is for ROS 1":            {"record", "-a", "--ros", "2", "--ros1-as", "cdr"},
		"are of ROS 2":                      {"record", "-a", "--ros", "1", "--domain-id", "3"},
		"--use-sim-time is for ROS 2":       {"record", "-a", "--ros", "1", "--use-sim-time"},
		"--publish-service-requests are fo": {"play", ros1Bag, "--ros", "1", "--clock"},
	} {
		out := filepath.Join(t.TempDir(), "out")
		if words[0] == "record" {
			words = append(words, "-o", out)
		}
		if r := cli([]string{"ROS_MASTER_URI=http://127.0.0.1:1"}, words...); r.code != exitUsage || !strings.Contains(r.errOut, want) {
			t.Errorf("%v: exit %d, want %q\n%s", words, r.code, want, r.errOut)
		}
	}
	out := filepath.Join(t.TempDir(), "out")
	if r := cli(nil, "record", "-a", "--ros", "1", "-o", out); r.code != exitFailure || !strings.Contains(r.errOut, "ROS_MASTER_URI is not set") {
		t.Errorf("exit %d\n%s", r.code, r.errOut)
	}
	if r := cli([]string{"ROS_MASTER_URI=http://127.0.0.1:1"}, "record", "-a", "-o", out); r.code != exitFailure || !strings.Contains(r.errOut, "speaking ROS 1") ||
		!strings.Contains(r.errOut, "is roscore running?") {
		t.Errorf("exit %d\n%s", r.code, r.errOut)
	}
}

// ros1Talker publishes std_msgs/String of ROS 1 on /chatter, numbered, until the test ends.
func ros1Talker(t *testing.T, master string) {
	t.Helper()
	n, err := ros1.New(ros1.Options{Master: master, Host: "127.0.0.1", Name: "talker", Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	p, err := n.Advertise(ros.Topic{Name: "/chatter", Type: "std_msgs/String"}, ros.DefaultQoS())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			text := fmt.Sprint("number ", i)
			_ = p.Publish(append(enc.LittleEndian.AppendUint32(nil, uint32(len(text))), text...), 0)
		}
	})
	t.Cleanup(func() {
		close(stop)
		wg.Wait()
		_ = n.Close()
	})
}

// Messages of ROS 1 are recorded as they come and as ROS 2's, and played to ROS 1 and to ROS 2.
func TestRecordAndPlayROS1(t *testing.T) {
	m := mastertest.Start(t)
	env := []string{"ROS_MASTER_URI=" + m.URI(), "ROS_IP=127.0.0.1"}
	ros1Talker(t, m.URI())
	dir := t.TempDir()
	raw, turned := filepath.Join(dir, "raw"), filepath.Join(dir, "turned")
	for out, flags := range map[string][]string{raw: nil, turned: {"--ros1-as", "cdr"}} {
		words := append([]string{"record", "/chatter", "--max-messages", "20", "--min-free-space", "0", "-o", out}, flags...)
		if r := cli(env, words...); r.code != 0 {
			t.Fatalf("exit %d\n%s", r.code, r.errOut)
		}
	}
	if got := topicsOf(t, raw); got["/chatter"] != "std_msgs/String ros1" {
		t.Errorf("topics are %v", got)
	}
	if got := topicsOf(t, turned); got["/chatter"] != "std_msgs/msg/String cdr" {
		t.Errorf("topics are %v", got)
	}
	n, err := ros1.New(ros1.Options{Master: m.URI(), Host: "127.0.0.1", Name: "listener", Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for i, bag := range []string{raw, turned} {
		name := fmt.Sprintf("/again%d", i)
		got := listen1(t, n, ros.Topic{Name: name, Type: "std_msgs/String"})
		if r := cli(env, "play", bag, "--remap", "/chatter:="+name, "-r", "100", "--disable-keyboard-controls"); r.code != 0 {
			t.Fatalf("exit %d\n%s", r.code, r.errOut)
		}
		await1(t, 20, got)
	}
	const domain = 57
	listener, err := ros2.New(ros2.Options{Domain: domain, Range: ros2.RangeLocalhost})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	got := listen1(t, listener, ros.Topic{Name: "/chatter", Type: "std_msgs/msg/String"})
	r := cli(nil, "play", raw, "--domain-id", fmt.Sprint(domain), "--localhost", "-r", "100", "--disable-keyboard-controls", "--wait-for-all-acked", "5000")
	if r.code != 0 {
		t.Fatalf("exit %d\n%s", r.code, r.errOut)
	}
	await1(t, 20, got)
}

// listen1 counts the messages of a topic that hold a number.
func listen1(t *testing.T, n ros.Node, topic ros.Topic) func() int {
	t.Helper()
	var mu sync.Mutex
	count := 0
	if _, err := n.Subscribe(topic, ros.DefaultQoS(), func(s ros.Sample) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(string(s.Data), "number ") {
			count++
		}
		s.Release()
	}); err != nil {
		t.Fatal(err)
	}
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}

func await1(t *testing.T, n int, got func() int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); got() < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d messages came", got(), n)
		}
	}
}

// A recorder on ROS 1 logs to /rosout, offers services to rosservice, and has a control socket.
func TestControlROS1(t *testing.T) {
	m := mastertest.Start(t)
	ros1Talker(t, m.URI())
	n, err := ros1.New(ros1.Options{Master: m.URI(), Host: "127.0.0.1", Name: "listener", Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	var mu sync.Mutex
	logged := ""
	if _, err := n.Subscribe(ros.Topic{Name: rosoutTopic, Type: rosoutType}, ros.DefaultQoS(), func(s ros.Sample) {
		mu.Lock()
		defer mu.Unlock()
		logged += string(s.Data)
		s.Release()
	}); err != nil {
		t.Fatal(err)
	}
	env := []string{"ROS_MASTER_URI=" + m.URI(), "ROS_IP=127.0.0.1", "XDG_RUNTIME_DIR=" + t.TempDir()}
	p := launch(t, env, "record", "/chatter", "--min-free-space", "0", "-o", filepath.Join(t.TempDir(), "run"))
	p.await("Subscribed to topic '/chatter'")
	if ok, text := trigger(t, m, "/rosbag2_recorder/pause"); !ok || text != `{"paused":true}` {
		t.Errorf("%v %q", ok, text)
	}
	if ok, text := trigger(t, m, "/rosbag2_recorder/snapshot"); ok || !strings.Contains(text, "snapshot") {
		t.Errorf("%v %q", ok, text)
	}
	if r := cli(env, "ctl", "resume"); r.code != 0 || !strings.Contains(r.out, `"paused": false`) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	if u := m.Service("/rosbag2_recorder/stop"); u != "" {
		t.Error("stop is offered to everybody at", u)
	}
	if r := cli(env, "ctl", "stop"); r.code != 0 {
		t.Error(r.errOut)
	}
	if code := p.wait(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.err.String())
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(logged, "/rosbag2_recorder_") || !strings.Contains(logged, "Paused") && !strings.Contains(logged, "Pausing") {
		t.Errorf("on /rosout: %q", logged)
	}
	if u := m.Service("/rosbag2_recorder/pause"); u != "" {
		t.Error("still at the master:", u)
	}
}

// trigger calls a std_srvs/Trigger as rosservice does.
func trigger(t *testing.T, m *mastertest.Master, name string) (ok bool, text string) {
	t.Helper()
	address := strings.TrimPrefix(m.Service(name), "rosrpc://")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(name, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var fields []byte
	for _, f := range []string{"callerid=/t", "service=" + name, "md5sum=" + ros1.Trigger.MD5} {
		fields = append(enc.LittleEndian.AppendUint32(fields, uint32(len(f))), f...)
	}
	if _, err := c.Write(append(append(enc.LittleEndian.AppendUint32(nil, uint32(len(fields))), fields...), 0, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	part := func() []byte {
		head := make([]byte, 4)
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatal(name, err)
		}
		b := make([]byte, enc.LittleEndian.Uint32(head))
		if _, err := io.ReadFull(c, b); err != nil {
			t.Fatal(name, err)
		}
		return b
	}
	if h := part(); !strings.Contains(string(h), "type=std_srvs/Trigger") {
		t.Fatalf("%s: %q", name, h)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	reply := part()
	return reply[0] == 1, string(reply[5:])
}
