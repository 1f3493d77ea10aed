package sqlite

import (
	"slices"

	"github.com/gobag/gobag/plugin"
)

// insertTopic writes a topic that is not there yet.
func (w *writer) insertTopic(c *conn, t *plugin.Topic) error {
	var err error
	if w.humble {
		err = c.exec("INSERT INTO topics(id, name, type, serialization_format, offered_qos_profiles) VALUES (?, ?, ?, ?, ?)",
			int64(t.ID), t.Name, t.Type, t.SerializationFormat, t.OfferedQoS)
	} else {
		err = c.exec("INSERT INTO topics(id, name, type, serialization_format, offered_qos_profiles, type_description_hash) VALUES (?, ?, ?, ?, ?, ?)",
			int64(t.ID), t.Name, t.Type, t.SerializationFormat, t.OfferedQoS, t.TypeHash)
		if err == nil {
			err = w.define(c, t)
		}
	}
	if err != nil {
		return err
	}
	return w.writeTopicRow(c, t)
}

// updateTopic changes old, which is stored, to what t has; fields of t that are empty leave what is there.
func (w *writer) updateTopic(c *conn, old, t *plugin.Topic) error {
	u := *old
	if t.OfferedQoS != "" {
		u.OfferedQoS = t.OfferedQoS
	}
	if t.TypeHash != "" {
		u.TypeHash = t.TypeHash
	}
	if t.Definition.Text != "" {
		u.Definition = t.Definition
	}
	if t.Sources != nil {
		u.Sources = slices.Clone(t.Sources)
	}
	described := u.TypeHash != old.TypeHash || u.Definition != old.Definition
	if u.OfferedQoS != old.OfferedQoS {
		if err := c.exec("UPDATE topics SET offered_qos_profiles = ? WHERE id = ?", u.OfferedQoS, int64(u.ID)); err != nil {
			return err
		}
	}
	if described && !w.humble {
		if err := c.exec("UPDATE topics SET type_description_hash = ? WHERE id = ?", u.TypeHash, int64(u.ID)); err != nil {
			return err
		}
		if err := w.define(c, &u); err != nil {
			return err
		}
	}
	if !slices.Equal(u.Sources, old.Sources) || described && w.humble {
		if err := w.writeTopicRow(c, &u); err != nil {
			return err
		}
	}
	*old = u
	return nil
}

// define stores the definition of a topic's type. As in rosbag2 there is one row per type, also where the text is not
// known; a second row is made only for a type that comes with another hash.
func (w *writer) define(c *conn, t *plugin.Topic) error {
	id, ok, err := c.queryInt("SELECT id FROM message_definitions WHERE topic_type = ?1 AND type_description_hash = ?2", t.Type, t.TypeHash)
	if err != nil {
		return err
	}
	if !ok && t.TypeHash != "" { // a row made before the hash was known
		id, ok, err = c.queryInt("SELECT id FROM message_definitions WHERE topic_type = ? AND type_description_hash = ''", t.Type)
		if err != nil {
			return err
		}
	}
	d := t.Definition
	if d.Text == "" {
		d.Encoding = "unknown"
	}
	if !ok {
		return c.exec("INSERT INTO message_definitions(topic_type, encoding, encoded_message_definition, type_description_hash) VALUES (?, ?, ?, ?)",
			t.Type, d.Encoding, d.Text, t.TypeHash)
	}
	if d.Text == "" {
		return c.exec("UPDATE message_definitions SET type_description_hash = ? WHERE id = ?", t.TypeHash, id)
	}
	return c.exec("UPDATE message_definitions SET encoding = ?, encoded_message_definition = ?, type_description_hash = ? WHERE id = ?",
		d.Encoding, d.Text, t.TypeHash, id)
}

// writeTopicRow stores what rosbag2's tables have no place for, if there is any.
func (w *writer) writeTopicRow(c *conn, t *plugin.Topic) error {
	r := topicRow{sources: t.Sources}
	if w.humble {
		r.typeHash, r.definition = t.TypeHash, t.Definition
	}
	if len(r.sources) == 0 && r.typeHash == "" && r.definition.Text == "" {
		return c.exec("DELETE FROM gobag_data WHERE id = ?", -int64(t.ID))
	}
	return c.exec("INSERT OR REPLACE INTO gobag_data(id, data) VALUES (?, ?)", -int64(t.ID), r.encode())
}
