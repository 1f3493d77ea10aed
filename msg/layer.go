package msg

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// layer is one place that has interface files of some packages.
type layer struct {
	has      func(pkg string) bool
	read     func(name string) ([]byte, error) // a Source
	from     func(name string) string          // what to call the file of that name
	needHash bool                              // not to be trusted without a hash
}

// tables are the interfaces directory, in the order of the search. Where a publisher announces no hash it is of Humble
// or older, so what differs there comes first; the messages of PX4 change with its releases and name no version.
//
//go:embed interfaces/humble interfaces/jazzy interfaces/lyrical interfaces/px4-1.15
var tables embed.FS

func builtinLayers() []layer {
	return []layer{builtinLayer("humble"), builtinLayer("jazzy"), builtinLayer("lyrical"), builtinLayer("px4-1.15")}
}

func builtinLayer(name string) layer {
	dir := "interfaces/" + name
	return layer{
		has: func(pkg string) bool {
			_, err := fs.Stat(tables, path.Join(dir, pkg))
			return err == nil
		},
		read:     func(file string) ([]byte, error) { return tables.ReadFile(path.Join(dir, file)) },
		from:     func(file string) string { return fmt.Sprintf("built-in table (%s) %s", name, file) },
		needHash: strings.HasPrefix(name, "px4"),
	}
}

// dirLayer finds packages below dir in any of the layouts that ROS 2 has: an install prefix or merged workspace
// (dir/share/pkg), an isolated workspace (dir/pkg/share/pkg), a folder of packages such as a source checkout (dir/pkg),
// or the package itself. What it found is kept. Not safe for concurrent use.
func dirLayer(dir string) layer {
	packages := map[string]string{}
	find := func(pkg string) string {
		if p, ok := packages[pkg]; ok {
			return p
		}
		candidates := []string{filepath.Join(dir, "share", pkg), filepath.Join(dir, pkg, "share", pkg), filepath.Join(dir, pkg)}
		if abs, err := filepath.Abs(dir); err == nil && filepath.Base(abs) == pkg {
			candidates = append(candidates, dir)
		}
		found := ""
		for _, c := range candidates {
			if isInterfacePackage(c) {
				found = c
				break
			}
		}
		if len(packages) < maxCached {
			packages[pkg] = found
		}
		return found
	}
	file := func(name string) string {
		pkg, rest, _ := strings.Cut(name, "/")
		p := filepath.Join(find(pkg), filepath.FromSlash(rest))
		if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
			return indexed(find(pkg), pkg, path.Base(rest), p)
		}
		return p
	}
	return layer{
		has:  func(pkg string) bool { return find(pkg) != "" },
		from: file,
		read: func(name string) ([]byte, error) {
			if pkg, _, _ := strings.Cut(name, "/"); find(pkg) == "" {
				return nil, fs.ErrNotExist
			}
			return readFile(file(name))
		},
	}
}

// indexed looks up a file in the list of interfaces that an installed package has in the ament index: it may be in a
// folder below msg. Without such an entry it returns otherwise.
func indexed(dir, pkg, name, otherwise string) string {
	list, err := readFile(filepath.Join(dir, "..", "ament_index", "resource_index", "rosidl_interfaces", pkg))
	if err != nil {
		return otherwise
	}
	for l := range strings.Lines(string(list)) {
		if l = strings.TrimSpace(l); path.Base(l) == name && fs.ValidPath(l) {
			return filepath.Join(dir, filepath.FromSlash(l))
		}
	}
	return otherwise
}

// isInterfacePackage tells whether dir is a directory with a folder of interfaces.
func isInterfacePackage(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		switch e.Name() {
		case "msg", "srv", "action":
			return true
		}
	}
	return false
}

// readFile reads a regular file of at most maxFile bytes. Links are followed: a workspace built with
// --symlink-install consists of them.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read %s: larger than %d bytes, the limit for an interface file", path, maxFile)
	}
	return data, nil
}

// firstOf reads from the first of layers that has a file. used gets every package asked for and reads every file with
// its origin; both may be nil.
func firstOf(layers []layer, used func(pkg string), read func(name, from string)) Source {
	return func(name string) ([]byte, error) {
		pkg, _, _ := strings.Cut(name, "/")
		if used != nil {
			used(pkg)
		}
		for _, l := range layers {
			data, err := l.read(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if read != nil {
				read(name, l.from(name))
			}
			return data, err
		}
		return nil, fs.ErrNotExist
	}
}
