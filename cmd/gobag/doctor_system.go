package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Where the kernel's settings are, and the file that --fix writes.
const (
	sysctlRoot = "/"
	sysctlFile = "/etc/sysctl.d/60-gobag.conf"
)

// kernelSetting is a setting with a least value.
type kernelSetting struct {
	name   string // "net.core.rmem_max"
	why    string
	wanted int64
	value  int64
	known  bool
	most   bool // wanted is the largest good value, not the least
}

func (s *kernelSetting) low() bool {
	return s.known && (s.most && s.value > s.wanted || !s.most && s.value < s.wanted)
}

func (s *kernelSetting) path(root string) string {
	return filepath.Join(root, "proc", "sys", filepath.FromSlash(strings.ReplaceAll(s.name, ".", "/")))
}

func (s *kernelSetting) set(root string) error {
	return os.WriteFile(s.path(root), []byte(strconv.FormatInt(s.wanted, 10)+"\n"), 0o644)
}

// kernelSettings reads the settings that matter. Where there are none, as on other systems than Linux, the list is of unknown
// ones.
func kernelSettings(root string) []kernelSetting {
	list := []kernelSetting{
		{name: "net.core.rmem_max", wanted: 32 << 20, why: "the receive buffer without root: bursts of large messages overflow a small one"},
		{name: "net.ipv4.ipfrag_high_thresh", wanted: 128 << 20, why: "memory for IP fragments: large messages from other hosts come in fragments"},
		{name: "net.ipv4.ipfrag_time", wanted: 3, most: true, why: "seconds that incomplete fragments hold that memory"},
	}
	for i := range list {
		text, err := os.ReadFile(list[i].path(root))
		if err != nil {
			continue
		}
		v, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		list[i].value, list[i].known = v, err == nil
	}
	return list
}

func (d *diagnosis) settings(settings []kernelSetting) {
	for i := range settings {
		s := &settings[i]
		switch {
		case !s.known:
		case s.low():
			d.add(hurts, s.name, fmt.Sprintf("sudo sysctl -w %s=%d, or gobag doctor --fix", s.name, s.wanted), "%d; %s", s.value, s.why)
		default:
			d.add(fine, s.name, "", "%d", s.value)
		}
	}
}

// interfaces looks at the network interfaces that discovery can use.
func (d *diagnosis) interfaces() {
	all, err := net.Interfaces()
	if err != nil {
		d.add(prevents, "network interfaces", "", "%v", err)
		return
	}
	usable := 0
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		var v4 []string
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil {
				v4 = append(v4, n.String())
			}
		}
		if len(v4) == 0 {
			continue
		}
		usable++
		name := "interface " + i.Name
		switch text := fmt.Sprintf("%s, MTU %d", strings.Join(v4, ", "), i.MTU); {
		case i.Flags&net.FlagMulticast != 0:
			d.add(fine, name, "", "%s, multicast", text)
		case i.Flags&net.FlagLoopback != 0:
			d.add(noted, name, "sudo ip link set "+i.Name+" multicast on", "%s, without the MULTICAST flag: Cyclone DDS and Fast DDS do not find each other on it; gobag finds both", text)
		default:
			d.add(hurts, name, "name the other hosts with --peer, or in ROS_STATIC_PEERS", "%s, without multicast: others are not found by themselves", text)
		}
	}
	if usable == 0 {
		d.add(prevents, "network interfaces", "sudo ip link set lo up", "none is up with an IPv4 address")
	}
}

// clock looks at what the kernel reads the time from.
func (d *diagnosis) clock(root string) {
	text, err := os.ReadFile(filepath.Join(root, "sys", "devices", "system", "clocksource", "clocksource0", "current_clocksource"))
	if err != nil {
		return // not told here
	}
	switch source := strings.TrimSpace(string(text)); source {
	case "tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page":
		d.add(fine, "clock source", "", "%s", source)
	default:
		d.add(hurts, "clock source", "see dmesg for why the kernel does not use its fast clock (tsc)", "%s: each look at the clock is a slow read of a device", source)
	}
}

// What a disk is judged by.
const (
	diskTotal = 128 << 20
	diskLimit = 10 * time.Second
	diskStall = 500 * time.Millisecond // the queue holds a second of 100 MB/s
	diskSlow  = 50e6                   // bytes per second below which cameras will not fit
)

// disk measures the target directory: what it takes steadily, synced, and the longest wait.
func (d *diagnosis) disk(ctx context.Context, dir string) {
	m, err := measureDisk(ctx, dir, diskTotal, diskLimit)
	if err != nil {
		d.add(prevents, "directory "+dir, "", "nothing can be written: %v", err)
		return
	}
	text := fmt.Sprintf("%.0f MB/s, the longest wait was %s", m.speed/1e6, m.worst.Round(time.Millisecond))
	switch {
	case m.speed < diskSlow:
		d.add(hurts, "disk of "+dir, "record fewer topics, compress (--compression-mode file), or use another disk: gobag record --dry-run says what fits", "%s", text)
	case m.worst > diskStall:
		d.add(hurts, "disk of "+dir, "a larger cache bridges it: gobag record --max-cache-size", "%s", text)
	default:
		d.add(fine, "disk of "+dir, "", "%s", text)
	}
}
