package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/ros2"
)

// honoured are the variables that decide how gobag joins the network.
var honoured = []string{"ROS_DOMAIN_ID", "ROS_LOCALHOST_ONLY", "ROS_AUTOMATIC_DISCOVERY_RANGE", "ROS_STATIC_PEERS", "RMW_IMPLEMENTATION", "CYCLONEDDS_URI",
	"FASTDDS_BUILTIN_TRANSPORTS", "FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE", "ROS_DISCOVERY_SERVER", "ROS_SECURITY_ENABLE",
	"ROS_SECURITY_STRATEGY", "ROS_SECURITY_KEYSTORE", "ROS_DISTRO", "AMENT_PREFIX_PATH"}

// environment says what is set and what of it is honoured.
func (d *diagnosis) environment(a *app) {
	var set []string
	for _, name := range honoured {
		if v := a.env(name); v != "" {
			set = append(set, name+"="+v)
		}
	}
	if len(set) == 0 {
		d.add(fine, "environment", "", "nothing of ROS or DDS is set: domain 0, every interface")
	}
	for _, text := range set {
		d.add(fine, "environment", "", "%s", text)
	}
	_, warnings, err := ros2.OptionsFromEnv(a.env)
	for _, w := range warnings {
		d.add(hurts, "environment", "", "%s", w)
	}
	if err != nil {
		d.add(prevents, "environment", "", "%v", err)
	}
}

// network joins the domain for a while and looks who is there and what does not fit.
func (d *diagnosis) network(ctx context.Context, a *app, f *doctorFlags) {
	o, _, err := ros2.OptionsFromEnv(a.env)
	if err != nil {
		return // said already
	}
	if f.node.domain >= 0 {
		o.Domain = f.node.domain
	}
	if len(f.node.interfaces) > 0 {
		o.Interfaces = f.node.interfaces
	}
	o.Peers = append(o.Peers, f.node.peers...)
	if f.node.localhost {
		o.Range = ros2.RangeLocalhost
	}
	node, err := ros2.New(o)
	if err != nil {
		d.add(prevents, "network", "", "domain %d cannot be joined: %v", o.Domain, err)
		return
	}
	defer node.Close()
	select {
	case <-time.After(time.Duration(f.listen)):
	case <-ctx.Done():
		return
	}
	st := node.Stats()
	if hint := bufferHint(st.RecvBuffer); hint != "" {
		d.add(hurts, "receive buffer", "", "%s", hint)
	} else if st.RecvBuffer > 0 {
		d.add(fine, "receive buffer", "", "%s", fileSize(int64(st.RecvBuffer)))
	}
	d.participants(o.Domain, node.Peers())
	d.qos(node.Graph().Topics())
}

// participants lists who is on the network.
func (d *diagnosis) participants(domain int, peers []ros2.Peer) {
	if len(peers) == 0 {
		d.add(noted, "participants", "is the domain right (ROS_DOMAIN_ID)? do multicast or --peer reach them?", "nobody was heard in domain %d", domain)
		return
	}
	vendors := map[string]int{}
	for _, p := range peers {
		name := p.Vendor
		if name == "" {
			name = "unknown vendor"
		}
		vendors[name]++
	}
	var text []string
	for name, n := range vendors {
		text = append(text, fmt.Sprintf("%d of %s", n, name))
	}
	slices.Sort(text)
	d.add(fine, "participants", "", "%d in domain %d: %s", len(peers), domain, strings.Join(text, ", "))
	for _, p := range peers {
		who := p.ID
		if len(p.Nodes) > 0 {
			who = strings.Join(p.Nodes, ", ")
		}
		if p.Refused > 0 {
			d.add(hurts, "participant "+who, "", "announces or sends more than one participant may: %s turned away (%s at %s)", plural(p.Refused, "case"), p.Vendor,
				strings.Join(p.Addresses, ", "))
		}
		if p.Reachable {
			continue
		}
		d.add(prevents, "participant "+who, "", "cannot be received (%s): %s", p.Vendor, p.Reason)
	}
}

// maxMismatches is how many pairs are written out.
const maxMismatches = 20

// qos names publishers and subscriptions of others that do not fit one another, and topics with several types.
func (d *diagnosis) qos(topics []ros.TopicInfo) {
	pairs, published := 0, 0
	for _, t := range topics {
		if len(t.Publishers) > 0 {
			published++
		}
		if len(t.Types) > 1 {
			d.add(hurts, "topic "+t.Name, "", "has several types: %s; only the one of most publishers is recorded", strings.Join(t.Types, ", "))
		}
		for _, p := range t.Publishers {
			for _, s := range t.Subscriptions {
				if p.Local || s.Local || p.Topic.Type != s.Topic.Type {
					continue
				}
				if why, ok := ros.Compatible(p.QoS, s.QoS); !ok {
					if pairs++; pairs <= maxMismatches {
						d.add(noted, "topic "+t.Name, "", "%s does not reach %s: %s (gobag receives it all the same)", nodeOf(p), nodeOf(s), why)
					}
				}
			}
		}
	}
	switch {
	case pairs > maxMismatches:
		d.add(noted, "quality of service", "", "%d more pairs do not fit", pairs-maxMismatches)
	case pairs == 0 && published > 0:
		d.add(fine, "quality of service", "", "all publishers and subscriptions of %d topics fit", published)
	}
}

// nodeOf is what to call an endpoint.
func nodeOf(e ros.Endpoint) string {
	if e.Node != "" {
		return e.Node
	}
	return e.ID.String()
}
