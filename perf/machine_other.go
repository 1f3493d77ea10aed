//go:build !linux

package perf

import "os"

// fill adds what the environment tells; there is no portable way to more.
func (m *Machine) fill(string) { m.CPU = os.Getenv("PROCESSOR_IDENTIFIER") }
