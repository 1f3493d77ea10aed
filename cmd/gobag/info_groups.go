package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// topicGroups are the topics of a bag as rosbag2 lists them: topics, services by their events, actions by their parts.
type topicGroups struct {
	topics   []bag.TopicInfo
	services []bag.TopicInfo
	actions  []action
	messages uint64 // of topics
}

// action is an action by its five hidden names.
type action struct {
	name  string
	typ   string
	parts map[string]uint64 // messages by part, see actionParts
}

func group(topics []bag.TopicInfo, by string) topicGroups {
	var g topicGroups
	byName := map[string]int{}
	for _, t := range topics {
		switch kind, owner, part := classify(t.Name); kind {
		case kindTopic:
			g.topics = append(g.topics, t)
			g.messages += t.Count
		case kindService:
			g.services = append(g.services, t)
		case kindAction:
			i, ok := byName[owner]
			if !ok {
				i = len(g.actions)
				byName[owner] = i
				g.actions = append(g.actions, action{name: owner, parts: map[string]uint64{}})
			}
			g.actions[i].parts[part] += t.Count
			if typ := actionType(t.Type); typ != "" {
				g.actions[i].typ = typ
			}
		}
	}
	order := func(ts []bag.TopicInfo) {
		sort.SliceStable(ts, func(i, j int) bool {
			a, b := &ts[i], &ts[j]
			switch {
			case by == "type" && a.Type != b.Type:
				return a.Type < b.Type
			case by == "count" && a.Count != b.Count:
				return a.Count < b.Count // ascending, as rosbag2 sorts
			}
			return a.Name < b.Name
		})
	}
	order(g.topics)
	order(g.services)
	sort.Slice(g.actions, func(i, j int) bool { return g.actions[i].name < g.actions[j].name })
	return g
}

// actionType is the action's type from that of one of its parts: "a/action/F_FeedbackMessage" is "a/action/F".
func actionType(part string) string {
	for _, suffix := range []string{"_FeedbackMessage", "_SendGoal_Event", "_GetResult_Event"} {
		if t, ok := strings.CutSuffix(part, suffix); ok {
			return t
		}
	}
	return ""
}

// serviceType is the service's type from that of its events: "a/srv/S_Event" is "a/srv/S".
func serviceType(event string) string { return strings.TrimSuffix(event, "_Event") }

func (g topicGroups) topicLines(sizes map[plugin.TopicID]topicSize, verbose bool) []string {
	var lines []string
	for _, t := range g.topics {
		line := fmt.Sprintf("Topic: %s | Type: %s | Count: %d | Serialization Format: %s", printable(t.Name), printable(t.Type), t.Count, printable(t.SerializationFormat))
		if verbose {
			line += sizeText(sizes[t.ID]) + detailText(t)
		}
		lines = append(lines, line)
	}
	return lines
}

func (g topicGroups) serviceLines(sizes map[plugin.TopicID]topicSize, verbose bool) []string {
	var lines []string
	for _, t := range g.services {
		_, name, _ := classify(t.Name)
		counts, size := "", ""
		if verbose {
			s := sizes[t.ID]
			counts, size = fmt.Sprintf(" | Request Count: %d | Response Count: %d", s.requests(), s.responses()), sizeText(s)
		}
		lines = append(lines, fmt.Sprintf("Service: %s | Type: %s | Event Count: %d%s | Serialization Format: %s%s",
			printable(name), printable(serviceType(t.Type)), t.Count, counts, printable(t.SerializationFormat), size))
	}
	return lines
}

func (g topicGroups) actionLines() []string {
	var lines []string
	for _, a := range g.actions {
		lines = append(lines,
			fmt.Sprintf("Action: %s | Type: %s | Topics: 2 | Service: 3", printable(a.name), printable(a.typ)),
			fmt.Sprintf("  Topic: feedback | Count: %d", a.parts[actionParts[0]]),
			fmt.Sprintf("  Topic: status | Count: %d", a.parts[actionParts[1]]),
			fmt.Sprintf("  Service: send_goal | Event Count: %d", a.parts[actionParts[2]]),
			fmt.Sprintf("  Service: cancel_goal | Event Count: %d", a.parts[actionParts[4]]),
			fmt.Sprintf("  Service: get_result | Event Count: %d", a.parts[actionParts[3]]))
	}
	return lines
}

// sizeText adds rosbag2's size contribution and the mean rate.
func sizeText(s topicSize) string {
	text := fmt.Sprintf(" | Size Contribution: %s", fileSize(s.Bytes))
	if span := float64(s.Last) - float64(s.First); s.Messages > 1 && span > 0 {
		return text + fmt.Sprintf(" | Rate: %.2f Hz", float64(s.Messages-1)/span*1e9)
	}
	return text + " | Rate: -"
}

// detailText adds type hash and quality of service.
func detailText(t bag.TopicInfo) string {
	var b strings.Builder
	if t.TypeHash != "" {
		b.WriteString(" | Type Hash: " + printable(t.TypeHash))
	}
	var seen []string
	for _, q := range t.QoS {
		text := rosQoS(q).String()
		if !slices.Contains(seen, text) {
			seen = append(seen, text)
		}
	}
	if len(seen) > 0 {
		b.WriteString(" | QoS: " + strings.Join(seen, "; "))
	}
	if len(t.Sources) > 0 {
		fmt.Fprintf(&b, " | Writers: %d", len(t.Sources))
	}
	return b.String()
}

// rosQoS: the numbers are the same on both sides.
func rosQoS(q bag.QoSProfile) ros.QoS {
	return ros.QoS{History: ros.History(q.History), Depth: q.Depth, Reliability: ros.Reliability(q.Reliability),
		Durability: ros.Durability(q.Durability), Deadline: q.Deadline, Lifespan: q.Lifespan, Liveliness: ros.Liveliness(q.Liveliness),
		LivelinessLeaseDuration: q.LivelinessLeaseDuration, AvoidROSNamespaceConventions: q.AvoidROSNamespaceConventions}
}
