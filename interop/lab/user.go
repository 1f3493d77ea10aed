//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Nobody is the user and group that AsNobody runs programs as.
const Nobody = 65534

// AsNobody has every program of the network run without root and without any capability, in a namespace that root has
// made. What it reads and writes must be open to that user.
func (n *Net) AsNobody() error {
	if n.Namespace == "" {
		return ErrNoHosts
	}
	program, err := Tool("setpriv")
	if err != nil {
		return err
	}
	id := strconv.Itoa(Nobody)
	n.prefix = []string{program, "--reuid", id, "--regid", id, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"}
	return nil
}

// rmemMax is the largest receive buffer that a program without privilege gets, in bytes. The kernel has one value for all
// network namespaces, and counts its own overhead against twice that.
const rmemMax = "/proc/sys/net/core/rmem_max"

// StockRmemMax is the value of a Linux on which nobody has changed anything.
const StockRmemMax = 212992

// rmemNote ends the name of the file that holds the value from before, for Sweep, should this process be killed.
const rmemNote = "-rmem_max"

// LimitReceiveBuffers sets net.core.rmem_max for the whole machine; restore sets it back.
func LimitReceiveBuffers(bytes int) (restore func() error, err error) {
	sweepLimits()
	before, err := os.ReadFile(rmemMax)
	if err != nil {
		return nil, err
	}
	note := filepath.Join(os.TempDir(), fmt.Sprintf("%s%d%s", namePrefix, os.Getpid(), rmemNote))
	if err := os.WriteFile(note, before, 0o600); err != nil {
		return nil, err
	}
	restore = func() error { return errors.Join(setRmemMax(string(before)), os.Remove(note)) }
	if err := setRmemMax(strconv.Itoa(bytes)); err != nil {
		return nil, errors.Join(err, restore())
	}
	return restore, nil
}

// setRmemMax writes the value and looks whether it is there now.
func setRmemMax(value string) error {
	value = strings.TrimSpace(value)
	if err := os.WriteFile(rmemMax, []byte(value), 0o644); err != nil {
		return fmt.Errorf("set net.core.rmem_max to %s: %w", value, err)
	}
	now, err := os.ReadFile(rmemMax)
	if text := strings.TrimSpace(string(now)); err == nil && text != value {
		return fmt.Errorf("set net.core.rmem_max to %s: it is %s", value, text)
	}
	return err
}

// sweepLimits sets back what a process left behind that was killed.
func sweepLimits() {
	notes, _ := filepath.Glob(filepath.Join(os.TempDir(), namePrefix+"*"+rmemNote))
	for _, note := range notes {
		if before, err := os.ReadFile(note); err == nil && orphan(filepath.Base(note)) && setRmemMax(string(before)) == nil {
			_ = os.Remove(note)
		}
	}
}
