package msg

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// ParseError says where an interface file is wrong.
type ParseError struct {
	File string // "foo_msgs/msg/Bar.msg"
	Line int    // from 1; 0 = the file as a whole
	Err  error
}

func (e *ParseError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("parse %s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("parse %s:%d: %v", e.File, e.Line, e.Err)
}

func (e *ParseError) Unwrap() error { return e.Err }

// Parse reads one interface file. Its name is package, folder and file, as below share/ of an installation
// ("std_srvs/srv/SetBool.srv"); the extension chooses the language. A file that is wrong gives a *ParseError.
//
// Where rosidl refuses a file for reasons of style (lower-case field names, indented lines) it is accepted.
func Parse(name string, data []byte) (*File, error) {
	ext := path.Ext(name)
	n, err := splitName(strings.TrimSuffix(name, ext))
	if err != nil {
		return nil, fmt.Errorf("parse %.100q: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, &ParseError{File: name, Err: fmt.Errorf("%d bytes, more than the limit of %d", len(data), maxFile)}
	}
	f := &File{Name: name}
	switch {
	case ext == ".idl":
		err = f.parseIDL(n, string(data))
	case ext != "" && ext == n.extension():
		err = f.parseROS(n, string(data))
	default:
		err = fmt.Errorf("extension %q in folder %q: want .msg, .srv or .action in the folder of that name, or .idl", ext, n.folder)
	}
	if err != nil {
		var pe *ParseError
		if !errors.As(err, &pe) {
			pe = &ParseError{Err: err}
		}
		pe.File = name
		return nil, pe
	}
	return f, nil
}

// lineError is filled in with the file by Parse.
func lineError(line int, format string, args ...any) error {
	return &ParseError{Line: line, Err: fmt.Errorf(format, args...)}
}

// check refuses what no code generator could work with.
func (m *Message) check() error {
	if len(m.Fields) > maxFields {
		return fmt.Errorf("%s has %d fields, more than the limit of %d", m.Name, len(m.Fields), maxFields)
	}
	seen := make(map[string]bool, len(m.Fields)+len(m.Constants))
	for i := range m.Fields {
		if seen[m.Fields[i].Name] {
			return fmt.Errorf("%s has two fields named %s", m.Name, m.Fields[i].Name)
		}
		seen[m.Fields[i].Name] = true
	}
	for i := range m.Constants {
		if seen[m.Constants[i].Name] {
			return fmt.Errorf("%s has two members named %s", m.Name, m.Constants[i].Name)
		}
		seen[m.Constants[i].Name] = true
	}
	return nil
}

func nested(name string) Type { return Type{Base: Nested, Name: name} }

func nestedAtMostOne(name string) Type {
	return Type{Base: Nested, Name: name, Array: Bounded, Capacity: 1}
}

// service returns the types of service name, itself first: _Request, _Response, _Event.
func service(name string, request, response Message) []Message {
	request.Name, response.Name = name+"_Request", name+"_Response"
	return []Message{
		{Name: name, Fields: []Field{
			{Name: "request_message", Type: nested(request.Name)},
			{Name: "response_message", Type: nested(response.Name)},
			{Name: "event_message", Type: nested(name + "_Event")}}},
		request,
		response,
		{Name: name + "_Event", Fields: []Field{
			{Name: "info", Type: nested("service_msgs/msg/ServiceEventInfo")},
			{Name: "request", Type: nestedAtMostOne(request.Name)},
			{Name: "response", Type: nestedAtMostOne(response.Name)}}},
	}
}

// action returns the types of action name, itself first: _Goal, _Result, _Feedback, the services _SendGoal and
// _GetResult, and _FeedbackMessage.
func action(name string, goal, result, feedback Message) []Message {
	goal.Name, result.Name, feedback.Name = name+"_Goal", name+"_Result", name+"_Feedback"
	goalID := Field{Name: "goal_id", Type: nested("unique_identifier_msgs/msg/UUID")}
	all := []Message{
		{Name: name, Fields: []Field{
			{Name: "goal", Type: nested(goal.Name)},
			{Name: "result", Type: nested(result.Name)},
			{Name: "feedback", Type: nested(feedback.Name)},
			{Name: "send_goal_service", Type: nested(name + "_SendGoal")},
			{Name: "get_result_service", Type: nested(name + "_GetResult")},
			{Name: "feedback_message", Type: nested(name + "_FeedbackMessage")}}},
		goal, result, feedback,
	}
	all = append(all, service(name+"_SendGoal",
		Message{Fields: []Field{goalID, {Name: "goal", Type: nested(goal.Name)}}},
		Message{Fields: []Field{{Name: "accepted", Type: Type{Base: Bool}}, {Name: "stamp", Type: nested("builtin_interfaces/msg/Time")}}})...)
	all = append(all, service(name+"_GetResult",
		Message{Fields: []Field{goalID}},
		Message{Fields: []Field{{Name: "status", Type: Type{Base: Int8}}, {Name: "result", Type: nested(result.Name)}}})...)
	return append(all, Message{Name: name + "_FeedbackMessage",
		Fields: []Field{goalID, {Name: "feedback", Type: nested(feedback.Name)}}})
}
