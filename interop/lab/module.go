//go:build linux

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Root returns the directory of the module that the working directory is in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("find module: no go.mod in or above the working directory")
		}
		dir = up
	}
}

// Shared returns the folder of shared data (GOBAG_SHARED, default ../shared beside the module) and whether it is there.
func Shared() (string, bool) {
	dir := os.Getenv("GOBAG_SHARED")
	if dir == "" {
		root, err := Root()
		if err != nil {
			return "", false
		}
		dir = filepath.Join(root, "..", "shared")
	}
	st, err := os.Stat(dir)
	return dir, err == nil && st.IsDir()
}

// Build compiles the package (relative to the module root: "./cmd/gobag") into out, statically, with the extra
// environment ("GOARCH=arm64").
func Build(pkg, out string, env ...string) error {
	root, err := Root()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Dir = root
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return nil
}

// Peer returns the path of a built peer program: "cy_pub", "cy_sub" or "bare_sleep".
func Peer(name string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "interop", "build", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("peer %s is not built: run make -C interop install peers", name)
	}
	return path, nil
}

// NodeReader returns the command line of the JavaScript bag reader.
func NodeReader() ([]string, error) { return NodeScript("read.js") }

// NodeScript returns the command line of a script of interop/node.
func NodeScript(name string) ([]string, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "interop", "node")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@foxglove", "rosbag2")); err != nil {
		return nil, errors.New("@foxglove/rosbag2 is not installed: run make -C interop install")
	}
	node, err := Tool("node")
	if err != nil {
		return nil, err
	}
	return []string{node, filepath.Join(dir, name)}, nil
}

// Tool returns the path of an installed program.
func Tool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed: run make -C interop install", name)
	}
	return path, nil
}

// run runs a program to its end and puts what it printed into the error.
func run(name string, args ...string) error {
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(text)))
	}
	return nil
}
