//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
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

// LimitReceiveBuffers sets net.core.rmem_max for the whole machine; restore sets it back.
func LimitReceiveBuffers(bytes int) (restore func() error, err error) {
	before, err := os.ReadFile(rmemMax)
	if err != nil {
		return nil, err
	}
	set := func(value string) error {
		if err := os.WriteFile(rmemMax, []byte(value), 0o644); err != nil {
			return fmt.Errorf("set net.core.rmem_max to %s: %w", value, err)
		}
		return nil
	}
	if err := set(strconv.Itoa(bytes)); err != nil {
		return nil, err
	}
	now, err := os.ReadFile(rmemMax)
	if text := strings.TrimSpace(string(now)); err != nil || text != strconv.Itoa(bytes) {
		return nil, errors.Join(fmt.Errorf("net.core.rmem_max is %s, want %d", text, bytes), err, set(strings.TrimSpace(string(before))))
	}
	return func() error { return set(strings.TrimSpace(string(before))) }, nil
}
