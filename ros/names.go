package ros

import (
	"fmt"
	"strings"
)

// maxNameLength is ROS 2's limit for a topic name: 255 bytes of a DDS topic name less 8 for prefix and suffix
// (rmw/validate_full_topic_name.h).
const maxNameLength = 247

// ValidName reports what is wrong with a fully qualified topic name, nil if nothing: it starts with a slash, its tokens
// are letters, digits and underscores, none is empty or starts with a digit, and it has at most 247 bytes (ROS 2's
// rmw_validate_full_topic_name). The error wraps ErrName.
func ValidName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("topic name %q: %w: it is empty", name, ErrName)
	case name[0] != '/':
		return fmt.Errorf("topic name %s: %w: it must start with a slash", quote(name), ErrName)
	case len(name) > maxNameLength:
		return fmt.Errorf("topic name %s: %w: %d bytes are more than %d", quote(name), ErrName, len(name), maxNameLength)
	}
	if problem := checkTokens(name[1:]); problem != "" {
		return fmt.Errorf("topic name %s: %w: %s", quote(name), ErrName, problem)
	}
	return nil
}

// ValidType reports what is wrong with a type name, nil if nothing. "pkg/msg/T" and "pkg/srv/S_Event" are ROS 2's form,
// "pkg/T" is ROS 1's. The error wraps ErrName.
func ValidType(name string) error {
	problem := checkTokens(name)
	switch {
	case name == "":
		problem = "it is empty"
	case problem == "" && !strings.Contains(name, "/"):
		problem = "the package is missing, as in std_msgs/msg/String"
	case len(name) > maxNameLength:
		problem = fmt.Sprintf("%d bytes are more than %d", len(name), maxNameLength)
	}
	if problem != "" {
		return fmt.Errorf("type name %s: %w: %s", quote(name), ErrName, problem)
	}
	return nil
}

// Hidden reports whether a token of the name starts with an underscore. Tools list such topics on request only; the
// topics of actions and service introspection are among them.
func Hidden(name string) bool {
	return strings.HasPrefix(name, "_") || strings.Contains(name, "/_")
}

// IsServiceEvent reports whether a topic carries the introspection events of a service: /s/_service_event of type
// pkg/srv/S_Event (for services within actions pkg/action/…_Event).
func IsServiceEvent(name, typ string) bool {
	return strings.HasSuffix(name, serviceEventSuffix) && len(name) > len(serviceEventSuffix) &&
		strings.HasSuffix(typ, "_Event") && (strings.Contains(typ, "/srv/") || strings.Contains(typ, "/action/"))
}

// ServiceOf returns the service whose events a topic carries, "" if the name is not of that form.
func ServiceOf(name string) string {
	service, ok := strings.CutSuffix(name, serviceEventSuffix)
	if !ok {
		return ""
	}
	return service
}

// ActionOf returns the action that a topic belongs to, "" if it belongs to none: /x/_action/feedback,
// /x/_action/status and the introspection events of the action's services, /x/_action/send_goal/_service_event.
func ActionOf(name string) string {
	action, part, ok := strings.Cut(name, "/_action/")
	if !ok || action == "" {
		return ""
	}
	switch part {
	case "feedback", "status", "send_goal" + serviceEventSuffix, "cancel_goal" + serviceEventSuffix, "get_result" + serviceEventSuffix:
		return action
	}
	return ""
}

// ServiceEventTopic is the topic that carries the introspection events of a service.
func ServiceEventTopic(service string) string { return service + serviceEventSuffix }

// ActionTopics are the topics that belong to an action: feedback, status, and the introspection events of its services
// send_goal, cancel_goal and get_result.
func ActionTopics(action string) []string {
	prefix := action + "/_action/"
	return []string{prefix + "feedback", prefix + "status", ServiceEventTopic(prefix + "send_goal"),
		ServiceEventTopic(prefix + "cancel_goal"), ServiceEventTopic(prefix + "get_result")}
}

const serviceEventSuffix = "/_service_event"

// checkTokens says what is wrong with tokens separated by slashes, "" if nothing.
func checkTokens(s string) string {
	for token := range strings.SplitSeq(s, "/") {
		if token == "" {
			return "a part between slashes is empty"
		}
		if token[0] >= '0' && token[0] <= '9' {
			return fmt.Sprintf("%s starts with a digit", quote(token))
		}
		for i := 0; i < len(token); i++ {
			if !isNameByte(token[i]) {
				return fmt.Sprintf("%q is not a letter, digit or underscore", token[i:i+1])
			}
		}
	}
	return ""
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// quote is %q, shortened: names can come from the network.
func quote(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%q…", s[:80])
	}
	return fmt.Sprintf("%q", s)
}
