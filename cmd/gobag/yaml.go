package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"go.yaml.in/yaml/v3"
)

// maxConfigSize bounds a file of settings: nobody writes a megabyte of them.
const maxConfigSize = 1 << 20

// readYAML reads a file that holds one YAML map; "" is no file.
func readYAML(path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	text, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&m); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// readConfig reads a file of settings.
func readConfig(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfigSize+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if len(text) > maxConfigSize {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxConfigSize)
	}
	return text, nil
}
