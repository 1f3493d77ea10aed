package transcode

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/gobag/gobag/msg"
)

// added handles a field that only ROS 2 has: its default is written, or has to be found.
func (p *pairing) added(out *compiled, t msg.Type, def, where string) error {
	switch {
	case t.Array == msg.Unbounded || t.Array == msg.Bounded:
		if def != "" {
			return fmt.Errorf("field %s is new in ROS 2 and has a default that is a list: not supported", where)
		}
		p.fill(out, op{kind: opDefaultSeq, field: where, align: 4, fill: make([]byte, 4)}, 4)
		return nil
	case t.Array == msg.Fixed && def != "":
		return fmt.Errorf("field %s is new in ROS 2 and has a default that is a list: not supported", where)
	}
	n := 1
	if t.Array == msg.Fixed {
		if n = int(t.Capacity); n > 1<<16 {
			return fmt.Errorf("field %s is new in ROS 2 and too large", where)
		}
	}
	if t.Base == msg.Nested {
		m := p.ros2[t.Name]
		if m == nil {
			return fmt.Errorf("%s is not defined", t.Name)
		}
		if p.depth++; p.depth > maxDepth {
			return errors.New("types are nested too deep")
		}
		defer func() { p.depth-- }()
		for range n {
			for i := range m.Fields {
				if err := p.added(out, m.Fields[i].Type, m.Fields[i].Default, join(where, m.Fields[i].Name)); err != nil {
					return err
				}
			}
			if len(m.Fields) == 0 {
				p.fill(out, op{kind: opDummy, field: where}, 1)
			}
			if len(out.ops) > 1<<16 {
				return fmt.Errorf("field %s is new in ROS 2 and too large", where)
			}
		}
		return nil
	}
	if t.Base == msg.String || t.Base == msg.BoundedString {
		text, err := unquote(def)
		if err != nil {
			return fmt.Errorf("default of field %s: %w", where, err)
		}
		for range n {
			p.fill(out, op{kind: opDefaultString, field: where, fill: text}, 4)
		}
		return nil
	}
	name, err := primitive1(t)
	if err != nil {
		return fmt.Errorf("field %s: %w", where, err)
	}
	size, _ := msg.ROS1Size(name)
	value, err := number(name, def, size)
	if err != nil {
		return fmt.Errorf("default of field %s: %w", where, err)
	}
	o := op{kind: opDefault, field: where, align: size, size: size}
	for range n {
		o.fill = append(o.fill, value...)
	}
	p.fill(out, o, len(o.fill))
	return nil
}

// fill appends a default. In what is read it takes least bytes, if that is ROS 2's.
func (p *pairing) fill(out *compiled, o op, least int) {
	out.ops = append(out.ops, o)
	if !p.to2 {
		out.least += least
	}
}

func unquote(def string) ([]byte, error) {
	if def == "" {
		return nil, nil
	}
	if len(def) < 2 || def[0] != def[len(def)-1] || def[0] != '"' && def[0] != '\'' || strings.Contains(def, `\`) {
		return nil, fmt.Errorf("%q is not a plain text in quotes", def)
	}
	return []byte(def[1 : len(def)-1]), nil
}

// number is a default in CDR; "" is zero.
func number(typ, def string, size int) ([]byte, error) {
	var v uint64
	if def != "" {
		switch typ {
		case "bool":
			b, err := strconv.ParseBool(strings.ToLower(def))
			if err != nil {
				return nil, err
			}
			if b {
				v = 1
			}
		case "float32":
			f, err := strconv.ParseFloat(def, 32)
			if err != nil {
				return nil, err
			}
			v = uint64(math.Float32bits(float32(f)))
		case "float64":
			f, err := strconv.ParseFloat(def, 64)
			if err != nil {
				return nil, err
			}
			v = math.Float64bits(f)
		default:
			i, err := strconv.ParseInt(def, 0, 64)
			if err != nil {
				return nil, err
			}
			v = uint64(i)
		}
	}
	return binary.LittleEndian.AppendUint64(nil, v)[:size], nil
}
