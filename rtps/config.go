package rtps

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Range says how far discovery reaches; the values of ROS_AUTOMATIC_DISCOVERY_RANGE.
type Range uint8

// Ranges.
const (
	RangeSubnet        Range = iota // multicast, loopback probes and Peers
	RangeLocalhost                  // this host and Peers, without multicast off the host
	RangeOff                        // nobody: no announcement is sent and none is answered
	RangeSystemDefault              // like RangeSubnet, but Peers are ignored
)

func (r Range) String() string {
	switch r {
	case RangeSubnet:
		return "subnet"
	case RangeLocalhost:
		return "localhost"
	case RangeOff:
		return "off"
	case RangeSystemDefault:
		return "system default"
	}
	return fmt.Sprintf("range %d", uint8(r))
}

// Config describes a participant. The zero value joins domain 0 on every interface.
type Config struct {
	// Domain is the DDS domain, 0 to 232. On Linux 102 to 214 collide with ephemeral ports.
	Domain int

	// Range says how far discovery reaches.
	Range Range

	// Peers are announced to by unicast as well: addresses or names, "10.0.0.2", "robot.local", optionally with the port of
	// the peer's discovery socket (":7410"). Without a port the ports of the first 32 participants of a host are tried.
	Peers []string

	// Interfaces are names or IPv4 addresses of the interfaces to use; empty means every one that is up and has an IPv4
	// address, loopback included.
	Interfaces []string

	// NoMulticast joins no group and announces by unicast only.
	NoMulticast bool

	// DataMulticast also receives data by multicast, from writers that send so to several participants at once (Cyclone DDS
	// does, to 239.255.0.1 and port 7401 of domain 0). It saves such a writer a datagram for each participant more, but
	// everything that anybody sends so on a used interface arrives here, wanted or not.
	DataMulticast bool

	// Name is the participant's ENTITY_NAME, default "/".
	Name string

	// UserData is the participant's USER_DATA, default "enclave=/;" (ROS 2 lists no participant without it).
	UserData []byte

	// Lease is how long peers keep us without hearing anything, default 10 s, at least 1 s. It is Cyclone DDS's: a
	// publisher that keeps all waits no longer for us, should we be stopped, than for one of its own.
	Lease time.Duration

	// RecvBuffer is the receive buffer asked for the data socket in bytes, default 16 MiB. The kernel may give less:
	// Stats.RecvBuffer. Where it gives much less, readers are spread over further sockets for the peers on this host.
	RecvBuffer int

	// MaxReassembly bounds the bytes held by incomplete and out-of-order samples of the whole participant, default 64 MiB.
	// A larger sample cannot be received and counts as lost.
	MaxReassembly int64

	// Now is the wall clock for receive stamps, in nanoseconds since the Unix epoch; default time.Now. Everything else
	// runs on the monotonic clock.
	Now func() int64

	// Transport replaces the UDP sockets, for tests. Range, Peers, Interfaces, NoMulticast and RecvBuffer are its business
	// then.
	Transport Transport

	lanes int // tests: so many, however large the receive buffer is; 0 = as the buffer asks for

	// Logger gets what is worth telling a user; nil is silent.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "/"
	}
	if c.UserData == nil {
		c.UserData = []byte("enclave=/;")
	}
	if c.Lease == 0 {
		c.Lease = 10 * time.Second
	}
	if c.RecvBuffer == 0 {
		c.RecvBuffer = 16 << 20
	}
	if c.MaxReassembly == 0 {
		c.MaxReassembly = 64 << 20
	}
	if c.Now == nil {
		c.Now = func() int64 { return time.Now().UnixNano() }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns all problems joined, nil if there are none.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("rtps config: "+format, args...)) }
	if c.Domain < 0 || c.Domain > 232 {
		bad("domain %d: must be 0 to 232", c.Domain)
	}
	if c.Range > RangeSystemDefault {
		bad("range %d: unknown", c.Range)
	}
	for _, p := range c.Peers {
		if _, _, err := splitPeer(p); err != nil {
			bad("peer %q: %w", p, err)
		}
	}
	if len(c.Name) > maxName {
		bad("name of %d bytes: at most %d", len(c.Name), maxName)
	}
	if len(c.UserData) > maxUserData {
		bad("user data of %d bytes: at most %d", len(c.UserData), maxUserData)
	}
	if c.Lease != 0 && c.Lease < time.Second {
		bad("lease %v: at least 1s", c.Lease)
	}
	if c.DataMulticast && c.NoMulticast {
		bad("data by multicast, and no multicast: one of them")
	}
	if c.RecvBuffer < 0 || c.MaxReassembly < 0 {
		bad("negative buffer size")
	}
	return errors.Join(errs...)
}

// What we put into discovery data must fit one datagram with room to spare.
const (
	maxName     = 1024
	maxUserData = 8192
)

// splitPeer separates host and port of a static peer; port 0 means none was given.
func splitPeer(s string) (host string, port uint16, err error) {
	if s == "" || strings.ContainsAny(s, " \t/") {
		return "", 0, errors.New("not a host")
	}
	if a, err := netip.ParseAddr(s); err == nil {
		if !a.Unmap().Is4() {
			return "", 0, errors.New("not an IPv4 address")
		}
		return s, 0, nil
	}
	if !strings.Contains(s, ":") {
		return s, 0, nil
	}
	host, ps, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(ps, 10, 16)
	if err != nil || n == 0 || host == "" {
		return "", 0, errors.New("port must be 1 to 65535 and the host not empty")
	}
	return host, uint16(n), nil
}
