//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// View is what a reader of bags says of one.
type View struct {
	Topics   []TopicView
	Messages []MessageView // in the reader's order
}

// TopicView is a topic. What a reader does not tell is left at the zero value.
type TopicView struct {
	Name       string   `json:"name"`
	Type       string   `json:"type"`
	Count      int      `json:"count"`
	TypeHash   string   `json:"typehash"`
	Format     string   `json:"format"` // of serialization
	QoS        [][4]int `json:"qos"`    // history, depth, reliability, durability of each profile, rmw's numbers
	QoSText    string   `json:"qostext"`
	Encoding   string   `json:"encoding"` // of the definition
	Definition string   `json:"definition"`
}

// MessageView is a message. Readers of formats that keep no send time and sequence number leave them 0.
type MessageView struct {
	Line
	Send int64
	Seq  uint64
}

// viewLine is a line of the readers' programs: a topic or a message.
type viewLine struct {
	TopicView
	Topic  string `json:"topic"`
	Stamp  int64  `json:"stamp,string"`
	Length int    `json:"length"`
	Hash   string `json:"hash"`
	Send   int64  `json:"send,string"`
	Seq    uint64 `json:"seq,string"`
}

func parseView(out []byte) (View, error) {
	var v View
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var l viewLine
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			return v, nil
		} else if err != nil {
			return v, err
		}
		if l.Name != "" {
			v.Topics = append(v.Topics, l.TopicView)
			continue
		}
		hash, err := strconv.ParseUint(l.Hash, 16, 64)
		if err != nil {
			return v, err
		}
		v.Messages = append(v.Messages, MessageView{Line{l.Topic, l.Type, l.Stamp, l.Length, hash}, l.Send, l.Seq})
	}
}

// output runs a reader and returns what it printed.
func output(what string, command ...string) ([]byte, error) {
	var stderr bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("read with %s: %w: %s", what, err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// ViewOwn reads a bag with gobag's own package.
func ViewOwn(dir string) (v View, err error) {
	r, err := bag.Open(context.Background(), dir, bag.ReaderOptions{})
	if err != nil {
		return v, err
	}
	for _, t := range r.Info().Topics {
		tv := TopicView{Name: t.Name, Type: t.Type, Count: int(t.Count), TypeHash: t.TypeHash, Format: t.SerializationFormat,
			QoSText: t.OfferedQoS, Encoding: t.Definition.Encoding, Definition: t.Definition.Text}
		for _, q := range t.QoS {
			tv.QoS = append(tv.QoS, [4]int{q.History, q.Depth, q.Reliability, q.Durability})
		}
		v.Topics = append(v.Topics, tv)
	}
	if err := r.Close(); err != nil {
		return v, err
	}
	err = EachMessage(dir, func(t plugin.Topic, m *plugin.Message) error {
		v.Messages = append(v.Messages, MessageView{Line{t.Name, t.Type, m.RecvTime, len(m.Data), FNV1a(m.Data)}, m.SendTime, m.Seq})
		return nil
	})
	return v, err
}

// ViewMCAPJS reads the .mcap files of a bag with @mcap/core, through their index.
func ViewMCAPJS(dir string) (View, error) {
	command, err := NodeScript("read_mcap.js")
	if err != nil {
		return View{}, err
	}
	out, err := output("@mcap/core", append(command, dir)...)
	if err != nil {
		return View{}, err
	}
	return parseView(out)
}

// PythonScript returns the command line of interop/python/read.py.
func PythonScript() ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "interop", "python")
	python := filepath.Join(dir, "venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		return nil, errors.New("the Python readers are not installed: run make -C interop install")
	}
	return []string{python, filepath.Join(dir, "read.py")}, nil
}

func viewPython(what, dir string) (View, error) {
	command, err := PythonScript()
	if err != nil {
		return View{}, err
	}
	out, err := output("Python's "+what, append(command, what, dir)...)
	if err != nil {
		return View{}, err
	}
	return parseView(out)
}

// ViewRosbags reads a bag with rosbags: sqlite3 and mcap, compressed or not.
func ViewRosbags(dir string) (View, error) { return viewPython("rosbags", dir) }

// ViewMCAPPython reads the .mcap files of a bag with mcap, every checksum verified.
func ViewMCAPPython(dir string) (View, error) { return viewPython("mcap", dir) }

// DecodePython decodes the messages of a topic with nothing but the definition that the bag holds: how is "decode"
// (mcap-ros2-support) or "decode-rosbags".
func DecodePython[T any](how, dir, topic string) ([]DecodedMessage[T], error) {
	command, err := PythonScript()
	if err != nil {
		return nil, err
	}
	out, err := output("Python's "+how, append(command, how, dir, topic)...)
	if err != nil {
		return nil, err
	}
	var all []DecodedMessage[T]
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var m DecodedMessage[T]
		if err := lines.Decode(&m); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, fmt.Errorf("decode %s of %s: message %d: %w", topic, dir, len(all), err)
		}
		all = append(all, m)
	}
}

// ViewSQLiteTopics reads the topics of the .db3 files of a bag with the sqlite3 program.
func ViewSQLiteTopics(dir string) ([]TopicView, error) {
	program, err := Tool("sqlite3")
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.db3"))
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	var topics []TopicView
	for _, file := range files {
		out, err := output("sqlite3", program, "-readonly", "-batch", "-json", file, `select t.name, t.type, t.serialization_format as format,
			t.offered_qos_profiles as qostext, t.type_description_hash as typehash, d.encoding, d.encoded_message_definition as definition,
			(select count(*) from messages m where m.topic_id = t.id) as count
			from topics t left join message_definitions d on d.topic_type = t.type and d.type_description_hash = t.type_description_hash order by t.id`)
		if err != nil {
			return nil, err
		}
		topics = nil
		if err := json.Unmarshal(out, &topics); err != nil {
			return nil, fmt.Errorf("read %s with sqlite3: %w", file, err)
		}
		for i := range topics {
			counts[topics[i].Name] += topics[i].Count
			topics[i].Count = counts[topics[i].Name]
		}
	}
	return topics, nil
}
