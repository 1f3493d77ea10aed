package ros2

import (
	"github.com/gobag/gobag/rtps"
	"github.com/gobag/gobag/rtps/wire"
)

// vendorName is what people call an implementation; "" where nobody knows.
func vendorName(v wire.VendorID) string {
	if v == wire.VendorUnknown {
		return ""
	}
	return v.String()
}

// reason explains why a participant cannot be reached, with what its vendor's users have probably set.
func reason(p rtps.Peer) string {
	r := p.Reason
	if r == "" {
		r = "no address"
	}
	if p.Vendor == wire.VendorFast && !p.Secured {
		r += "; with Fast DDS this comes of FASTDDS_BUILTIN_TRANSPORTS=SHM or LARGE_DATA, use DEFAULT or UDPv4 there"
	}
	return r
}
