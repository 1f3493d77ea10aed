//go:build !linux

package perf

import (
	"context"
	"errors"
	"time"
)

// emulation is Linux's: control groups and the like.
type emulation struct{ rate, held float64 }

func (d Device) start(context.Context, string, time.Duration) (*emulation, error) {
	if d.Name != "" {
		return nil, errors.New("device " + d.Name + ": emulation needs Linux (control groups, loop devices)")
	}
	return &emulation{}, nil
}

func (e *emulation) info() *DeviceInfo       { return nil }
func (e *emulation) confine(int) error       { return nil }
func (e *emulation) kernelBytes() int64      { return 0 }
func (e *emulation) cache(asked int64) int64 { return asked }
func (e *emulation) close() error            { return nil }

func (e *emulation) newDisk(work string, _ Load) (*place, error) {
	return &place{dir: work}, nil
}

// slowDisk is Linux's.
type slowDisk struct{}

func (*slowDisk) cut() (string, error)   { return "", nil }
func (*slowDisk) stallLog(int64) []Stall { return nil }
func (*slowDisk) close() error           { return nil }
