package recorder

import (
	"os"
	"path"
	"strconv"
	"strings"
)

// memoryLimit returns the bytes of memory this process may use; 0 unknown.
func memoryLimit() int64 { return memoryLimitIn("/") }

// memoryLimitIn is memoryLimit for the proc and sys trees below root.
func memoryLimitIn(root string) int64 {
	limit := totalMemory(root)
	for _, file := range cgroupFiles(root) {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		// "max" in version 2 and a number near 2^63 in version 1 mean no limit.
		n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		if err == nil && n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// totalMemory reads the size of RAM from /proc/meminfo.
func totalMemory(root string) int64 {
	b, err := os.ReadFile(path.Join(root, "proc/meminfo"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}

// cgroupFiles returns the files that may hold a memory limit of this process: of its control group and of every group
// above, in versions 1 and 2. In a container the path in /proc/self/cgroup may not exist below the mount; the root of
// the mount is then the container's own group.
func cgroupFiles(root string) []string {
	b, err := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	var files []string
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		var mount, file string
		switch {
		case f[0] == "0" && f[1] == "":
			mount, file = "sys/fs/cgroup", "memory.max"
		case f[1] == "memory":
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := path.Clean("/" + f[2]); ; dir = path.Dir(dir) {
			files = append(files, path.Join(root, mount, dir, file))
			if dir == "/" {
				break
			}
		}
	}
	return files
}
