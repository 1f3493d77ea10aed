package recorder

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryLimit(t *testing.T) {
	const gib = 1 << 30
	cases := []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing known", nil, 0},
		{"ram", map[string]string{"proc/meminfo": "MemFree: 1 kB\nMemTotal:  2097152 kB\n"}, 2 * gib},
		{"version 2, limit of the own group", map[string]string{
			"proc/meminfo": "MemTotal: 2097152 kB\n", "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "536870912\n", "sys/fs/cgroup/a/memory.max": "max\n"}, gib / 2},
		{"version 2, limit above", map[string]string{
			"proc/meminfo": "MemTotal: 2097152 kB\n", "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "1073741824\n"}, gib},
		{"version 2, container root", map[string]string{
			"proc/meminfo": "MemTotal: 2097152 kB\n", "proc/self/cgroup": "0::/not/mounted\n", "sys/fs/cgroup/memory.max": "1048576\n"}, 1 << 20},
		{"version 1", map[string]string{
			"proc/meminfo": "MemTotal: 2097152 kB\n", "proc/self/cgroup": "3:cpu:/x\n2:memory:/docker/1\n",
			"sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "268435456\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n"}, gib / 4},
		{"garbage", map[string]string{"proc/meminfo": "MemTotal: many kB\n", "proc/self/cgroup": "::\nx\n0::/../../..\n"}, 0},
	}
	for _, c := range cases {
		root := t.TempDir()
		for name, text := range c.files {
			p := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryLimitIn(root); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if got := DefaultCacheSize(); got < minDefaultCache || got > maxDefaultCache {
		t.Errorf("default cache of this machine: %d", got)
	}
}
