package control

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/recorder"
	"github.com/gobag/gobag/ros"
)

// Return codes of rosbag2's recorder.
const (
	codeOK           = 0
	codeNotRecording = 1
	codeBadMode      = 2
	codeFailed       = 4
)

// ServeRecorder offers a recorder's services below the node's name, "/rosbag2_recorder".
func ServeRecorder(node ros.Node, nodeName string, r *recorder.Recorder, remote Remote, log *slog.Logger) (*Servers, error) {
	return serve(node, nodeName, recorderServices(r), remote, log)
}

func recorderServices(r *recorder.Recorder) []service {
	return []service{
		{name: "pause", typ: "Pause", handle: func(*fields, *cdr.Encoder) { r.Pause() }},
		{name: "resume", typ: "Resume", handle: func(f *fields, e *cdr.Encoder) { at(f, e, func() error { r.Resume(); return nil }) }},
		{name: "is_paused", typ: "IsPaused", handle: func(_ *fields, e *cdr.Encoder) { e.Bool(r.Paused()) }},
		{name: "split_bagfile", typ: "SplitBagfile", handle: func(f *fields, e *cdr.Encoder) { at(f, e, r.Split) }},
		{name: "snapshot", typ: "Snapshot", handle: func(_ *fields, e *cdr.Encoder) { e.Bool(r.TakeSnapshot("service", false) == nil) }},
		{name: "is_discovery_running", typ: "IsDiscoveryRunning", handle: func(_ *fields, e *cdr.Encoder) { e.Bool(r.Discovering()) }},
		{name: "start_discovery", typ: "StartDiscovery", full: true, handle: func(_ *fields, e *cdr.Encoder) {
			r.StartDiscovery()
			result(e, codeOK, nil)
		}},
		{name: "stop_discovery", typ: "StopDiscovery", full: true, handle: func(_ *fields, e *cdr.Encoder) {
			r.StopDiscovery()
			result(e, codeOK, nil)
		}},
		{name: "stop", typ: "Stop", full: true, handle: func(_ *fields, e *cdr.Encoder) {
			r.Stop()
			result(e, codeOK, nil)
		}},
		{name: "record", typ: "Record", full: true, handle: func(_ *fields, e *cdr.Encoder) {
			result(e, codeNotRecording, errors.New("it is recording already; a further bag is begun by split, or by another gobag record"))
		}},
	}
}

// at reads when something is to happen (Lyrical's split_time or resume_time, its mode and a topic) and makes it happen: now,
// or at a time of this node.
func at(f *fields, e *cdr.Encoder, do func() error) {
	var when int64
	var mode int32
	if f.has(12) {
		when, mode = f.time(), f.d.Int32()
	}
	switch {
	case when != 0 && mode != 0:
		result(e, codeBadMode, fmt.Errorf("mode %d is not supported: a time is one of this node (mode 0)", mode))
		return
	case when > time.Now().UnixNano():
		time.AfterFunc(time.Until(time.Unix(0, when)), func() { _ = do() }) // the caller has its answer
		result(e, codeOK, nil)
		return
	}
	err := do()
	switch {
	case err == nil:
		result(e, codeOK, nil)
	case errors.Is(err, recorder.ErrNotRecording):
		result(e, codeNotRecording, err)
	default:
		result(e, codeFailed, err)
	}
}

// RecorderCommands are a recorder's commands for a Socket.
func RecorderCommands(r *recorder.Recorder) Commands {
	return Commands{
		"pause":  {Help: "stop recording, keep everything open", Run: func([]string) (any, error) { r.Pause(); return paused(true), nil }},
		"resume": {Help: "go on recording", Run: func([]string) (any, error) { r.Resume(); return paused(false), nil }},
		"toggle": {Help: "pause or resume", Run: func([]string) (any, error) { return paused(r.Toggle()), nil }},
		"split":  {Help: "end the file and begin a new one", Run: func([]string) (any, error) { return nil, r.Split() }},
		"snapshot": {Help: "write what is in memory into a bag: snapshot [protect] [REASON]", Args: 2, Run: func(args []string) (any, error) {
			protect := len(args) > 0 && args[0] == "protect"
			if protect {
				args = args[1:]
			}
			reason := "ctl"
			if len(args) > 0 {
				reason = args[0]
			}
			return nil, r.TakeSnapshot(reason, protect)
		}},
		"stop":            {Help: "end the recording in order", Run: func([]string) (any, error) { r.Stop(); return nil, nil }},
		"start-discovery": {Help: "look for topics again", Run: func([]string) (any, error) { r.StartDiscovery(); return nil, nil }},
		"stop-discovery":  {Help: "subscribe to no further topics", Run: func([]string) (any, error) { r.StopDiscovery(); return nil, nil }},
		"status": {Help: "what it is doing", Run: func([]string) (any, error) {
			s := r.Snapshot()
			return map[string]any{"state": s.State.String(), "paused": s.Paused, "output": r.Output(), "file": s.File, "files": s.Files,
				"elapsed_s": s.Elapsed.Seconds(), "messages": s.Messages, "bytes": s.Bytes, "received": s.Received,
				"lost_wire": s.Lost.Wire, "lost_queue": s.Lost.Queue, "lost_storage": s.Lost.Storage, "rate_hz": s.Rate, "bytes_per_s": s.ByteRate,
				"disk_bytes": s.DiskBytes, "free_bytes": s.FreeBytes, "snapshots": s.Taken, "topics": len(s.Topics), "healthy": s.Healthy,
				"discovering": r.Discovering()}, nil
		}},
	}
}

func paused(p bool) map[string]any { return map[string]any{"paused": p} }
