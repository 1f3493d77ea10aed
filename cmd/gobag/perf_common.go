package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// parseSizes reads the words of --size: bytes of a message.
func parseSizes(words []string) ([]int, error) {
	var sizes []int
	var errs []error
	for _, s := range words {
		n, err := parseBytes(s)
		if err != nil || n > 1<<30 {
			errs = append(errs, fmt.Errorf("--size %q: not a number of bytes up to 1 GiB", s))
		}
		sizes = append(sizes, int(n))
	}
	return sizes, errors.Join(errs...)
}

// ownCommand makes processes of this program, for measurements that need some.
func ownCommand() (func(ctx context.Context, words ...string) *exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("own program: %w", err)
	}
	return func(ctx context.Context, words ...string) *exec.Cmd { return exec.CommandContext(ctx, self, words...) }, nil
}

// toFile writes a file; without a name it does nothing.
func toFile(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
