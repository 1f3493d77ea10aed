package wire

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// datagram is a UDP datagram of a capture.
type datagram struct {
	src, dst netip.AddrPort
	data     []byte
	cut      bool // the capture lacks its last bytes
}

// readPcap reads the UDP datagrams of a classic little-endian pcap file with Ethernet frames and IPv4.
func readPcap(t testing.TB, path string) (out []datagram) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	le, be := binary.LittleEndian, binary.BigEndian
	if len(b) < 24 || le.Uint32(b) != 0xa1b2c3d4 || le.Uint32(b[20:]) != 1 {
		t.Fatalf("%s: not a little-endian pcap of Ethernet frames", path)
	}
	for b = b[24:]; len(b) >= 16; {
		n, whole := int(le.Uint32(b[8:])), int(le.Uint32(b[12:]))
		if n > whole || n > len(b)-16 {
			t.Fatalf("%s: packet of %d bytes, %d captured", path, whole, n)
		}
		frame := b[16 : 16+n]
		b = b[16+n:]
		if n < 14+20+8 || be.Uint16(frame[12:]) != 0x0800 || frame[14+9] != 17 {
			continue
		}
		ip := frame[14:]
		if be.Uint16(ip[6:])&0x3fff != 0 {
			t.Fatalf("%s: IP fragments", path)
		}
		udp := ip[int(ip[0]&15)*4:]
		port := func(addr, udp []byte) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(addr)), be.Uint16(udp))
		}
		out = append(out, datagram{port(ip[12:16], udp), port(ip[16:20], udp[2:]), udp[8:min(len(udp), int(be.Uint16(udp[4:])))], n < whole})
	}
	return out
}

// sharedDir is where the full set of captures is: GOBAG_SHARED, or ../shared beside the module. Tests that need it are
// skipped without.
func sharedDir(t testing.TB) string {
	dir := os.Getenv("GOBAG_SHARED")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			if root == filepath.Dir(root) {
				t.Skip("module root not found")
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(filepath.Dir(root), "shared")
	}
	dir = filepath.Join(dir, "fixtures")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("shared fixtures are absent: %v", err)
	}
	return dir
}
