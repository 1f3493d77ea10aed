//go:build linux

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Capture records the loopback traffic of a network. It needs a namespace, or the right to capture.
func (n *Net) Capture(file string) (*Proc, error) { return n.CaptureOn("lo", "", file) }

// CaptureOn records the traffic of an interface of the network that fits a capture filter; "" is all.
func (n *Net) CaptureOn(device, filter, file string) (*Proc, error) {
	program, err := Tool("dumpcap")
	if err != nil {
		return nil, err
	}
	p, err := n.Start(nil, program, "-q", "-P", "-i", device, "-f", filter, "-B", "64", "-w", file)
	if err != nil {
		return nil, err
	}
	if err := waitFor(10*time.Second, func() bool { return strings.Contains(p.Stderr(), "File:") || !p.Running() }); err != nil {
		p.Kill()
		return nil, fmt.Errorf("dumpcap: %w", err)
	}
	if !p.Running() {
		return nil, fmt.Errorf("dumpcap ended: %w", p.Wait(0))
	}
	time.Sleep(100 * time.Millisecond)
	return p, nil
}

// StopCapture ends a capture once what was sent has been written.
func StopCapture(p *Proc) error {
	time.Sleep(300 * time.Millisecond)
	if err := p.Signal(syscall.SIGINT); err != nil {
		return err
	}
	return p.Wait(20 * time.Second)
}

// Dissect has tshark take a capture apart with a display filter and prints the fields, one line a packet.
func Dissect(file, filter string, fields ...string) ([]string, error) {
	program, err := Tool("tshark")
	if err != nil {
		return nil, err
	}
	// Content before port numbers: the ports of some domains belong to other protocols, games for instance.
	args := []string{"-n", "-o", "udp.try_heuristic_first:TRUE", "-r", file, "-Y", filter, "-T", "fields"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tshark %s: %w", filter, err), errors.New(strings.TrimSpace(stderr.String())))
	}
	text := strings.TrimRight(string(out), "\n")
	if text == "" {
		return nil, nil
	}
	return strings.Split(text, "\n"), nil
}
