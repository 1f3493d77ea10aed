package bag

import (
	"reflect"
	"testing"
	"time"
)

func TestLedger(t *testing.T) {
	l := Ledger{Topics: map[string]TopicLedger{
		"/b": {Received: 10, Recorded: 7, Lost: Lost{Wire: 1, Queue: 2, Storage: 1}, UnknownWriters: 1},
		"/a": {Received: 1, Recorded: 1},
	}}
	const want = `{"topics":{"/a":{"received":1,"recorded":1,"lost":{"wire":0,"queue":0,"storage":0},"unknown_writers":0},` +
		`"/b":{"received":10,"recorded":7,"lost":{"wire":1,"queue":2,"storage":1},"unknown_writers":1}}}`
	if got := l.Encode(); got != want {
		t.Fatal(got)
	}
	got, err := ParseLedger(want)
	if err != nil || !reflect.DeepEqual(got, l) || got.Topics["/b"].Lost.Total() != 4 {
		t.Fatal(got, err)
	}
	if _, err := ParseLedger("{"); err == nil {
		t.Fatal("no error")
	}
}

func TestClockSteps(t *testing.T) {
	steps := []ClockStep{{Monotonic: time.Second, Before: 5, After: -5}}
	const want = `[{"monotonic":1000000000,"before":5,"after":-5}]`
	if got := EncodeClockSteps(steps); got != want {
		t.Fatal(got)
	}
	got, err := ParseClockSteps(want)
	if err != nil || !reflect.DeepEqual(got, steps) {
		t.Fatal(got, err)
	}
	if EncodeClockSteps(nil) != "[]" {
		t.Fatal(EncodeClockSteps(nil))
	}
}
