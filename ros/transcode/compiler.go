package transcode

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/gobag/gobag/msg"
)

// Program turns payloads of one type. It is immutable and safe for concurrent use.
type Program struct {
	Type       string // of what it makes: "sensor_msgs/msg/Imu", or "sensor_msgs/Imu"
	Hash       string // its RIHS01 hash, or its md5sum
	Encoding   string // of Definition: "ros2msg", or "ros1msg"
	Definition string
	Format     string // serialization format of what it makes: "cdr" or "ros1"

	from string
	ops  []op
}

// Compiler makes programs and keeps them. Safe for concurrent use.
type Compiler struct {
	mu       sync.Mutex
	source   msg.Source
	programs map[request]answer
}

type request struct{ format, name, hash, text string }

type answer struct {
	p   *Program
	err error
}

// maxPrograms bounds what a Compiler remembers: types come from the network.
const maxPrograms = 4096

// New returns a Compiler that takes ROS 2's definitions from the directories and the built-in table of o.
func New(o msg.Options) *Compiler {
	return &Compiler{source: msg.NewSource(o), programs: map[request]answer{}}
}

// ToROS2 returns the program for a type of ROS 1, "sensor_msgs/Imu", with its definition text; "" is the built-in
// table's. The error says why the type cannot be turned.
func (c *Compiler) ToROS2(name, text string) (*Program, error) {
	return c.keep(request{"ros1", name, "", text}, func() (*Program, error) {
		d, err := definitionROS1(name, text)
		if err != nil {
			return nil, err
		}
		return c.compileTo2(d)
	})
}

// ToROS1 returns the program for a type of ROS 2, "sensor_msgs/msg/Imu", with the definition that its payloads were
// written with; an empty text is what the directories and the built-in table have. Where the built-in table of ROS 1 has
// the type, that is what the payloads are turned into; else a type made of ROS 2's definition.
func (c *Compiler) ToROS1(name, hash, encoding, text string) (*Program, error) {
	return c.keep(request{encoding, name, hash, text}, func() (*Program, error) {
		if NameROS1(name) == "" {
			return nil, errors.New("it is no message type: ROS 1 has no counterpart")
		}
		src := c.source
		if text != "" {
			own, err := msg.TextSource(name, encoding, text)
			if err != nil {
				return nil, err
			}
			src = msg.Overlay(own, src)
		}
		desc, err := msg.Describe(name, src)
		if errors.Is(err, fs.ErrNotExist) && encoding != "" && text == "" { // the text of a message without fields
			if own, terr := msg.TextSource(name, encoding, text); terr == nil {
				desc, err = msg.Describe(name, msg.Overlay(own, src))
			}
		}
		if err != nil {
			return nil, err
		}
		if got := desc.Hash(); text == "" && hash != "" && got != hash {
			return nil, fmt.Errorf("its definition is not known: the payloads have type hash %s, the definition at hand has %s", hash, got)
		}
		return c.compileTo1(&desc)
	})
}

func definitionROS1(name, text string) (*msg.ROS1Definition, error) {
	if text == "" {
		return msg.BuiltinROS1(name) // an empty message has an empty text
	}
	return msg.ParseROS1(name, text)
}

func (c *Compiler) keep(key request, make func() (*Program, error)) (*Program, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.programs[key]
	if !ok {
		if len(c.programs) >= maxPrograms {
			clear(c.programs)
		}
		a.p, a.err = make()
		if a.err != nil {
			a.err = fmt.Errorf("type %s: %w", key.name, a.err)
		}
		c.programs[key] = a
	}
	return a.p, a.err
}
