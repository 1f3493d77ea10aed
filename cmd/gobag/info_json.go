package main

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
)

// The JSON of `info --json`. Numbers are integers: nanoseconds, bytes, counts; only rates in Hz are not. Keys are only ever added.
type (
	jsonInfo struct {
		StorageID      string            `json:"storage_identifier"`
		Version        int               `json:"metadata_version"`
		Messages       uint64            `json:"message_count"`
		Start          *int64            `json:"start_ns"` // null: no messages
		End            *int64            `json:"end_ns"`
		Duration       int64             `json:"duration_ns"`
		Size           int64             `json:"bag_size"`
		Distro         string            `json:"ros_distro"`
		Compression    string            `json:"compression"`
		CutOff         bool              `json:"cut_off"`
		StillRecording bool              `json:"still_recording"`
		Topics         []jsonTopic       `json:"topics"`
		Files          []jsonFile        `json:"files"`
		ClockSteps     []jsonStep        `json:"clock_steps"`
		SimJumps       []jsonStep        `json:"sim_jumps"`
		Overloads      []bag.Overload    `json:"overloads"`
		CustomData     map[string]string `json:"custom_data"`
		Warnings       []string          `json:"warnings"`
	}
	jsonTopic struct {
		Name     string    `json:"name"`
		Type     string    `json:"type"`
		Count    uint64    `json:"count"`
		Format   string    `json:"serialization_format"`
		TypeHash string    `json:"type_hash"`
		QoS      []jsonQoS `json:"qos"`
		Lost     *jsonLost `json:"lost"`            // null: the bag does not say
		Flow     *jsonFlow `json:"flow"`            // null: the bag does not say, or has too few messages to tell
		Bytes    *int64    `json:"bytes,omitempty"` // with --verbose
		Largest  *int64    `json:"largest_message,omitempty"`
		Writers  int       `json:"writers"`
	}
	jsonLost struct {
		Wire           uint64 `json:"wire"`
		Queue          uint64 `json:"queue"`
		Storage        uint64 `json:"storage"`
		UnknownWriters int    `json:"unknown_writers"`
		Received       uint64 `json:"received"`
		Skipped        uint64 `json:"skipped"` // was not to be recorded
		Deleted        uint64 `json:"deleted"` // with the oldest files
	}
	jsonFlow struct { // how evenly messages were received
		Rate   float64 `json:"rate_hz"`
		Jitter int64   `json:"jitter_ns"`
		Gap    int64   `json:"gap_ns"`
		GapAt  int64   `json:"gap_at_ns"`
	}
	jsonQoS struct {
		History     string `json:"history"`
		Depth       int    `json:"depth"`
		Reliability string `json:"reliability"`
		Durability  string `json:"durability"`
		Deadline    *int64 `json:"deadline_ns"` // null: infinite
		Lifespan    *int64 `json:"lifespan_ns"`
		Liveliness  string `json:"liveliness"`
		Lease       *int64 `json:"liveliness_lease_duration_ns"`
		Avoid       bool   `json:"avoid_ros_namespace_conventions"`
	}
	jsonFile struct {
		Path     string `json:"path"`
		Size     int64  `json:"size"`
		Messages uint64 `json:"message_count"`
		Start    *int64 `json:"start_ns"`
		End      *int64 `json:"end_ns"`
		Duration int64  `json:"duration_ns"`
		Format   string `json:"format"`
		CutOff   bool   `json:"cut_off"`
	}
	jsonStep struct {
		Monotonic int64 `json:"monotonic_ns"`
		Before    int64 `json:"before_ns"`
		After     int64 `json:"after_ns"`
	}
)

func infoJSON(r *bag.Reader, sizes map[plugin.TopicID]topicSize, o infoOptions) (string, error) {
	info := r.Info()
	j := jsonInfo{StorageID: info.StorageID, Version: r.Metadata().Version, Messages: info.Messages, Duration: int64(info.Duration), Size: info.Size, Distro: info.ROSDistro,
		Compression: info.Compression, CutOff: info.CutOff, StillRecording: info.StillRecording, Topics: []jsonTopic{}, Files: []jsonFile{},
		ClockSteps: jsonSteps(info.ClockSteps), SimJumps: jsonSteps(info.SimJumps), Overloads: info.Overloads, CustomData: info.CustomData, Warnings: info.Warnings}
	j.Start, j.End = ends(info.Messages, info.Start, info.End)
	if j.CustomData == nil {
		j.CustomData = map[string]string{}
	}
	if j.Warnings == nil {
		j.Warnings = []string{}
	}
	g := group(info.Topics, o.sort)
	ordered := append(append([]bag.TopicInfo{}, g.topics...), g.services...)
	for _, t := range info.Topics {
		if kind, _, _ := classify(t.Name); kind == kindAction {
			ordered = append(ordered, t)
		}
	}
	for _, t := range ordered {
		j.Topics = append(j.Topics, topicJSON(t, sizes))
	}
	for _, f := range info.Files {
		jf := jsonFile{Path: f.Path, Size: f.Size, Messages: f.Messages, Duration: int64(f.Duration), Format: f.Format, CutOff: f.CutOff}
		jf.Start, jf.End = ends(f.Messages, f.Start, f.End)
		j.Files = append(j.Files, jf)
	}
	if j.Overloads == nil {
		j.Overloads = []bag.Overload{}
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(j)
	return b.String(), err
}

func topicJSON(t bag.TopicInfo, sizes map[plugin.TopicID]topicSize) jsonTopic {
	jt := jsonTopic{Name: t.Name, Type: t.Type, Count: t.Count, Format: t.SerializationFormat, TypeHash: t.TypeHash, QoS: []jsonQoS{}, Writers: len(t.Sources)}
	for _, p := range t.QoS {
		q := rosQoS(p)
		jt.QoS = append(jt.QoS, jsonQoS{History: q.History.String(), Depth: q.Depth, Reliability: q.Reliability.String(), Durability: q.Durability.String(),
			Deadline: finite(q.Deadline), Lifespan: finite(q.Lifespan), Liveliness: q.Liveliness.String(), Lease: finite(q.LivelinessLeaseDuration),
			Avoid: q.AvoidROSNamespaceConventions})
	}
	if l := t.Ledger; l != nil {
		jt.Lost = &jsonLost{l.Lost.Wire, l.Lost.Queue, l.Lost.Storage, l.UnknownWriters, l.Received, l.Skipped, l.Deleted}
		if l.Gap > 0 {
			jt.Flow = &jsonFlow{l.Rate, l.Jitter, l.Gap, l.GapAt}
		}
	}
	if sizes != nil {
		s := sizes[t.ID]
		jt.Bytes, jt.Largest = &s.Bytes, &s.Largest
	}
	return jt
}

func jsonSteps(steps []bag.ClockStep) []jsonStep {
	out := []jsonStep{}
	for _, s := range steps {
		out = append(out, jsonStep{int64(s.Monotonic), s.Before, s.After})
	}
	return out
}

// ends are start and end, or nulls where there is no message.
func ends(messages uint64, start, end int64) (*int64, *int64) {
	if messages == 0 {
		return nil, nil
	}
	return &start, &end
}

// finite is a duration in nanoseconds, null when it is infinite or not given.
func finite(d time.Duration) *int64 {
	if d == 0 || d == ros.Infinite {
		return nil
	}
	n := int64(d)
	return &n
}
