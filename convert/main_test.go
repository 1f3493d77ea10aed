package convert

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"go.uber.org/goleak"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
	_ "github.com/gobag/gobag/plugins/all"
)

func TestMain(m *testing.M) {
	plugin.Register(plugintest.NewMemory())
	// The clock of the expressions' time limit ends by itself a while after the last match.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
}

// content is a bag as a reader sees it, without what names the bag itself.
type content struct {
	Topics   []plugin.Topic
	Counts   []uint64
	Custom   map[string]string
	Distro   string
	Messages []plugin.Message
	Start    int64
	End      int64
}

func read(t testing.TB, path string) content {
	t.Helper()
	r, err := bag.Open(context.Background(), path, bag.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	i := r.Info()
	c := content{Custom: map[string]string{}, Distro: i.ROSDistro, Start: i.Start, End: i.End}
	for _, topic := range i.Topics {
		q, err := bag.NormalizeQoS(topic.OfferedQoS, true)
		if err != nil {
			t.Fatal(err)
		}
		topic.OfferedQoS = q
		c.Topics = append(c.Topics, topic.Topic)
		c.Counts = append(c.Counts, topic.Count)
	}
	for k, v := range i.CustomData {
		if k != bag.KeyVersion && k != bag.KeyState {
			c.Custom[k] = v
		}
	}
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		var m plugin.Message
		err := it.Next(&m)
		if err == io.EOF {
			return c
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Data = append([]byte{}, m.Data...)
		c.Messages = append(c.Messages, m)
	}
}

// same compares two bags field by field.
func same(t *testing.T, what string, got, want content) {
	t.Helper()
	if len(got.Messages) != len(want.Messages) {
		t.Errorf("%s: %d messages, want %d", what, len(got.Messages), len(want.Messages))
	} else {
		for i := range got.Messages {
			if !reflect.DeepEqual(got.Messages[i], want.Messages[i]) {
				t.Fatalf("%s: message %d:\n got %+v\nwant %+v", what, i, got.Messages[i], want.Messages[i])
			}
		}
	}
	got.Messages, want.Messages = nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

const yamlQoS = `- history: keep_last
  depth: 7
  reliability: reliable
  durability: transient_local
  deadline: {sec: 9223372036, nsec: 854775807}
  lifespan: {sec: 1, nsec: 5}
  liveliness: automatic
  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}
  avoid_ros_namespace_conventions: false
`

// yard writes a bag with everything that a bag can hold: several files, ties, several writers, gaps in the order, topics
// without messages, an empty payload and a large one.
func yard(t testing.TB, dir string, o bag.WriterOptions, seed uint64, n int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	o.SyncInterval = -1
	if o.CustomData == nil {
		o.CustomData = map[string]string{"robot": "r2", "empty": "", "text": "a: 'b'\nc"}
	}
	w, err := bag.Create(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	topics := []plugin.Topic{
		{Name: "/tf", Type: "tf2_msgs/msg/TFMessage", OfferedQoS: yamlQoS, TypeHash: "RIHS01_" + fmt.Sprintf("%064x", 5),
			Definition: plugin.Definition{Encoding: "ros2msg", Text: "geometry_msgs/TransformStamped[] transforms\n"}, Sources: []string{"01.02", "01.03", "never"}},
		{Name: "/scan", Type: "sensor_msgs/msg/LaserScan", TypeHash: "RIHS01_" + fmt.Sprintf("%064x", 6), Sources: []string{"0a"}},
		{Name: "/silent", Type: "std_msgs/msg/Empty", SerializationFormat: "cdr"},
		{Name: "/add/_service_event", Type: "x/srv/Add_Event", SerializationFormat: "cdr"},
		{Name: "/go/_action/status", Type: "action_msgs/msg/GoalStatusArray", SerializationFormat: "cdr"},
		{Name: "/o'brien", Type: "x/msg/Y", SerializationFormat: "json"},
	}
	var ids []plugin.TopicID
	for _, topic := range topics {
		id, err := w.AddTopic(topic)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	stamp, order := int64(1_700_000_000_000_000_000), uint64(0)
	seq := uint64(0)
	for i := range n {
		k := r.IntN(5)
		if k >= 2 {
			k++
		}
		stamp += int64(r.IntN(3)) * 1_000_000 // one in three is a tie
		order += 1 + uint64(r.IntN(3))
		m := plugin.Message{Topic: ids[k], RecvTime: stamp, Order: order, Data: make([]byte, r.IntN(300))}
		for b := range m.Data {
			m.Data[b] = byte(r.Uint32()) & 0x1f
		}
		if i == n/2 {
			m.Data = append(m.Data, make([]byte, 3<<20)...)
		}
		if k < 2 {
			seq++
			m.SendTime, m.Seq, m.Source = stamp-int64(r.IntN(1000))-1, seq, 1
			if k == 0 {
				m.Source += uint32(r.IntN(2))
			}
		}
		if err := w.Write([]plugin.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustRun(t testing.TB, o Options) Result {
	t.Helper()
	res, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// to converts one bag.
func to(t testing.TB, in, out string, w bag.WriterOptions) Result {
	t.Helper()
	return mustRun(t, Options{Inputs: []Input{{Path: in}}, Outputs: []Output{{Dir: out, Writer: w}}})
}

func gone(t testing.TB, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		t.Errorf("%s is left behind", filepath.Base(path))
	}
}
