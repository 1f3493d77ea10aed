package plugin

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

var registry struct {
	sync.RWMutex
	drivers map[string]Driver
}

// Register makes a driver available under its name. It is called from init functions and panics on a second driver
// of the same name.
func Register(d Driver) {
	registry.Lock()
	defer registry.Unlock()
	if registry.drivers == nil {
		registry.drivers = map[string]Driver{}
	}
	if _, dup := registry.drivers[d.Name()]; dup {
		panic("plugin: two drivers named " + d.Name())
	}
	registry.drivers[d.Name()] = d
}

// Drivers returns all registered drivers by name.
func Drivers() []Driver {
	registry.RLock()
	defer registry.RUnlock()
	ds := make([]Driver, 0, len(registry.drivers))
	for _, d := range registry.drivers {
		ds = append(ds, d)
	}
	sort.Slice(ds, func(i, j int) bool { return ds[i].Name() < ds[j].Name() })
	return ds
}

// Lookup returns the driver of that name, or ErrNoDriver with the names there are.
func Lookup(name string) (Driver, error) {
	registry.RLock()
	d, ok := registry.drivers[name]
	registry.RUnlock()
	if ok {
		return d, nil
	}
	var names []string
	for _, d := range Drivers() {
		names = append(names, d.Name())
	}
	return nil, fmt.Errorf("storage %q: %w (there is: %s)", name, ErrNoDriver, strings.Join(names, ", "))
}

// DetectDriver returns the driver whose format path holds, by magic bytes. ErrNoDriver if it is none of them; an error
// of the file system is returned as it is.
func DetectDriver(path string) (Driver, error) {
	for _, d := range Drivers() {
		ok, err := d.Detect(path)
		if err != nil {
			return nil, fmt.Errorf("detect storage %s: %w", path, err)
		}
		if ok {
			return d, nil
		}
	}
	return nil, fmt.Errorf("detect storage %s: %w", path, ErrNoDriver)
}
