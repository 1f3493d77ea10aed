package msg

import (
	"errors"
	"fmt"
	"strings"
)

// Definition is the definition of a type, checked against the hash that was asked for.
type Definition struct {
	Type     string // the name that was asked for
	Encoding string // "ros2msg" or "ros2idl"
	Text     string // as rosbag2 keeps it; empty for an empty message file, which is a definition too
	Hash     string // RIHS01 of Type
	From     string // the file, or the part of the built-in table, that it begins with; "" from Define
}

// ErrNotFound says that no trustworthy definition of a type is at hand; the error around it says where was looked and
// why what was there is not it.
var ErrNotFound = errors.New("definition not found")

// ErrHash says that a definition has another hash than the publisher announces: the two sides have different versions
// of the package.
var ErrHash = errors.New("type hash differs")

// Define reads the definition of typeName from src. With a hash, the definition must have it, else the error wraps
// ErrHash; with "" the hash is computed only.
func Define(typeName, hash string, src Source) (Definition, error) {
	if hash != "" && !validHash(hash) {
		return Definition{}, fmt.Errorf("%w: %.100q is not a hash of the form %s and 64 hexadecimal digits", ErrHash, hash, HashPrefix)
	}
	src = readOnce(src) // hash and text must be of the same bytes
	d, err := Describe(typeName, src)
	if err != nil {
		return Definition{}, err
	}
	got := d.Hash()
	if hash != "" && got != hash {
		return Definition{}, fmt.Errorf("%w: %s has %s, announced is %s", ErrHash, typeName, got, hash)
	}
	t, err := BuildText(typeName, src)
	if err != nil {
		return Definition{}, err
	}
	return Definition{Type: typeName, Encoding: t.Encoding, Text: t.Text, Hash: got}, nil
}

func validHash(s string) bool {
	digits, ok := strings.CutPrefix(s, HashPrefix)
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// readOnce is src, but gives the same answer again for a file that was there.
func readOnce(src Source) Source {
	files := map[string][]byte{}
	return func(name string) ([]byte, error) {
		if data, ok := files[name]; ok {
			return data, nil
		}
		data, err := src(name)
		if err == nil {
			files[name] = data
		}
		return data, err
	}
}
