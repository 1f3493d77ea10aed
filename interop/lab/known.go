//go:build linux

package lab

import (
	"context"
	"errors"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
)

// KnownStart is the first stamp of WriteKnown, ns.
const KnownStart = 1_760_000_000_123_456_789

// knownTopic is a topic of WriteKnown: its messages come every so many ms.
type knownTopic struct {
	Topic
	every int64
	count int
	qos   []bag.QoSProfile
}

func knownTopics() []knownTopic {
	reliable := bag.DefaultQoSProfile()
	sensor := reliable
	sensor.Reliability, sensor.Depth = 2, 5
	latched := reliable
	latched.Durability, latched.Depth, latched.History = 1, 1, 1
	all := reliable
	all.History, all.Depth = 2, 0
	return []knownTopic{
		{Topic{Kind: String, Name: "/chatter"}, 4, 500, []bag.QoSProfile{reliable}},
		{Topic{Kind: Imu, Name: "/imu/data"}, 2, 1000, []bag.QoSProfile{sensor, reliable}},
		{Topic{Kind: Image, Name: "/camera/image", Size: 100 * 1024}, 100, 20, []bag.QoSProfile{sensor}},
		{Topic{Kind: String, Name: "/latched"}, 1000, 2, []bag.QoSProfile{latched}},
		{Topic{Kind: String, Name: "/nothing"}, 0, 0, []bag.QoSProfile{all}},
	}
}

// WriteKnown writes a bag as a recorder does, with contents that follow from this code alone, and returns what any
// reader must say of it: five topics with different QoS, their definitions and hashes, one without messages, stamps that
// are equal within a topic and across topics, send times before the stamps, sequence numbers.
func WriteKnown(dir string, o bag.WriterOptions) (v View, err error) {
	w, err := bag.Create(context.Background(), dir, o)
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	topics := knownTopics()
	find := msg.NewFinder(msg.Options{})
	ids := make([]plugin.TopicID, len(topics))
	for i, t := range topics {
		def, err := find.Find(t.Type(), "")
		if err != nil {
			return v, err
		}
		qos := bag.EncodeQoS(t.qos, o.Compat != plugin.CompatHumble)
		if ids[i], err = w.AddTopic(plugin.Topic{Name: t.Name, Type: t.Type(), SerializationFormat: "cdr", OfferedQoS: qos,
			TypeHash: def.Hash, Definition: plugin.Definition{Encoding: def.Encoding, Text: def.Text}, Sources: []string{"a", "b"}}); err != nil {
			return v, err
		}
		tv := TopicView{Name: t.Name, Type: t.Type(), Count: t.count, TypeHash: def.Hash, Format: "cdr", QoSText: qos,
			Encoding: def.Encoding, Definition: def.Text}
		for _, q := range t.qos {
			tv.QoS = append(tv.QoS, [4]int{q.History, q.Depth, q.Reliability, q.Durability})
		}
		v.Topics = append(v.Topics, tv)
	}
	for ms := range int64(2000) {
		var batch []plugin.Message
		for i, t := range topics {
			if t.every == 0 || ms%t.every != 0 {
				continue
			}
			n := uint32(ms / t.every)
			// Stamps of 20 ms are the same, so that they are equal within a topic too.
			m := plugin.Message{Topic: ids[i], RecvTime: KnownStart + ms/20*20*1e6, SendTime: KnownStart + ms*1e6 - 350_000, Source: n%2 + 1,
				Seq: uint64(n) + 1, Data: t.Body([]byte{0, 1, 0, 0}, n, 0)}
			batch = append(batch, m)
			v.Messages = append(v.Messages, MessageView{Line{t.Name, t.Type(), m.RecvTime, len(m.Data), FNV1a(m.Data)}, m.SendTime, m.Seq})
		}
		if err := w.Write(batch); err != nil {
			return v, err
		}
	}
	return v, nil
}
