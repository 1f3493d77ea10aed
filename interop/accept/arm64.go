//go:build linux

package main

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// checkARM64 cross-compiles the command and runs its demo under user-mode emulation.
func checkARM64(b *bench) error {
	binary := filepath.Join(b.scratch, "gobag-arm64")
	if err := lab.Build("./cmd/gobag", binary, "GOARCH=arm64"); err != nil {
		return err
	}
	st, err := os.Stat(binary)
	if err != nil {
		return err
	}
	f, err := elf.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	interpreted := false
	for _, p := range f.Progs {
		interpreted = interpreted || p.Type == elf.PT_INTERP
	}
	b.figure(f.Machine == elf.EM_AARCH64 && !interpreted, "arm64 binary", "static", "%v, static: %t", f.Machine, !interpreted)
	b.figure(st.Size() < 25_000_000, "arm64 binary, size", "< 25 MB", "%.1f MB", float64(st.Size())/1e6)

	qemu, err := lab.Tool("qemu-aarch64-static")
	if err != nil {
		return err
	}
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	work, err := b.dir("demo")
	if err != nil {
		return err
	}
	begin := time.Now()
	p, err := n.Start([]string{"TMPDIR=" + work}, qemu, binary, "demo")
	if err != nil {
		return err
	}
	err = p.Wait(180 * time.Second)
	lines := strings.Split(strings.TrimSpace(p.Stdout()), "\n")
	for _, l := range lines[max(0, len(lines)-12):] {
		b.note("%s", l)
	}
	if err != nil {
		b.note("%v", err)
	}
	b.figure(err == nil, "gobag demo under qemu-aarch64", "exit 0", "%s after %.0f s", outcome(err), time.Since(begin).Seconds())
	return nil
}

func outcome(err error) string {
	if err != nil {
		return firstLine(err.Error())
	}
	return "exit 0"
}

// children are the parts of this program that run as processes of their own inside a network namespace.
var children = map[string]func(args []string) error{
	"clock-child":   clockChild,
	"mutated-child": mutatedChild,
	"flood-child":   floodChild,
	"crowd-child":   crowdChild,
}

// startChild runs this program again in the network.
func startChild(n *lab.Net, name string, args ...string) (*lab.Proc, error) {
	command, err := self(append([]string{name}, args...)...)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return n.Start(nil, command...)
}
