//go:build linux

package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Vendor is whose DDS a peer runs on. All take the same command line and print the same events.
type Vendor string

// The peers.
const (
	Cyclone Vendor = "cyclone"  // cy_pub, cy_sub
	Fast    Vendor = "fast"     // fa_pub, fa_sub, UDP only
	FastSHM Vendor = "fast-shm" // the same with Fast DDS's default transports: UDP and shared memory
	Own     Vendor = "gobag"    // interop/probe: gobag's rtps package by itself
)

// buildProbe compiles interop/probe into the folder of the peers, once in a process, and returns its path.
var buildProbe = sync.OnceValues(func() (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "interop", "build")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	// Under a name of its own first: another test may be running the old one.
	fresh := filepath.Join(dir, fmt.Sprintf("probe.%d", os.Getpid()))
	if err := Build("./interop/probe", fresh); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "probe")
	return path, os.Rename(fresh, path)
})

// command is the beginning of the command line of a publisher ("pub") or subscriber ("sub").
func (v Vendor) command(role string) ([]string, error) {
	switch v {
	case Own:
		path, err := buildProbe()
		return []string{path, role}, err
	case Fast, FastSHM:
		path, err := Peer("fa_" + role)
		if v == Fast {
			return []string{path, "--transport", "udp"}, err
		}
		return []string{path, "--transport", "default"}, err
	default:
		path, err := Peer("cy_" + role)
		return []string{path}, err
	}
}

// PublishAs starts a publisher of the vendor with options ("--seconds", "5") and topics.
func (n *Net) PublishAs(v Vendor, topics []Topic, options ...string) (*Proc, error) {
	return n.startAs(v, "pub", topics, options)
}

// SubscribeAs starts a subscriber of the vendor and waits until its readers are there.
func (n *Net) SubscribeAs(v Vendor, topics []Topic, options ...string) (*Proc, error) {
	p, err := n.startAs(v, "sub", topics, options)
	if err != nil {
		return nil, err
	}
	if _, err := p.Await("ready", 1, 20*time.Second); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

func (n *Net) startAs(v Vendor, role string, topics []Topic, options []string) (*Proc, error) {
	args, err := v.command(role)
	if err != nil {
		return nil, err
	}
	return n.Start(nil, append(append(args, options...), Args(topics)...)...)
}
