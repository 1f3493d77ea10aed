package ros2

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gobag/gobag/rtps"
)

const (
	maxDomain     = 232 // above it the ports do not fit 16 bits
	maxStaticPeer = 255 // bytes of one of ROS_STATIC_PEERS (rmw's limit of 256 with the NUL)
)

// OptionsFromEnv reads the environment of a ROS machine; pass os.Getenv. It follows rcl's init.c and the two DDS
// middlewares of ROS 2: ROS_DOMAIN_ID, ROS_LOCALHOST_ONLY, ROS_AUTOMATIC_DISCOVERY_RANGE, ROS_STATIC_PEERS, and of
// CYCLONEDDS_URI the interfaces, peers, multicast and domain.
//
// What cannot be honoured is an error where nodes with the same environment could not be received at all (another
// transport, enforced security, a discovery server), else a warning that names the variable.
func OptionsFromEnv(getenv func(string) string) (o Options, warnings []string, err error) {
	e := environment{getenv: getenv}
	if err := e.refused(); err != nil {
		return Options{}, e.warnings, err
	}
	e.reported()
	domain, domainSet, err := e.domain()
	if err != nil {
		return Options{}, e.warnings, err
	}
	o.Domain = domain
	e.discovery(&o)
	if err := e.cyclone(&o, domainSet); err != nil {
		return Options{}, e.warnings, err
	}
	return o, e.warnings, nil
}

// environment collects warnings while variables are read.
type environment struct {
	getenv   func(string) string
	warnings []string
}

func (e *environment) warn(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf(format, args...))
}

// fast reports whether nodes with this environment run on Fast DDS, which is ROS 2's default.
func (e *environment) fast() bool {
	rmw := e.getenv("RMW_IMPLEMENTATION")
	return rmw == "" || strings.HasPrefix(rmw, "rmw_fastrtps")
}

// refused is an error when what runs in this environment cannot be received.
func (e *environment) refused() error {
	rmw := e.getenv("RMW_IMPLEMENTATION")
	switch {
	case strings.HasPrefix(rmw, "rmw_zenoh"):
		return fmt.Errorf("environment RMW_IMPLEMENTATION=%s: nodes that speak Zenoh cannot be received, only DDS; unset it if yours speak DDS", rmw)
	case strings.HasPrefix(rmw, "rmw_iceoryx"):
		return fmt.Errorf("environment RMW_IMPLEMENTATION=%s: nodes that use shared memory only cannot be received; unset it if yours speak DDS", rmw)
	}
	if e.getenv("ROS_SECURITY_ENABLE") == "true" {
		if e.getenv("ROS_SECURITY_STRATEGY") == "Enforce" {
			return fmt.Errorf("environment ROS_SECURITY_STRATEGY=Enforce: nodes in a security enclave (%s) cannot be received; DDS Security is not supported", e.enclave())
		}
		e.warn("ROS_SECURITY_ENABLE=true: nodes that run in a security enclave (%s) cannot be received; DDS Security is not supported", e.enclave())
	}
	if server := e.getenv("ROS_DISCOVERY_SERVER"); server != "" && e.fast() {
		return fmt.Errorf("environment ROS_DISCOVERY_SERVER=%s: nodes that are discovered through a server cannot be found; unset it if yours use plain discovery", server)
	}
	return nil
}

func (e *environment) enclave() string {
	if name := e.getenv("ROS_SECURITY_ENCLAVE_OVERRIDE"); name != "" {
		return name
	}
	if dir := e.getenv("ROS_SECURITY_KEYSTORE"); dir != "" {
		return "keystore " + dir
	}
	return "no keystore named"
}

// reported warns of what some nodes with this environment may do.
func (e *environment) reported() {
	switch rmw := e.getenv("RMW_IMPLEMENTATION"); rmw {
	case "", "rmw_cyclonedds_cpp", "rmw_fastrtps_cpp", "rmw_fastrtps_dynamic_cpp", "rmw_connextdds":
	default:
		e.warn("RMW_IMPLEMENTATION=%s: not known here; its nodes are received if they speak DDS-RTPS over UDP", rmw)
	}
	if !e.fast() {
		return
	}
	transports, _, _ := strings.Cut(e.getenv("FASTDDS_BUILTIN_TRANSPORTS"), "?")
	switch transports {
	case "", "DEFAULT", "DEFAULTv6", "UDPv4", "NONE":
	case "SHM":
		e.warn("FASTDDS_BUILTIN_TRANSPORTS=SHM: nodes with this setting use shared memory only and cannot be received; use DEFAULT or UDPv4")
	case "LARGE_DATA", "LARGE_DATAv6":
		e.warn("FASTDDS_BUILTIN_TRANSPORTS=%s: nodes with this setting send data over TCP and shared memory only and cannot be received; use DEFAULT or UDPv4", transports)
	default:
		e.warn("FASTDDS_BUILTIN_TRANSPORTS=%s: nodes with this setting may not be received, only UDPv4 is spoken", transports)
	}
	for _, name := range []string{"FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE"} {
		if file := e.getenv(name); file != "" {
			e.warn("%s=%s: not read; pass interfaces and peers yourself if that file sets any", name, file)
		}
	}
}

func (e *environment) domain() (domain int, set bool, err error) {
	s := e.getenv("ROS_DOMAIN_ID")
	if s == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > maxDomain {
		return 0, false, fmt.Errorf("environment ROS_DOMAIN_ID=%s: not a number from 0 to %d", s, maxDomain)
	}
	return int(n), true, nil
}

// discovery sets range and peers (rcl_get_discovery_automatic_range, rcl_get_discovery_static_peers).
func (e *environment) discovery(o *Options) {
	if strings.HasPrefix(e.getenv("ROS_LOCALHOST_ONLY"), "1") {
		o.Range = rtps.RangeLocalhost
		if e.getenv("ROS_STATIC_PEERS") != "" {
			e.warn("ROS_STATIC_PEERS is ignored because of ROS_LOCALHOST_ONLY=1, as ROS does")
		}
		return
	}
	switch v := e.getenv("ROS_AUTOMATIC_DISCOVERY_RANGE"); v {
	case "", "SUBNET":
		o.Range = rtps.RangeSubnet
	case "LOCALHOST":
		o.Range = rtps.RangeLocalhost
	case "OFF":
		o.Range = rtps.RangeOff
		return
	case "SYSTEM_DEFAULT":
		o.Range = rtps.RangeSystemDefault
		return
	default:
		o.Range = rtps.RangeLocalhost
		e.warn("ROS_AUTOMATIC_DISCOVERY_RANGE=%s: not one of SUBNET, LOCALHOST, OFF, SYSTEM_DEFAULT; LOCALHOST is used, as ROS does", v)
	}
	for peer := range strings.SplitSeq(e.getenv("ROS_STATIC_PEERS"), ";") {
		switch {
		case peer == "":
		case len(peer) > maxStaticPeer:
			e.warn("ROS_STATIC_PEERS: %.20s…: longer than %d bytes, ignored", peer, maxStaticPeer)
		default:
			o.Peers = append(o.Peers, strings.TrimSpace(peer))
		}
	}
}
