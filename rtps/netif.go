package rtps

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// netif is a network interface with its IPv4 addresses.
type netif struct {
	name     string
	index    int
	mtu      int
	loopback bool
	addrs    []netip.Prefix
}

// listInterfaces returns the interfaces that are up and have an IPv4 address, loopback last. With names given, only those
// that match one by name or address; a name that matches nothing is an error.
func listInterfaces(names []string) ([]netif, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list interfaces: %w", err)
	}
	var ifs []netif
	found := make([]bool, len(names))
	for _, i := range all {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // gone meanwhile
		}
		n := netif{name: i.Name, index: i.Index, mtu: i.MTU, loopback: i.Flags&net.FlagLoopback != 0}
		wanted := len(names) == 0
		if k := slices.Index(names, i.Name); k >= 0 {
			wanted, found[k] = true, true
		}
		for _, a := range addrs {
			ipn, ok := a.(*net.IPNet)
			if !ok || ipn.IP.To4() == nil {
				continue
			}
			ip, _ := netip.AddrFromSlice(ipn.IP.To4())
			ones, _ := ipn.Mask.Size()
			if k := slices.Index(names, ip.String()); k >= 0 {
				wanted, found[k] = true, true
			}
			n.addrs = append(n.addrs, netip.PrefixFrom(ip, ones))
		}
		if wanted && len(n.addrs) > 0 {
			ifs = append(ifs, n)
		}
	}
	for k, ok := range found {
		if !ok {
			return nil, fmt.Errorf("interface %q: no interface of that name or address is up", names[k])
		}
	}
	slices.SortStableFunc(ifs, func(a, b netif) int { return b2i(a.loopback) - b2i(b.loopback) })
	return ifs, nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// sameInterfaces reports whether nothing changed.
func sameInterfaces(a, b []netif) bool {
	return slices.EqualFunc(a, b, func(x, y netif) bool {
		return x.name == y.name && x.index == y.index && slices.Equal(x.addrs, y.addrs)
	})
}
