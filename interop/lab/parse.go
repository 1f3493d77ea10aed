//go:build linux

package lab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseTopic reads the -t argument of the peers: the inverse of Arg.
func ParseTopic(text string) (Topic, error) {
	t := Topic{Hz: 10}
	for _, field := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(field, "=")
		if !ok {
			return t, fmt.Errorf("topic %s: %q is not key=value", text, field)
		}
		if err := t.set(key, value); err != nil {
			return t, fmt.Errorf("topic %s: %s: %w", text, key, err)
		}
	}
	if !strings.HasPrefix(t.Name, "/") {
		return t, fmt.Errorf("topic %s: must begin with /", text)
	}
	return t, nil
}

func (t *Topic) set(key, value string) (err error) {
	choice := func(off, on string) bool {
		if value != off && value != on {
			err = fmt.Errorf("%q is neither %s nor %s", value, off, on)
		}
		return value == on
	}
	number := func() (n int) {
		n, err = strconv.Atoi(value)
		return n
	}
	switch key {
	case "type":
		if t.Kind = Kind(value); !slices.Contains([]Kind{String, Imu, Image, Blob, Keyed, Reading}, t.Kind) {
			err = fmt.Errorf("unknown type %q", value)
		}
	case "topic":
		t.Name = value
	case "n":
		t.Instances = number()
	case "hz":
		t.Hz, err = strconv.ParseFloat(value, 64)
	case "count":
		t.Count = number()
	case "size":
		t.Size = number()
	case "grow":
		t.Grow = number()
	case "early":
		t.Early = value != "0"
	case "as":
		t.As = value
	case "rel":
		t.BestEffort = !choice("best_effort", "reliable")
	case "dur":
		t.TransientLocal = choice("volatile", "transient_local")
	case "depth":
		t.Depth = number()
	case "block_ms":
		t.BlockMS = number()
	case "deadline_ms":
		t.DeadlineMS = number()
	case "latency_ms":
		t.LatencyMS = number()
	case "lease_ms":
		t.LeaseMS = number()
	case "live":
		t.Liveliness = value
	case "own":
		t.Exclusive = choice("shared", "exclusive")
	case "order":
		t.SourceOrder = choice("reception", "source")
	case "repr":
		t.XCDR2 = choice("xcdr1", "xcdr2")
	case "hash":
		t.Hash = value
	case "part":
		t.Partition = value
	default:
		err = errors.New("unknown key")
	}
	return err
}
