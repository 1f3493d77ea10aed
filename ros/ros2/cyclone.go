package ros2

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

const maxCycloneFile = 1 << 20 // bytes of one configuration

// cyclone reads CYCLONEDDS_URI: a comma-separated list of files ("file:///etc/c.xml" or a bare path) and of XML
// elements written out (Cyclone DDS, docs/manual/config). Later entries win over earlier ones; lists add up.
func (e *environment) cyclone(o *Options, domainSet bool) error {
	uri := e.getenv("CYCLONEDDS_URI")
	if uri == "" {
		return nil
	}
	if rmw := e.getenv("RMW_IMPLEMENTATION"); strings.HasPrefix(rmw, "rmw_fastrtps") {
		e.warn("CYCLONEDDS_URI is ignored because of RMW_IMPLEMENTATION=%s", rmw)
		return nil
	}
	elements, err := e.cycloneElements(uri)
	if err != nil {
		return fmt.Errorf("environment CYCLONEDDS_URI: %w", err)
	}
	c := cycloneConfig{environment: e, options: o, external: -1}
	if !domainSet {
		c.chooseDomain(elements)
	}
	for _, el := range elements {
		if c.applies(el) {
			for _, section := range el.children {
				c.section(section)
			}
		}
	}
	c.finish()
	return nil
}

// cycloneElements reads everything that the list names and returns its Domain elements. What stands outside of one
// counts as belonging to every domain.
func (e *environment) cycloneElements(uri string) (domains []*element, err error) {
	for {
		uri = strings.TrimLeft(uri, ", \t\r\n")
		if uri == "" {
			return domains, nil
		}
		var text string
		if uri[0] == '<' {
			n, err := elementEnd(uri)
			if err != nil {
				return nil, err
			}
			text, uri = uri[:n], uri[n:]
		} else {
			var name string
			name, uri, _ = strings.Cut(uri, ",")
			if text, err = e.cycloneFile(strings.TrimSpace(name)); err != nil {
				return nil, err
			}
		}
		root, err := parseElements(text)
		if err != nil {
			return nil, err
		}
		loose := &element{name: "domain"}
		for _, el := range flatten(root, "cyclonedds") {
			if el.is("domain") {
				domains = append(domains, el)
			} else {
				loose.children = append(loose.children, el)
			}
		}
		if len(loose.children) > 0 {
			domains = append(domains, loose)
		}
	}
}

// flatten replaces elements of a name by their children.
func flatten(list []*element, name string) (out []*element) {
	for _, el := range list {
		if el.is(name) {
			out = append(out, el.children...)
		} else {
			out = append(out, el)
		}
	}
	return out
}

func (e *environment) cycloneFile(name string) (string, error) {
	if rest, ok := strings.CutPrefix(name, "file://"); ok {
		name = rest
	}
	name = e.expand(name)
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCycloneFile+1))
	if err == nil && len(b) > maxCycloneFile {
		err = fmt.Errorf("more than %d bytes", maxCycloneFile)
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return string(b), nil
}

// expand replaces $NAME, ${NAME} and ${NAME:-default} by the environment's values.
func (e *environment) expand(s string) string {
	if !strings.Contains(s, "$") {
		return s
	}
	return os.Expand(s, func(name string) string {
		name, fallback, _ := strings.Cut(name, ":-")
		if v := e.getenv(name); v != "" {
			return v
		}
		return fallback
	})
}

// cycloneConfig applies elements to options.
type cycloneConfig struct {
	*environment
	options *Options

	interfaces  int // NetworkInterface elements seen
	noMulticast int // of them without multicast
	external    int // domain on the wire where it differs from the id; -1 none
}

// chooseDomain takes the domain from the first element that names one: this is what a Cyclone DDS program does that asks
// for no particular domain.
func (c *cycloneConfig) chooseDomain(domains []*element) {
	for _, el := range domains {
		id := c.domainID(el)
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil || n > maxDomain {
			continue
		}
		if c.options.Domain = int(n); n != 0 {
			c.warn("CYCLONEDDS_URI: domain %d is used, named there and ROS_DOMAIN_ID is not set (ROS nodes use domain 0 then)", n)
		}
		return
	}
}

// domainID is the Id attribute of a Domain element, or its Id element of older versions; "" or "any" is every domain.
func (c *cycloneConfig) domainID(domain *element) string {
	id := domain.attr("id")
	if el := domain.child("id"); el != nil {
		id = el.text
	}
	return strings.TrimSpace(c.expand(id))
}

// applies reports whether a Domain element is about our domain.
func (c *cycloneConfig) applies(domain *element) bool {
	id := c.domainID(domain)
	if id == "" || strings.EqualFold(id, "any") || strings.EqualFold(id, "default") {
		return true
	}
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil || n > maxDomain {
		c.warn("CYCLONEDDS_URI: Domain id %q: not a number from 0 to %d, ignored", id, maxDomain)
		return false
	}
	return int(n) == c.options.Domain
}

func (c *cycloneConfig) section(section *element) {
	switch {
	case section.is("general"):
		for _, el := range section.children {
			c.general(el)
		}
	case section.is("discovery"):
		for _, el := range section.children {
			c.discovery(el)
		}
	case section.is("tcp"), section.is("ssl"):
		if el := section.child("enable"); el != nil && el.text == "true" {
			c.warn("CYCLONEDDS_URI: %s/Enable: not supported, only UDP over IPv4 is", section.name)
		}
	case section.is("security"), section.is("ddssecurity"):
		c.warn("CYCLONEDDS_URI: %s: DDS Security is not supported; secured participants cannot be received", section.name)
	}
}

func (c *cycloneConfig) general(el *element) {
	text := c.expand(el.text)
	switch {
	case el.is("interfaces"):
		for _, i := range el.children {
			if i.is("networkinterface") {
				c.networkInterface(i)
			}
		}
	case el.is("networkinterfaceaddress"): // before 0.10
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); name != "" && !strings.EqualFold(name, "auto") {
				c.addInterface(name)
			}
		}
	case el.is("allowmulticast"):
		c.options.NoMulticast = !allowsDiscovery(text)
	case el.is("useipv6") && text == "true", el.is("transport") && text != "udp" && text != "default" && text != "":
		c.warn("CYCLONEDDS_URI: General/%s %s: not supported, only UDP over IPv4 is", el.name, text)
	}
}

func (c *cycloneConfig) networkInterface(el *element) {
	name := c.expand(el.attr("name"))
	if name == "" {
		name = c.expand(el.attr("address"))
	}
	if name == "" || el.attr("autodetermine") == "true" { // Cyclone DDS then takes one, we take all
		return
	}
	if el.attr("presence_required") == "false" && !present(name) {
		c.warn("CYCLONEDDS_URI: interface %s does not exist, ignored", name)
		return
	}
	c.interfaces++
	if el.attr("multicast") == "false" || el.attr("allow_multicast") != "" && !allowsDiscovery(el.attr("allow_multicast")) {
		c.noMulticast++
	}
	c.addInterface(name)
}

func (c *cycloneConfig) addInterface(name string) {
	if !slices.Contains(c.options.Interfaces, name) {
		c.options.Interfaces = append(c.options.Interfaces, name)
	}
}

// present reports whether there is an interface of this name or address.
func present(name string) bool {
	if _, err := net.InterfaceByName(name); err == nil {
		return true
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.String() == name {
			return true
		}
	}
	return false
}

// allowsDiscovery reports whether a value of AllowMulticast lets participants announce themselves by multicast: true,
// default, or a list with spdp. Data we always want by unicast.
func allowsDiscovery(value string) bool {
	for part := range strings.SplitSeq(strings.ToLower(value), ",") {
		switch strings.TrimSpace(part) {
		case "true", "default", "spdp":
			return true
		}
	}
	return false
}

func (c *cycloneConfig) discovery(el *element) {
	text := c.expand(el.text)
	switch {
	case el.is("peers"):
		for _, p := range el.children {
			if p.is("peer") {
				c.peer(c.expand(p.attr("address")))
			}
		}
	case el.is("externaldomainid") && text != "" && text != "default":
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n > maxDomain {
			c.warn("CYCLONEDDS_URI: Discovery/ExternalDomainId %q: not a number from 0 to %d, ignored", text, maxDomain)
			return
		}
		c.external = int(n)
	case el.is("tag") && text != "":
		c.warn("CYCLONEDDS_URI: Discovery/Tag %s: participants with a domain tag cannot be received", text)
	case el.is("spdpmulticastaddress") && text != "" && text != "239.255.0.1":
		c.warn("CYCLONEDDS_URI: Discovery/SPDPMulticastAddress %s: not supported, participants are looked for at 239.255.0.1", text)
	case el.is("ports") && len(el.children) > 0:
		c.warn("CYCLONEDDS_URI: Discovery/Ports: not supported, the ports of the DDS specification are used")
	}
}

// peer adds an address of Discovery/Peers: "10.0.0.1", "robot", "10.0.0.1:7410" or "udp/10.0.0.1:7410".
func (c *cycloneConfig) peer(address string) {
	address = strings.TrimSpace(address)
	name, _ := strings.CutPrefix(address, "udp/")
	host := name
	if h, _, err := net.SplitHostPort(name); err == nil {
		host = h
	}
	ip := net.ParseIP(host)
	switch {
	case host == "" || strings.ContainsAny(host, "/[] "):
		c.warn("CYCLONEDDS_URI: peer %q: not a host or IPv4 address, ignored", address)
	case ip != nil && ip.To4() == nil:
		c.warn("CYCLONEDDS_URI: peer %s: IPv6 is not supported, ignored", address)
	case ip != nil && ip.IsMulticast(): // how some spell multicast discovery, which happens anyway
	case !slices.Contains(c.options.Peers, name):
		c.options.Peers = append(c.options.Peers, name)
	}
}

// finish draws the conclusions from all elements.
func (c *cycloneConfig) finish() {
	if c.interfaces > 0 && c.noMulticast == c.interfaces {
		c.options.NoMulticast = true
	}
	if c.external >= 0 && c.external != c.options.Domain {
		c.options.Domain = c.external
		c.warn("CYCLONEDDS_URI: domain %d is used, named in Discovery/ExternalDomainId", c.external)
	}
}
