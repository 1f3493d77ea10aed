//go:build linux

package interop_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/plugin"
)

// told says which fields a reader tells; the others are taken out of what is expected.
type told struct {
	sendSeq    bool // send times and sequence numbers
	qosNumbers bool
	qosText    bool
	encoding   bool
	topics     bool
	unordered  bool // ties come in no promised order
}

// outside is a reader that nobody here wrote.
type outside struct {
	name    string
	told    told
	read    func(t *testing.T, dir string, known lab.View) (lab.View, error)
	formats []string // storages; of the others the reader knows nothing
	packed  bool     // undoes rosbag2's compression
}

var outsiders = []outside{
	{name: "sqlite3", formats: []string{"sqlite3"}, told: told{topics: true, qosText: true, encoding: true, unordered: true},
		read: func(_ *testing.T, dir string, _ lab.View) (v lab.View, err error) {
			if v.Topics, err = lab.ViewSQLiteTopics(dir); err != nil {
				return v, err
			}
			return linesOf(lab.ReadSQLite(dir))(v)
		}},
	{name: "@foxglove/rosbag2", formats: []string{"sqlite3"}, told: told{unordered: true},
		read: func(_ *testing.T, dir string, _ lab.View) (v lab.View, err error) {
			return linesOf(lab.ReadNode(dir))(v)
		}},
	{name: "@mcap/core", formats: []string{"mcap"}, told: told{topics: true, sendSeq: true, qosText: true, encoding: true},
		read: func(_ *testing.T, dir string, _ lab.View) (lab.View, error) { return lab.ViewMCAPJS(dir) }},
	{name: "PyPI mcap", formats: []string{"mcap"}, told: told{topics: true, sendSeq: true, qosText: true, encoding: true},
		read: func(_ *testing.T, dir string, _ lab.View) (lab.View, error) { return lab.ViewMCAPPython(dir) }},
	{name: "PyPI rosbags", formats: []string{"sqlite3", "mcap"}, packed: true, told: told{topics: true, qosNumbers: true},
		read: func(_ *testing.T, dir string, _ lab.View) (lab.View, error) { return lab.ViewRosbags(dir) }},
	{name: "C++ LevelDB", formats: []string{"leveldb"}, told: told{sendSeq: true}, read: readLevelDB},
}

// linesOf puts lines into a view.
func linesOf(lines []lab.Line, err error) func(lab.View) (lab.View, error) {
	return func(v lab.View) (lab.View, error) {
		for _, l := range lines {
			v.Messages = append(v.Messages, lab.MessageView{Line: l})
		}
		return v, err
	}
}

// readLevelDB finds the texts of the topics anywhere among the values that are no messages.
func readLevelDB(t *testing.T, dir string, known lab.View) (lab.View, error) {
	v, texts, err := lab.ViewLevelDB(dir, known.Topics)
	for _, topic := range known.Topics {
		for _, text := range []string{topic.Name, topic.Type, topic.TypeHash, topic.QoSText, topic.Definition} {
			if !slices.ContainsFunc(texts, func(b []byte) bool { return bytes.Contains(b, []byte(text)) }) {
				t.Errorf("no value holds %.60q of %s", text, topic.Name)
			}
		}
	}
	return v, err
}

// variant is a way to write a bag.
type variant struct {
	name   string
	o      bag.WriterOptions
	packed bool
	only   []string // nil = every format
}

var variants = []variant{
	{name: "plain"},
	{name: "split", o: bag.WriterOptions{MaxBagSize: 1 << 20}},
	{name: "fast", o: bag.WriterOptions{Preset: plugin.PresetFast}},
	{name: "small", o: bag.WriterOptions{Preset: plugin.PresetSmall}},
	{name: "none", o: bag.WriterOptions{Preset: plugin.PresetNone}},
	{name: "file zstd", o: bag.WriterOptions{MaxBagSize: 1 << 20, Compression: bag.Compression{Mode: bag.CompressionFile}}, packed: true,
		only: []string{"sqlite3", "mcap"}},
	{name: "message zstd", o: bag.WriterOptions{Compression: bag.Compression{Mode: bag.CompressionMessage}}, packed: true,
		only: []string{"sqlite3"}},
}

// Readers that nobody here wrote find in bags of every format what was written into them: topics with types, hashes, QoS
// and definitions, every payload, stamps with their ties, send times and sequence numbers as far as the format keeps
// them.
func TestReadersOfFormats(t *testing.T) {
	for _, d := range plugin.Drivers() {
		for _, c := range variants {
			if c.only != nil && !slices.Contains(c.only, d.Name()) {
				continue
			}
			t.Run(d.Name()+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "bag")
				o := c.o
				o.StorageID = d.Name()
				known, err := lab.WriteKnown(dir, o)
				must(t, err)
				own, err := lab.ViewOwn(dir)
				must(t, err)
				same(t, "gobag", known, own, told{topics: true, sendSeq: d.Features().SendTime, qosText: true, qosNumbers: true, encoding: true})
				for _, r := range outsiders {
					if !slices.Contains(r.formats, d.Name()) || c.packed && !r.packed {
						continue
					}
					t.Run(strings.TrimPrefix(r.name, "@"), func(t *testing.T) {
						got, err := r.read(t, dir, known)
						needs(t, missing(err))
						must(t, err)
						same(t, r.name, known, got, r.told)
					})
				}
			})
		}
	}
}

// missing returns the error if it says that a reader is not installed.
func missing(err error) error {
	if err != nil && strings.Contains(err.Error(), "run make -C interop install") {
		return err
	}
	return nil
}

// same compares what a reader says with what was written.
func same(t *testing.T, name string, known, got lab.View, say told) {
	t.Helper()
	if say.topics {
		want := slices.Clone(known.Topics)
		for i := range want {
			if !say.qosNumbers {
				want[i].QoS = nil
			}
			if !say.qosText {
				want[i].QoSText = ""
			}
			if !say.encoding {
				want[i].Encoding = ""
			}
		}
		byName := func(a, b lab.TopicView) int { return strings.Compare(a.Name, b.Name) }
		have := slices.Clone(got.Topics)
		for i := range have {
			if have[i].QoSText != "" {
				have[i].QoSText = strings.TrimSuffix(have[i].QoSText, "\n") + "\n"
			}
		}
		for i := range want {
			if want[i].QoSText != "" {
				want[i].QoSText = strings.TrimSuffix(want[i].QoSText, "\n") + "\n"
			}
		}
		slices.SortFunc(want, byName)
		slices.SortFunc(have, byName)
		if !reflect.DeepEqual(have, want) {
			t.Errorf("%s says of the topics\n%+v\nwant\n%+v", name, have, want)
		}
	}
	want, have := slices.Clone(known.Messages), slices.Clone(got.Messages)
	if !say.sendSeq {
		for i := range want {
			want[i].Send, want[i].Seq = 0, 0
		}
		for i := range have {
			have[i].Send, have[i].Seq = 0, 0
		}
	}
	if say.unordered {
		for _, all := range [][]lab.MessageView{want, have} {
			slices.SortStableFunc(all, func(a, b lab.MessageView) int { return strings.Compare(sortKey(a), sortKey(b)) })
		}
	}
	for i := range min(len(want), len(have)) {
		if want[i] != have[i] {
			t.Fatalf("%s: message %d of %d is %+v, want %+v", name, i, len(have), have[i], want[i])
		}
	}
	if len(have) != len(want) {
		t.Errorf("%s reads %d messages, want %d", name, len(have), len(want))
	}
}

func sortKey(m lab.MessageView) string { return fmt.Sprintf("%020d %s %x", m.Stamp, m.Topic, m.Hash) }

// Libraries that know nothing of a type but the definition in the bag decode its messages to what was written.
func TestReadersDecode(t *testing.T) {
	type text struct {
		Data string `json:"data"`
	}
	type imu struct {
		LinearAcceleration struct {
			X float64 `json:"x"`
		} `json:"linear_acceleration"`
	}
	for _, c := range []struct{ format, how string }{{"sqlite3", "decode-rosbags"}, {"mcap", "decode-rosbags"}, {"mcap", "decode"}} {
		if _, err := plugin.Lookup(c.format); err != nil {
			continue
		}
		t.Run(c.format+"/"+c.how, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "bag")
			known, err := lab.WriteKnown(dir, bag.WriterOptions{StorageID: c.format})
			must(t, err)
			words, err := lab.DecodePython[text](c.how, dir, "/chatter")
			needs(t, missing(err))
			must(t, err)
			own := payloads(t, dir, "/chatter")
			if len(words) != known.Topics[0].Count || len(own) != len(words) {
				t.Fatalf("%d messages decoded, %d stored, want %d", len(words), len(own), known.Topics[0].Count)
			}
			for i, w := range words { // a string's CDR: encapsulation, length, text, zero
				if want := string(own[i][8 : len(own[i])-1]); w.Value.Data != want {
					t.Fatalf("message %d decodes to %q, want %q", i, w.Value.Data, want)
				}
			}
			moves, err := lab.DecodePython[imu](c.how, dir, "/imu/data")
			must(t, err)
			if len(moves) != known.Topics[1].Count || moves[0].Stamp != lab.KnownStart || moves[999].Value == moves[1].Value {
				t.Errorf("%d messages of /imu/data decoded, want %d: %+v", len(moves), known.Topics[1].Count, moves[0])
			}
		})
	}
}

// payloads returns those of a topic, in the bag's order.
func payloads(t *testing.T, dir, topic string) (all [][]byte) {
	t.Helper()
	must(t, lab.EachMessage(dir, func(tp plugin.Topic, m *plugin.Message) error {
		if tp.Name == topic {
			all = append(all, bytes.Clone(m.Data))
		}
		return nil
	}))
	return all
}
