//go:build !linux

package recorder

func memoryLimit() int64 { return 0 }
