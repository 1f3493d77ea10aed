package main

import (
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
)

const secretText = "float32[] values\nInner[2] pair\n================================================================================\n" +
	"MSG: secret_msgs/Inner\nuint8 id\nstring name\n"

// secretPayload is a secret_msgs/msg/Reading.
func secretPayload(n int) []byte {
	e := cdr.NewEncoder(nil, cdr.CDRLE)
	e.SeqLen(2)
	e.Float32(0.5)
	e.Float32(float32(n))
	for i := range 2 {
		e.Uint8(uint8(i))
		e.Str("it " + strconv.Itoa(n))
	}
	return e.Bytes()
}

// makeTopicBag writes 5 readings, 100 ms apart, of a type whose definition only the bag has, 3 strings, and a topic that
// nothing decodes.
func makeTopicBag(t *testing.T, dir string) {
	t.Helper()
	w, err := bag.Create(t.Context(), dir, bag.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []plugin.TopicID
	for _, topic := range []plugin.Topic{
		{Name: "/secret", Type: "secret_msgs/msg/Reading", Definition: plugin.Definition{Encoding: "ros2msg", Text: secretText}},
		{Name: "/chatter", Type: "std_msgs/msg/String"},
		{Name: "/odd", Type: "odd_msgs/msg/Odd"},
		{Name: "/a/_hidden", Type: "std_msgs/msg/String"},
	} {
		topic.SerializationFormat = "cdr"
		id, err := w.AddTopic(topic)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	var batch []plugin.Message
	for i := range 5 {
		batch = append(batch, plugin.Message{Topic: ids[0], RecvTime: start + int64(i)*1e8, SendTime: start, Seq: uint64(i) + 1, Data: secretPayload(i)})
	}
	dirty := []byte("\x00\x01\x00\x00\x02\x00\x00\x00x\x00\x00\x01") // what is behind the value is not zero
	batch = append(batch, plugin.Message{Topic: ids[1], RecvTime: start, Data: []byte("\x00\x01\x00\x00\x05\x00\x00\x00true\x00")},
		plugin.Message{Topic: ids[1], RecvTime: start + 1, Data: dirty},
		plugin.Message{Topic: ids[2], RecvTime: start, Data: []byte{0, 1, 0, 0, 9}})
	if err := w.Write(batch); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTopicBag(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "b")
	makeTopicBag(t, dir)
	cases := []struct {
		name, words string // @ stands for the bag
		code        int
		out, errOut string // the whole of out; a part of errOut
	}{
		{"list", "list @", 0, "/chatter\n/odd\n/secret\n", ""},
		{"list with types", "list @ -t --include-hidden-topics", 0, "/a/_hidden [std_msgs/msg/String]\n/chatter [std_msgs/msg/String]\n/odd [odd_msgs/msg/Odd]\n/secret [secret_msgs/msg/Reading]\n", ""},
		{"list counts", "list -c @", 0, "3\n", ""},
		{"list verbose", "list @ -v", 0, "Recorded topics:\n * /chatter [std_msgs/msg/String] 2 messages\n * /odd [odd_msgs/msg/Odd] 1 message\n * /secret [secret_msgs/msg/Reading] 5 messages\n\n", ""},
		{"no bag", "list @x", 1, "", "does not exist"},

		{"echo once", "echo @ /secret --once", 0, "values:\n- 0.5\n- 0.0\npair:\n- id: 0\n  name: it 0\n- id: 1\n  name: it 0\n---\n", ""},
		{"echo fields", "echo @ /secret -n 2 --field pair[1].name --field values", 0, "it 0\n- 0.5\n- 0.0\n---\nit 1\n- 0.5\n- 1.0\n---\n", ""},
		{"echo csv", "echo @ /secret --csv -n 2", 0, "0.5,0.0,0,it 0,1,it 0\n0.5,1.0,0,it 1,1,it 1\n", ""},
		{"echo csv with stamps", "echo @ /secret --csv --once -i --field values[1]", 0, strconv.Itoa(start) + "," + strconv.Itoa(start) + ",1,0.0\n", ""},
		{"echo info", "echo @ /secret --once -i --flow-style", 0, "source_timestamp: " + strconv.Itoa(start) + "\nreceived_timestamp: " + strconv.Itoa(start) +
			"\npublication_sequence_number: 1\n---\n{values: [0.5, 0.0], pair: [{id: 0, name: it 0}, {id: 1, name: it 0}]}\n---\n", ""},
		{"echo short", "echo @ /secret --once -l 1 --no-str", 0, "values:\n- 0.5\n- '...'\npair:\n- id: 0\n  name: '<string length: <4>>'\n- '...'\n---\n", ""},
		{"echo no arrays", "echo @ /secret --once --no-arr", 0, "values: '<sequence type: float, length: 2>'\npair: '<array type: secret_msgs/msg/Inner[2]>'\n---\n", ""},
		{"echo raw", "echo @ /odd --raw", 0, "0001000009\n---\n", ""},
		{"echo of a built-in type, odd", "echo @ /chatter", 0, "data: 'true'\n---\ndata: x\n---\n", "1 message not in the form that their values give (trailing byte not zero at first)"},
		{"echo undefined", "echo @ /odd", 1, "", "--raw shows the bytes"},
		{"echo no such field", "echo @ /secret --field pair[0].nam", 2, "", `no "nam", there is: id, name`},
		{"echo no such topic", "echo @ /none", 1, "", "topic '/none' is not in the bag; there are: "},
		{"echo without slash", "echo @ secret --once --csv", 0, "0.5,0.0,0,it 0,1,it 0\n", ""},
		{"echo with flags of ros2", "echo @ /secret --once --csv --clear --no-daemon --qos-depth 5 --qos-liveliness automatic --no-lost-messages", 0, "0.5,0.0,0,it 0,1,it 0\n", ""},
		{"echo filter", "echo @ /secret --filter m.x==1", 2, "", "gobag sql takes a WHERE"},
		{"echo of a bag only", "echo @", 2, "", "is there on disk: name a topic behind the bag"},
		{"echo of a file only", "echo topic_test.go", 2, "", "is there on disk"},
		{"echo nothing", "echo @-x", 2, "", "not a valid ROS name"},
		{"echo two topics", "echo @ /secret /chatter", 2, "", "one topic is needed"},
		{"echo truncate", "echo @ /secret -l -1", 2, "", "--truncate-length -1"},

		{"hz", "hz @ /secret", 0, "average rate: 10.000\n\tmin: 0.100s max: 0.100s std dev: 0.00000s window: 5\n", ""},
		{"hz window", "hz @ /secret -w 3", 0, "average rate: 10.000\n\tmin: 0.100s max: 0.100s std dev: 0.00000s window: 3\n", ""},
		{"hz of two", "hz @ /secret /odd", 0, "/secret\naverage rate: 10.000\n\tmin: 0.100s max: 0.100s std dev: 0.00000s window: 5\n/odd\nno rate of one message\n", ""},
		{"hz of none", "hz @ /a/_hidden", 0, "", "no message of topic '/a/_hidden'"},
		{"bw", "bw @ /secret", 0, "640.00 B/s from 5 messages\n\tMessage size mean: 51.20 B min: 51.00 B max: 52.00 B\n", ""},
		{"hz window 0", "hz @ /secret -w 0", 2, "", "--window 0"},
		{"ROS 1", "echo ../../rosbag1/testdata/lz4.bag /chatter -n 2", 0, "data: hello 0\n---\ndata: hello 1\n---\n", ""},
		{"ROS 1 raw", "echo ../../rosbag1/testdata/lz4.bag /chatter --once --raw", 0, "0700000068656c6c6f2030\n---\n", ""},
		{"ROS 1 list", "list -t ../../rosbag1/testdata/lz4.bag", 0, "/camera [sensor_msgs/Image]\n/chatter [std_msgs/String]\n/imu [sensor_msgs/Imu]\n/map_name [std_msgs/String]\n", ""},
		{"no verb", "", 2, "", "say what to do"},
		{"unknown verb", "ecko", 2, "", `did you mean "echo"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			words := append([]string{"topic"}, strings.Fields(strings.ReplaceAll(c.words, "@", dir))...)
			r := cli(nil, words...)
			if c.name == "bw" {
				size := len(secretPayload(0))
				c.out = strings.NewReplacer("640.00 B", kilo(float64(5*size)/0.4), "51.20", strconv.Itoa(size)+".00", "51.00", strconv.Itoa(size)+".00", "52.00", strconv.Itoa(size)+".00").Replace(c.out)
			}
			if r.code != c.code || r.out != c.out || !strings.Contains(r.errOut, c.errOut) {
				t.Errorf("exit %d, want %d\n%s\nwant\n%s\nerrors: %s", r.code, c.code, r.out, c.out, r.errOut)
			}
		})
	}
}

// TestTopicWire looks at what another node publishes.
func TestTopicWire(t *testing.T) {
	domain := testDomain(t)
	base := []string{"--domain-id", strconv.Itoa(domain), "--localhost"}
	node, err := ros2.New(ros2.Options{Domain: domain, Range: ros2.RangeLocalhost, Name: "talker"})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	q := ros.DefaultQoS()
	q.Reliability = ros.BestEffort
	pub, err := node.Advertise(ros.Topic{Name: "/chatter", Type: "std_msgs/msg/String"}, q)
	if err != nil {
		t.Fatal(err)
	}
	stop, wg := make(chan struct{}), sync.WaitGroup{}
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				_ = pub.Publish([]byte("\x00\x01\x00\x00\x03\x00\x00\x00hi\x00"), time.Now().UnixNano()) // the test sees what does not come
			}
		}
	})
	defer func() {
		close(stop)
		wg.Wait()
	}()

	r := cli(nil, append([]string{"topic", "list", "-t", "-v=false"}, base...)...)
	if r.code != 0 || r.out != "/chatter [std_msgs/msg/String]\n" {
		t.Errorf("list: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	r = cli(nil, append([]string{"topic", "echo", "/chatter", "-n", "2"}, base...)...)
	if r.code != 0 || r.out != "data: hi\n---\ndata: hi\n---\n" {
		t.Errorf("echo: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	r = cli(nil, append([]string{"topic", "echo", "/chatter", "std_msgs/msg/String", "--once", "--csv"}, base...)...)
	if r.code != 0 || r.out != "hi\n" {
		t.Errorf("echo with a type: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	r = cli(nil, append([]string{"topic", "hz", "chatter", "-n", "8"}, base...)...)
	if r.code != 0 || !strings.HasPrefix(r.out, "average rate: ") || !strings.HasSuffix(r.out, "window: 8\n") {
		t.Errorf("hz: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	r = cli(nil, append([]string{"topic", "bw", "/chatter", "-n", "8", "-w", "4"}, base...)...)
	if r.code != 0 || !strings.Contains(r.out, "from 4 messages\n\tMessage size mean: 12.00 B") {
		t.Errorf("bw: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	r = cli(nil, append([]string{"topic", "echo", "/chatter", "--qos-reliability", "reliable", "--timeout", "0.7"}, base...)...)
	if r.code != exitNothing || !strings.Contains(r.errOut, "no message came for 700ms") {
		t.Errorf("echo that does not match: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
	r = cli(nil, append([]string{"topic", "echo", "/none", "--timeout", "3.3"}, base...)...)
	if r.code != exitNothing || !strings.Contains(r.errOut, "topic '/none' does not appear to be published yet") {
		t.Errorf("echo of nothing: exit %d\n%s%s", r.code, r.out, r.errOut)
	}
}
