//go:build linux

package lab

import (
	"slices"
	"strings"
	"time"
)

// WatchNodes starts a node of the vendor that looks at the others and says its own name, "/lab/watcher:16" (or ":24", a node
// of Humble), and waits until it is there.
func (n *Net) WatchNodes(v Vendor, name string) (*Proc, error) {
	args, err := v.command("nodes")
	if err != nil {
		return nil, err
	}
	p, err := n.Start(nil, append(args, "--node", name)...)
	if err != nil {
		return nil, err
	}
	if _, err := p.Await("ready", 1, 20*time.Second); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// Node is a ROS node as another one sees it: the names on the wire of what it reads and writes, sorted. An endpoint that the
// node claims and that is not there has the name "?".
type Node struct {
	Name          string
	Participant   string // the prefix of its ids, in hexadecimal
	Reads, Writes []string
}

// Nodes lists the nodes that a watcher sees, as `ros2 node list` and `ros2 node info` do: those of live participants with an
// enclave, by the last sample of each on ros_discovery_info. The map is by name.
func Nodes(watcher *Proc) map[string]Node {
	participants, topics := map[string]bool{}, map[string]string{}
	said := map[string][]any{}
	for _, e := range watcher.Events("participant") {
		alive, _ := e["alive"].(bool)
		participants[prefixOf(e.Text("id"))] = alive && strings.HasPrefix(e.Text("user_data"), "enclave=")
	}
	for _, e := range watcher.Events("endpoint") {
		if alive, _ := e["alive"].(bool); alive {
			topics[e.Text("id")] = e.Text("topic")
		} else {
			delete(topics, e.Text("id"))
		}
	}
	for _, e := range watcher.Events("nodes") {
		said[prefixOf(e.Text("id"))], _ = e["nodes"].([]any)
	}
	all := map[string]Node{}
	for prefix, nodes := range said {
		if !participants[prefix] {
			continue
		}
		for _, v := range nodes {
			m, _ := v.(map[string]any)
			name, _ := m["name"].(string)
			all[name] = Node{Name: name, Participant: prefix, Reads: namesOf(m["readers"], topics), Writes: namesOf(m["writers"], topics)}
		}
	}
	return all
}

// prefixOf is the part of an id that all endpoints of a participant share.
func prefixOf(id string) string { return id[:min(len(id), 24)] }

func namesOf(ids any, topics map[string]string) []string {
	list, _ := ids.([]any)
	var names []string
	for _, v := range list {
		id, _ := v.(string)
		name, ok := topics[id]
		if !ok {
			name = "?"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
