package perf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Device is a small computer that a run is confined to: its CPU by a quota, its memory by a limit, its disk by one of
// limited speed. The zero value is this machine as it is. What is measured on a Device is emulated, and says so.
type Device struct {
	Name   string      // "rpi4-sd"; "" none
	Board  string      // what it stands for
	CPU    float64     // cores of this machine that all processes of a cell have together; 0 by the ratings below and this machine's own
	Memory int64       // bytes for all processes of a cell and their page cache; 0 no limit
	Disk   *DiskLimits // nil: the directory of the run

	SevenZip float64 // the board's 7-zip rating with all its cores, MIPS
	Sysbench float64 // the board's sysbench cpu rating with all its cores, events/s
	Source   string  // of the two
}

// DiskLimits describe an emulated disk.
type DiskLimits struct {
	Rate       int64         // bytes per second, reads and writes each
	WriteDelay time.Duration // added to every write; whole milliseconds
	Stalls     int           // times a minute in which the disk does nothing for StallMin to StallMax; 0 never
	StallMin   time.Duration
	StallMax   time.Duration
	Dirty      int64 // vm.dirty_bytes while the run lasts: what the kernel may hold back
	Background int64 // vm.dirty_background_bytes
}

// raspberryPi4 is the board of the LevelDB proposal. The ratings were published for it: 7-zip by sbc-bench 0.9.34 on
// 32-bit Raspbian 11 with four threads; sysbench 1.0.20, primes to 10,000, four threads, by another source.
func raspberryPi4(name, disk string, d DiskLimits) Device {
	return Device{Name: name, Board: "Raspberry Pi 4 Model B Rev 1.1, 4 × Cortex-A72 at 1.5 GHz, 4 GiB, " + disk, Memory: 4 << 30, Disk: &d,
		SevenZip: 5480, Sysbench: 5901, Source: "7-zip 5,480 MIPS by sbc-bench 0.9.34, sysbench 5,901 events/s; published for the board"}
}

// Devices are the built-in ones.
func Devices() []Device {
	return []Device{
		raspberryPi4("rpi4-sd", "SD card of 20 MB/s", DiskLimits{Rate: 20e6, WriteDelay: time.Millisecond, StallMin: 150 * time.Millisecond,
			StallMax: 500 * time.Millisecond, Dirty: 300e6, Background: 50e6}),
		raspberryPi4("rpi4-usb", "USB SSD of 180 MB/s", DiskLimits{Rate: 180e6, StallMin: 20 * time.Millisecond,
			StallMax: 100 * time.Millisecond, Dirty: 300e6, Background: 50e6}),
	}
}

// FindDevice returns the device of a name; "none" and "" are this machine.
func FindDevice(name string) (Device, error) {
	if name == "" || name == "none" {
		return Device{}, nil
	}
	devices := Devices()
	if i := slices.IndexFunc(devices, func(d Device) bool { return d.Name == name }); i >= 0 {
		return devices[i], nil
	}
	names := []string{"none"}
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return Device{}, fmt.Errorf("no device %q: there is %s", name, strings.Join(names, ", "))
}

func (d Device) String() string {
	if d.Name == "" {
		return "this machine"
	}
	return "emulated " + d.Name
}

// Validate returns all problems, joined.
func (d Device) Validate() error {
	var errs []error
	if d.CPU < 0 || d.Memory < 0 {
		errs = append(errs, errors.New("device: CPU and memory must not be negative"))
	}
	if d.Memory > 0 && d.Memory < 64<<20 {
		errs = append(errs, fmt.Errorf("device: memory of %d bytes: less than 64 MiB", d.Memory))
	}
	if l := d.Disk; l != nil {
		if l.Rate < 1e5 || l.Rate > 1e10 {
			errs = append(errs, fmt.Errorf("device: disk of %d bytes per second: not in 100 kB/s to 10 GB/s", l.Rate))
		}
		if l.WriteDelay < 0 || l.WriteDelay%time.Millisecond != 0 || l.Stalls < 0 || l.Stalls > 60 || l.StallMin < 0 || l.StallMax < l.StallMin || l.StallMax > time.Minute {
			errs = append(errs, errors.New("device: delays are whole milliseconds, not negative, and stalls at most 60 a minute and a minute long"))
		}
		if l.Dirty < 1e6 || l.Background < 1e6 || l.Background > l.Dirty {
			errs = append(errs, errors.New("device: dirty bytes: at least 1 MB, the background's not above the others'"))
		}
	}
	return errors.Join(errs...)
}

// DeviceInfo is what a report says of the device.
type DeviceInfo struct {
	Emulated   bool    `json:"emulated"`
	Name       string  `json:"name"`
	Board      string  `json:"board"`
	CPU        float64 `json:"cpu_cores_of_host"`         // quota of all processes of a cell together
	CPUSource  string  `json:"cpu_source"`                // how it was found
	Memory     int64   `json:"memory_bytes"`              //
	DiskRate   float64 `json:"disk_bytes_per_s"`          // as measured through the emulated disk before the run
	DiskLimit  int64   `json:"disk_limit_bytes_per_s"`    // as asked for
	WriteDelay int64   `json:"disk_write_delay_ns"`       //
	Stalls     int     `json:"disk_stalls_a_minute"`      //
	Dirty      int64   `json:"vm_dirty_bytes"`            // what the kernel may hold back of what is written
	Held       float64 `json:"kernel_held_bytes"`         // what it really held back of a program that only wrote, before the run
	Background int64   `json:"vm_dirty_background_bytes"` //
	Limits     string  `json:"limits_note"`               // what the emulation does not show
}

// emulationNote is what no emulated figure shows.
const emulationNote = "Emulated: a quota of CPU time over this machine's cores stands for the board's slower cores, so that a single busy thread is about twice as fast as on the board; " +
	"memory bandwidth, caches and instructions that one of them lacks are this machine's."

func (i *DeviceInfo) String() string {
	if i == nil || !i.Emulated {
		return ""
	}
	s := fmt.Sprintf("EMULATED %s (%s): %.2f cores of this machine (%s), %.1f GiB", i.Name, i.Board, i.CPU, i.CPUSource, float64(i.Memory)/(1<<30))
	if i.DiskRate > 0 {
		s += fmt.Sprintf(", disk %.1f MB/s measured (limit %.1f MB/s, %v per write, %d stalls a minute), vm.dirty_bytes %s, of which a bare write loop used %s",
			i.DiskRate/1e6, float64(i.DiskLimit)/1e6, time.Duration(i.WriteDelay), i.Stalls, shortMB(float64(i.Dirty)), shortMB(i.Held))
	}
	return s
}

// place is where a cell's bag is written.
type place struct {
	dir  string
	disk *slowDisk // nil: no emulated one
}

// cut ends the writing. On an emulated disk the power is cut: what is found afterwards is what had reached the disk.
func (p *place) cut() (dir string, err error) {
	if p.disk == nil {
		return p.dir, nil
	}
	return p.disk.cut()
}

// durable says how it is known that what is recorded is durable.
func (p *place) durable() string {
	if p.disk == nil {
		return "closed in order and synced by the recorder"
	}
	return "read from the disk's image after its power was cut when the recorder had ended"
}

// stalls are those of an emulated disk, by the time since start (wall clock, ns).
func (p *place) stalls(start int64) []Stall {
	if p.disk == nil {
		return nil
	}
	return p.disk.stallLog(start)
}

func (p *place) close() error {
	if p.disk == nil {
		return nil // the cell's directory goes as a whole
	}
	return p.disk.close()
}
