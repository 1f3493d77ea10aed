//go:build !linux

// Command accept needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "accept: the peers, namespaces and disks that the checks need are there on Linux only")
	os.Exit(1)
}
