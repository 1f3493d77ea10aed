//go:build linux && (amd64 || arm64)

package leveldb

import (
	"os"
	"syscall"
)

// localFileSystems are the types (statfs(2)) of file systems whose files are mapped. Those of other machines are not: a
// mapped file that is cut off there ends the process that reads it.
var localFileSystems = []int64{0xef53 /* ext */, 0x58465342 /* xfs */, 0x9123683e /* btrfs */, 0xf2f52010 /* f2fs */, 0x01021994 /* tmpfs */, 0x794c7630 /* overlay */, 0x2fc12fc1 /* zfs */}

// mapFile maps the first n bytes of a file; nil where that is not to be had. Who writes into them changes nothing on disk.
func mapFile(f *os.File, n int64) []byte {
	c, err := f.SyscallConn()
	if err != nil || int64(int(n)) != n {
		return nil
	}
	var b []byte
	_ = c.Control(func(fd uintptr) { // without a mapping the file is read
		var st syscall.Statfs_t
		if syscall.Fstatfs(int(fd), &st) != nil {
			return
		}
		for _, t := range localFileSystems {
			if st.Type == t {
				b, _ = syscall.Mmap(int(fd), 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE)
				return
			}
		}
	})
	return b
}

func unmap(b []byte) { _ = syscall.Munmap(b) } // b is whole
