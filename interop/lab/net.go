//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// cycloneConfig keeps Cyclone on loopback, with multicast.
const cycloneConfig = `<CycloneDDS><Domain id="any"><General><Interfaces><NetworkInterface name="lo" multicast="true"/>` +
	`</Interfaces></General></Domain></CycloneDDS>`

// firstDomain is where the domains of this package begin; unit tests of other packages stay below.
const firstDomain = 61

var netCount atomic.Int32

// Net is a network that peers and gobag share: a network namespace with nothing but loopback where the process may make
// one, else the machine's own loopback with a ROS domain of its own.
type Net struct {
	Namespace string // "" = the machine's own
	Domain    int
	// CycloneURI is the configuration of the Cyclone peers and what gobag is told of it; a test may change it.
	CycloneURI string

	prefix []string // put before every command
}

// NewNet makes a network. Close it.
func NewNet() (*Net, error) {
	k := int(netCount.Add(1))
	n := &Net{Domain: firstDomain + (os.Getpid()*7+k)%40, CycloneURI: cycloneConfig}
	name := fmt.Sprintf("%s%d-%d", namePrefix, os.Getpid(), k)
	if !addNamespace(name) {
		return n, nil // plain loopback does
	}
	n.Namespace = name
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"link", "set", "lo", "multicast", "on"}} {
		if err := run("ip", append([]string{"-n", name}, args...)...); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// addNamespace makes a network namespace; false without the right to, as in some containers, or without ip(8).
func addNamespace(name string) bool {
	if _, err := exec.LookPath("ip"); err != nil || os.Geteuid() != 0 {
		return false
	}
	return run("ip", "netns", "add", name) == nil
}

// Close removes the namespace. Processes in it must have ended.
func (n *Net) Close() error {
	if n.Namespace == "" {
		return nil
	}
	name := n.Namespace
	n.Namespace = ""
	return run("ip", "netns", "del", name)
}

// command is the argument vector that runs args in the network.
func (n *Net) command(args []string) []string {
	if n.Namespace == "" {
		return args
	}
	return slices.Concat([]string{"ip", "netns", "exec", n.Namespace}, n.prefix, args)
}

// env is the environment of a process in the network: ours less everything that steers ROS or DDS.
func (n *Net) env() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "ROS_") || strings.HasPrefix(name, "RMW_") || strings.HasPrefix(name, "CYCLONEDDS_") ||
			strings.HasPrefix(name, "FASTRTPS_") || strings.HasPrefix(name, "FASTDDS_") {
			continue
		}
		env = append(env, v)
	}
	return append(env, "ROS_DOMAIN_ID="+strconv.Itoa(n.Domain), "CYCLONEDDS_URI="+n.CycloneURI)
}

// namePrefix begins every namespace and folder of this package; the process id follows.
const namePrefix = "gobag-lab-"

// Sweep removes what earlier runs left behind when they were killed: namespaces, mounts, loop devices.
func Sweep() {
	out, _ := exec.Command("ip", "netns", "list").Output()
	for _, line := range strings.Split(string(out), "\n") {
		name, _, _ := strings.Cut(line, " ")
		if orphan(name) {
			_ = run("ip", "netns", "del", name)
		}
	}
	sweepLimits()
	sweepDisks()
}

// orphan says whether name was made by a process that is gone.
func orphan(name string) bool {
	rest, ok := strings.CutPrefix(name, namePrefix)
	if !ok {
		return false
	}
	id, _, _ := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(id)
	return err == nil && syscall.Kill(pid, 0) == syscall.ESRCH
}
