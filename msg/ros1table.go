package msg

import (
	"embed"
	"io/fs"
	"slices"
)

// ros1Table are the definitions of ROS 1's common packages, without comments.
//
//go:embed interfaces/ros1
var ros1Table embed.FS

// NewSource returns a Source of the interface files that a Finder with these options would look at, for callers that do
// not know a hash: the directories first, then the built-in table with the definitions of Jazzy before older and newer
// ones. Not safe for concurrent use.
func NewSource(o Options) Source {
	var layers []layer
	for _, dir := range o.Dirs {
		layers = append(layers, dirLayer(dir))
	}
	if !o.NoBuiltin {
		layers = append(layers, builtinLayer("jazzy"), builtinLayer("lyrical"), builtinLayer("humble"))
	}
	return firstOf(layers, nil, nil)
}

// Overlay returns a Source that reads from the first of sources that has a file.
func Overlay(sources ...Source) Source {
	sources = slices.Clone(sources)
	return func(name string) ([]byte, error) {
		err := fs.ErrNotExist
		for _, s := range sources {
			data, e := s(name)
			if e == nil {
				return data, nil
			}
			err = e
		}
		return nil, err
	}
}
