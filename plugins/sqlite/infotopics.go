package sqlite

import (
	"fmt"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// readTopics reads the topics in the order of their ids, with what the other tables say of them.
func (d *description) readTopics(c *conn) error {
	have, err := columns(c, "topics")
	if err != nil {
		return err
	}
	column := func(name string) string {
		if have[name] {
			return name
		}
		return "''"
	}
	type named struct{ name, typ string }
	ids := map[named]plugin.TopicID{}
	sql := fmt.Sprintf("SELECT id, name, type, %s, %s, %s FROM topics ORDER BY id",
		column("serialization_format"), column("offered_qos_profiles"), column("type_description_hash"))
	err = c.query(sql, func(s *stmt) error {
		row := s.int64(0)
		t := plugin.Topic{Name: s.text(1), Type: s.text(2), SerializationFormat: s.text(3), OfferedQoS: s.text(4), TypeHash: s.text(5)}
		if id, twice := ids[named{t.Name, t.Type}]; twice {
			d.warn("topic %q stands twice in the table topics: its messages are shown together", t.Name)
			d.topicOf[row] = id
			d.rowsOf[id-1] = append(d.rowsOf[id-1], row)
			return nil
		}
		t.ID = plugin.TopicID(len(d.info.Topics) + 1)
		if strings.Count(t.Type, "/") == 1 && t.SerializationFormat != "ros1" { // ROS 1 names its types so
			d.warn("topic %q: type %q has the two-part form of early ROS 2", t.Name, t.Type)
		}
		ids[named{t.Name, t.Type}] = t.ID
		d.topicOf[row] = t.ID
		d.rowsOf = append(d.rowsOf, []int64{row})
		d.info.Topics = append(d.info.Topics, plugin.TopicInfo{Topic: t})
		return nil
	})
	if err != nil {
		return err
	}
	if err := d.readDefinitions(c); err != nil {
		return err
	}
	return d.readTopicRows(c)
}

// readDefinitions joins the definitions to the topics: by type and hash, by type, by hash, and for the events of
// services and actions, which rosbag2 files under the service or action, by the name these begin with.
func (d *description) readDefinitions(c *conn) error {
	have, err := columns(c, "message_definitions")
	if err != nil || !have["topic_type"] || !have["encoding"] || !have["encoded_message_definition"] {
		return err
	}
	hash := "''"
	if have["type_description_hash"] {
		hash = "type_description_hash"
	}
	type key struct{ typ, hash string }
	defs := map[key]plugin.Definition{}
	err = c.query("SELECT topic_type, encoding, encoded_message_definition, "+hash+" FROM message_definitions ORDER BY rowid", func(s *stmt) error {
		def := plugin.Definition{Encoding: s.text(1), Text: s.text(2)}
		if def.Text == "" {
			return nil
		}
		typ, h := s.text(0), s.text(3)
		for _, k := range []key{{typ, h}, {typ, ""}, {"", h}} {
			if _, ok := defs[k]; !ok && k != (key{}) {
				defs[k] = def
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range d.info.Topics {
		t := &d.info.Topics[i].Topic
		base := strings.TrimSuffix(t.Type, "_Event")
		for _, part := range []string{"_FeedbackMessage", "_SendGoal", "_GetResult"} {
			base = strings.TrimSuffix(base, part)
		}
		keys := []key{{t.Type, t.TypeHash}, {t.Type, ""}}
		if t.TypeHash != "" {
			keys = append(keys, key{"", t.TypeHash})
		}
		for _, k := range append(keys, key{base, ""}) {
			if def, ok := defs[k]; ok {
				t.Definition = def
				break
			}
		}
	}
	return nil
}

// readTopicRows reads the topics' rows in gobag_data.
func (d *description) readTopicRows(c *conn) error {
	if !d.packed {
		return nil
	}
	return c.query("SELECT id, data FROM gobag_data WHERE id < 0", func(s *stmt) error {
		id, ok := d.topicOf[-s.int64(0)]
		if !ok {
			return nil
		}
		r, err := parseTopicRow(s.int64(0), s.blob(1))
		if err != nil {
			d.warn("table gobag_data: %v", err)
			return nil
		}
		t := &d.info.Topics[id-1].Topic
		t.Sources = r.sources
		if r.typeHash != "" {
			t.TypeHash = r.typeHash
		}
		if r.definition.Text != "" {
			t.Definition = r.definition
		}
		return nil
	})
}
