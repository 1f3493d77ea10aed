package transcode

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/gobag/gobag/msg"
)

// derive2 writes definitions of ROS 2 for types that none is known of.
func (c *Compiler) derive2(d *msg.ROS1Definition, name string, made map[string][]byte, seen map[string]bool) error {
	if seen[name] {
		return nil
	}
	seen[name] = true
	m := d.Messages[name]
	for _, f := range m.Fields {
		if f.Nested {
			if err := c.derive2(d, f.Type, made, seen); err != nil {
				return err
			}
		}
	}
	file := NameROS2(name) + ".msg"
	for _, known := range []string{file, NameROS2(name) + ".idl"} {
		if _, err := c.source(known); err == nil {
			return nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var b strings.Builder
	fields := map[string]string{}
	for _, k := range m.Constants {
		value := k.Value
		if k.Type == "string" {
			value = strconv.Quote(value)
		}
		if k.Type == "bool" {
			value = strings.ToLower(value)
			if value == "1" || value == "0" {
				value = map[string]string{"1": "true", "0": "false"}[value]
			}
		}
		fmt.Fprintf(&b, "%s %s=%s\n", k.Type, strings.ToUpper(k.Name), value)
	}
	for _, f := range m.Fields {
		lower := strings.ToLower(f.Name)
		if other, taken := fields[lower]; taken {
			return fmt.Errorf("%s: the fields %s and %s have one name in ROS 2, where names are lower case", name, other, f.Name)
		}
		fields[lower] = f.Name
		typ := f.Type
		switch {
		case typ == "time":
			typ = "builtin_interfaces/Time"
		case typ == "duration":
			typ = "builtin_interfaces/Duration"
		case f.Nested:
			typ = strings.Replace(NameROS2(typ), "/msg/", "/", 1)
		}
		switch f.Array {
		case msg.Fixed:
			typ += fmt.Sprintf("[%d]", f.Capacity)
		case msg.Unbounded:
			typ += "[]"
		}
		fmt.Fprintf(&b, "%s %s\n", typ, lower)
	}
	made[file] = []byte(b.String())
	return nil
}

// derive1 puts the ROS 1 form of a type into d: that of the built-in table, or one made of ROS 2's.
func derive1(d *msg.ROS1Definition, name2 string, ros2 map[string]*msg.Message) error {
	name := NameROS1(name2)
	if name == "" {
		return fmt.Errorf("%s is no message type: ROS 1 has no counterpart", name2)
	}
	if _, have := d.Messages[name]; have {
		return nil
	}
	if known, err := msg.BuiltinROS1(name); err == nil {
		for n, m := range known.Messages {
			d.Messages[n] = m
		}
		return nil
	}
	m := &msg.ROS1Message{Name: name}
	d.Messages[name] = m
	for _, k := range ros2[name2].Constants {
		typ, err := primitive1(k.Type)
		if err != nil {
			return fmt.Errorf("constant %s of %s: %w", k.Name, name2, err)
		}
		value := k.Value
		if typ == "string" && len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		m.Constants = append(m.Constants, msg.ROS1Constant{Type: typ, Name: k.Name, Value: value})
	}
	for _, f := range ros2[name2].Fields {
		f1 := msg.ROS1Field{Name: f.Name, Array: f.Type.Array, Capacity: f.Type.Capacity}
		if f1.Array == msg.Bounded {
			f1.Array, f1.Capacity = msg.Unbounded, 0
		}
		switch {
		case f.Type.Base != msg.Nested:
			var err error
			if f1.Type, err = primitive1(f.Type); err != nil {
				return fmt.Errorf("field %s of %s: %w", f.Name, name2, err)
			}
		case f.Type.Name == timeROS2:
			f1.Type = "time"
		case f.Type.Name == spanROS2:
			f1.Type = "duration"
		default:
			f1.Type, f1.Nested = NameROS1(f.Type.Name), true
			if err := derive1(d, f.Type.Name, ros2); err != nil {
				return fmt.Errorf("field %s: %w", f.Name, err)
			}
		}
		m.Fields = append(m.Fields, f1)
	}
	return nil
}

var names1 = map[msg.Base]string{msg.Bool: "bool", msg.Byte: "byte", msg.Char: "uint8", msg.Int8: "int8", msg.UInt8: "uint8", msg.Int16: "int16",
	msg.UInt16: "uint16", msg.Int32: "int32", msg.UInt32: "uint32", msg.Int64: "int64", msg.UInt64: "uint64", msg.Float: "float32",
	msg.Double: "float64", msg.String: "string", msg.BoundedString: "string"}

func primitive1(t msg.Type) (string, error) {
	if n, ok := names1[t.Base]; ok {
		return n, nil
	}
	return "", errWide
}
