package bag

import (
	"encoding/json"
	"fmt"
	"time"
)

// Keys of custom_data that gobag writes.
const (
	KeyState      = "gobag.state"       // StateRecording or StateClosed
	KeyVersion    = "gobag.version"     // version of gobag that wrote the bag
	KeyLedger     = "gobag.ledger"      // JSON of a Ledger
	KeyClockSteps = "gobag.clock_steps" // JSON of a []ClockStep
	KeySimJumps   = "gobag.sim_jumps"   // JSON of a []ClockStep: /clock went backwards
	KeyOverloads  = "gobag.overloads"   // JSON of a []Overload
	KeyRepeats    = "gobag.repeats"     // JSON of a []FileRepeats
	KeyTrigger    = "gobag.trigger"     // of a snapshot: why it was taken
)

// Values of KeyState.
const (
	StateRecording = "recording" // from Create on; what stays so was cut off
	StateClosed    = "closed"
)

// Ledger says per topic name what arrived, what was recorded and what was lost where.
type Ledger struct {
	Topics map[string]TopicLedger `json:"topics"`
}

// TopicLedger counts messages of one topic.
type TopicLedger struct {
	Received       uint64 `json:"received"` // handed over by the transport
	Recorded       uint64 `json:"recorded"` // written to the storage
	Lost           Lost   `json:"lost"`
	UnknownWriters int    `json:"unknown_writers"` // best-effort writers whose losses before the first and after the last sample seen are unknown

	// Skipped came and was not to be recorded: throttled, while paused, before the first /clock, or out of the ring of snapshot
	// mode. Received is the sum of Recorded, Skipped, Lost.Queue and Lost.Storage.
	Skipped uint64 `json:"skipped,omitempty"`
	Deleted uint64 `json:"deleted,omitempty"` // of Recorded: deleted again with its file (MaxBagFiles, MaxTotalSize)

	// How evenly the recorded messages came, by the receive stamps. 0 where there are too few to tell.
	Rate   float64 `json:"rate_hz,omitempty"`   // mean
	Jitter int64   `json:"jitter_ns,omitempty"` // standard deviation of the time between two messages
	Gap    int64   `json:"gap_ns,omitempty"`    // the longest time between two
	GapAt  int64   `json:"gap_at_ns,omitempty"` // stamp of the message before it
}

// Overload is a time in which the queue was full and messages were dropped.
type Overload struct {
	From    time.Duration `json:"from_ns"` // since the start of the recording, monotonic
	To      time.Duration `json:"to_ns"`
	Dropped uint64        `json:"dropped"`
	Worst   string        `json:"worst"` // the topic that lost most
}

// EncodeOverloads returns the text that custom_data carries under KeyOverloads.
func EncodeOverloads(o []Overload) string {
	if o == nil {
		o = []Overload{}
	}
	return encodeJSON(o)
}

// ParseOverloads reads the text under KeyOverloads.
func ParseOverloads(text string) ([]Overload, error) {
	var o []Overload
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return nil, fmt.Errorf("parse %s: %w", KeyOverloads, err)
	}
	return o, nil
}

// Lost counts messages lost, by reason.
type Lost struct {
	Wire    uint64 `json:"wire"`    // gaps in a writer's sequence numbers, and what it said is gone
	Queue   uint64 `json:"queue"`   // dropped because the queue was full
	Storage uint64 `json:"storage"` // refused by the storage, or in a failed write
}

// Total returns the sum over the reasons.
func (l Lost) Total() uint64 { return l.Wire + l.Queue + l.Storage }

// ClockStep is a jump of the wall clock during a recording.
type ClockStep struct {
	Monotonic time.Duration `json:"monotonic"` // since the start of the recording, ns
	Before    int64         `json:"before"`    // wall clock as it would have gone on, ns since the Unix epoch
	After     int64         `json:"after"`     // wall clock as it was, ns since the Unix epoch
}

// Encode returns the text that custom_data carries under KeyLedger. Topics are ordered by name.
func (l Ledger) Encode() string { return encodeJSON(l) }

// ParseLedger reads the text under KeyLedger.
func ParseLedger(text string) (Ledger, error) {
	var l Ledger
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return Ledger{}, fmt.Errorf("parse %s: %w", KeyLedger, err)
	}
	return l, nil
}

// EncodeClockSteps returns the text that custom_data carries under KeyClockSteps.
func EncodeClockSteps(steps []ClockStep) string {
	if steps == nil {
		steps = []ClockStep{}
	}
	return encodeJSON(steps)
}

// ParseClockSteps reads the text under KeyClockSteps.
func ParseClockSteps(text string) ([]ClockStep, error) {
	var steps []ClockStep
	if err := json.Unmarshal([]byte(text), &steps); err != nil {
		return nil, fmt.Errorf("parse %s: %w", KeyClockSteps, err)
	}
	return steps, nil
}

func encodeJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings to plain numbers always encode
	}
	return string(b)
}
