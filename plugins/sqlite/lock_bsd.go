//go:build unix && !linux

package sqlite

import "syscall"

const getLock = syscall.F_GETLK
