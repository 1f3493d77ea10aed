package msg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// maxCached bounds what a Finder remembers: types come from the network.
const maxCached = 4096

// Options says where a Finder looks. The zero value looks in the built-in table only.
type Options struct {
	Dirs      []string // searched in this order, each in any layout of ROS 2; SearchDirs lists those of this machine
	NoBuiltin bool     // leave out the built-in table, which is searched last
}

// Validate says which of the directories cannot be read.
func (o Options) Validate() error {
	var errs []error
	for _, dir := range o.Dirs {
		if info, err := os.Stat(dir); err != nil {
			errs = append(errs, fmt.Errorf("search path for interface definitions: %w", err))
		} else if !info.IsDir() {
			errs = append(errs, fmt.Errorf("search path for interface definitions: %s is not a directory", dir))
		}
	}
	return errors.Join(errs...)
}

// SearchDirs returns the directories that interface definitions are looked for in on this machine: those given, the
// prefixes of $AMENT_PREFIX_PATH, the distributions below /opt/ros ($ROS_DISTRO first, then the newest), and ./install.
// Of all but those given, only directories that exist.
func SearchDirs(given []string) []string {
	return searchDirs(given, os.Getenv, "/opt/ros", "install")
}

func searchDirs(given []string, env func(string) string, optROS, install string) []string {
	dirs := slices.Clone(given)
	add := func(dir string) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range filepath.SplitList(env("AMENT_PREFIX_PATH")) {
		if dir != "" {
			add(dir)
		}
	}
	if distro := env("ROS_DISTRO"); distro != "" && filepath.IsLocal(distro) {
		add(filepath.Join(optROS, distro))
	}
	distros, _ := filepath.Glob(filepath.Join(optROS, "*")) // sorted by name; distributions are named in that order
	slices.Reverse(distros)
	for _, dir := range distros {
		add(dir)
	}
	add(install)
	return dirs
}

// Finder finds definitions by type name and hash. Safe for concurrent use; files are read when a type is first asked
// for, and answers, also that there is none, are kept: what is installed later is not seen.
type Finder struct {
	mu     sync.Mutex
	layers []layer
	places string // said when nothing is found
	cache  map[request]answer
}

type request struct{ name, hash string }

type answer struct {
	def Definition
	err error
}

// NewFinder returns a Finder that looks in the directories of o and the built-in table.
func NewFinder(o Options) *Finder {
	f := &Finder{cache: map[request]answer{}}
	for _, dir := range o.Dirs {
		f.layers = append(f.layers, dirLayer(dir))
	}
	var places []string
	switch len(o.Dirs) {
	case 0:
	case 1:
		places = append(places, o.Dirs[0])
	default:
		places = append(places, fmt.Sprintf("%d directories", len(o.Dirs)))
	}
	if !o.NoBuiltin {
		f.layers = append(f.layers, builtinLayers()...)
		places = append(places, "the built-in table")
	}
	f.places = "anywhere"
	if len(places) > 0 {
		f.places = "in " + strings.Join(places, " and ")
	}
	return f
}

// Find returns the definition of a type. With the hash that a publisher announces, only a definition that has it is
// returned: where the first one found differs, other directories and other versions in the built-in table are tried.
// With "" the first one found is returned. Without success the error wraps ErrNotFound and says why.
func (f *Finder) Find(typeName, hash string) (Definition, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := request{typeName, hash}
	if a, ok := f.cache[key]; ok {
		return a.def, a.err
	}
	def, err := f.find(typeName, hash)
	if len(f.cache) >= maxCached {
		clear(f.cache)
	}
	f.cache[key] = answer{def, err}
	return def, err
}

func (f *Finder) find(typeName, hash string) (Definition, error) {
	n, err := splitName(typeName)
	if err != nil {
		return Definition{}, fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	layers := f.layers
	if hash == "" {
		layers = slices.DeleteFunc(slices.Clone(layers), func(l layer) bool { return l.needHash })
	}
	packages := map[string]bool{n.pkg: true}
	var reasons []string
	// Attempt i prefers layer i and what follows. It can differ from the one before only if the layer left out there has
	// a package that was needed.
	for i := range layers {
		if i > 0 && !anyPackage(layers[i-1], packages) {
			continue
		}
		order := append(slices.Clone(layers[i:]), layers[:i]...)
		root, last := "", ""
		src := firstOf(order, func(pkg string) { packages[pkg] = true }, func(name, from string) {
			if last = from; root == "" {
				root = from
			}
		})
		def, err := Define(typeName, hash, src)
		if err == nil {
			def.From = root
			return def, nil
		}
		if root == "" && errors.Is(err, fs.ErrNotExist) {
			break // no layer has the file, in whatever order
		}
		reason := err.Error()
		if errors.Is(err, ErrHash) || errors.Is(err, fs.ErrNotExist) {
			reason = root + ": " + reason
		} else if last != root {
			reason = last + ": " + reason
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	if len(reasons) == 0 {
		return Definition{}, fmt.Errorf("%w: %s: no %v.* %s; name the directory that has package %s with --msg-path",
			ErrNotFound, typeName, n.file(), f.places, n.pkg)
	}
	const most = 4
	if more := len(reasons) - most; more > 0 {
		reasons = append(reasons[:most], fmt.Sprintf("%d more", more))
	}
	return Definition{}, fmt.Errorf("%w: %s: %s", ErrNotFound, typeName, strings.Join(reasons, "; "))
}

func anyPackage(l layer, packages map[string]bool) bool {
	for pkg := range packages {
		if l.has(pkg) {
			return true
		}
	}
	return false
}
