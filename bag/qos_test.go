package bag

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestQoSRoundTrip(t *testing.T) {
	profiles := []QoSProfile{
		DefaultQoSProfile(),
		{History: 2, Reliability: 2, Durability: 1, Deadline: 1500 * time.Millisecond, Lifespan: 1, Liveliness: 3,
			LivelinessLeaseDuration: time.Hour, AvoidROSNamespaceConventions: true},
		{History: 3, Depth: math.MaxInt32, Reliability: 4, Durability: 4, Liveliness: 5},
		{Liveliness: 2},
		{},
	}
	for _, names := range []bool{true, false} {
		text := EncodeQoS(profiles, names)
		got, err := DecodeQoS(text)
		if err != nil || !reflect.DeepEqual(got, profiles) {
			t.Errorf("names %v: %v\n%+v\n%s", names, err, got, text)
		}
		if names != strings.Contains(text, "keep_last") {
			t.Error(text)
		}
		other, err := NormalizeQoS(text, !names)
		if err != nil || other != EncodeQoS(profiles, !names) {
			t.Error(err, other)
		}
	}
	if EncodeQoS(nil, true) != "" {
		t.Error("no profile is not the empty text")
	}
	for _, text := range []string{"", "[]", "~"} {
		if ps, err := DecodeQoS(text); err != nil || len(ps) != 0 {
			t.Errorf("%q: %v %v", text, ps, err)
		}
	}
	if got := EncodeQoS([]QoSProfile{{History: 9, Liveliness: -1}}, true); !strings.Contains(got, "history: unknown") {
		t.Error(got)
	}
}

func TestQoSInfinity(t *testing.T) {
	for _, c := range []struct {
		sec, nsec string
		want      time.Duration
	}{
		{"9223372036", "854775807", Infinite},  // rosbag2
		{"2147483647", "4294967295", Infinite}, // foxy on Fast DDS
		{"2147483647", "2147483647", Infinite}, // foxy on Connext
		{"0", "9223372036854775807", Infinite}, // foxy on Cyclone
		{"9223372037", "0", Infinite},          // more than there is
		{"18446744073709551615", "18446744073709551615", Infinite},
		{"9223372036", "854775806", Infinite - 1},
		{"2147483647", "0", math.MaxInt32 * time.Second},
		{"0", "4294967295", math.MaxUint32},
		{"0", "0", 0},
		{"10", "0", 10 * time.Second},
	} {
		text := strings.Replace(EncodeQoS([]QoSProfile{{Lifespan: 1}}, false), "lifespan:\n    sec: 0\n    nsec: 1",
			"lifespan:\n    sec: "+c.sec+"\n    nsec: "+c.nsec, 1)
		ps, err := DecodeQoS(text)
		if err != nil || len(ps) != 1 || ps[0].Lifespan != c.want {
			t.Errorf("%s, %s: %v %v", c.sec, c.nsec, ps, err)
		}
	}
	if text := EncodeQoS([]QoSProfile{{Deadline: Infinite}}, false); !strings.Contains(text, "deadline:\n    sec: 9223372036\n    nsec: 854775807\n") {
		t.Error(text)
	}
}

func TestQoSErrors(t *testing.T) {
	good := EncodeQoS([]QoSProfile{DefaultQoSProfile()}, true)
	for _, c := range []struct{ old, new, want string }{
		{"history: keep_last", "history: keep_some", `line 1: [0].history: "keep_some" is not one of system_default, keep_last, keep_all, unknown (0 to 3)`},
		{"history: keep_last", "history: 4", `"4" is not one of`},
		{"depth: 10", "depth: -1", `line 2: [0].depth: "-1" is not a whole number`},
		{"depth: 10", "other: 1", `[0].depth: the key is missing`},
		{"sec: 9223372036", "sec: -1", `[0].deadline.sec: "-1"`},
		{"conventions: false", "conventions: maybe", `"maybe" is neither true nor false`},
		{"- history", "history", ""},
	} {
		_, err := DecodeQoS(strings.Replace(good, c.old, c.new, 1))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.new, err)
		}
	}
	for _, text := range []string{"history: keep_last\ndepth: 10", "- depth: 3", "- 1", "[[]]", "{", "x"} {
		if ps, err := DecodeQoS(text); err == nil {
			t.Errorf("%q: %+v", text, ps)
		}
	}
}

func TestQoSOverrides(t *testing.T) {
	want := DefaultQoSProfile()
	want.History, want.Depth, want.Reliability, want.Lifespan = 2, 5, 2, 1500*time.Millisecond
	for _, text := range []string{
		"/cam:\n  history: keep_all\n  depth: 5\n  reliability: best_effort\n  lifespan: {sec: 1, nsec: 500000000}\n/other: {}\n/third:\n",
		"- topic: /cam\n  qos: {history: keep_all, depth: 5, reliability: best_effort, lifespan: {sec: 1, nsec: 500000000}}\n- {topic: /other, qos: {}}\n- {topic: /third, qos: }",
	} {
		got, err := ParseQoSOverrides([]byte(text))
		if err != nil || len(got) != 3 || got["/cam"] != want || got["/other"] != DefaultQoSProfile() || got["/third"] != DefaultQoSProfile() {
			t.Errorf("%v %+v", err, got)
		}
	}
	for _, text := range []string{"", " \n", "{}", "[]", "~"} {
		if got, err := ParseQoSOverrides([]byte(text)); err != nil || len(got) != 0 {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"/a:\n  depth: -1":                           `line 2: /a.depth: "-1" is not a whole number`,
		"/a:\n  reliabilty: reliable":                `line 2: /a.reliabilty: unknown key (there is: history, depth, reliability, `,
		"/a:\n  durability: transient":               `line 2: /a.durability: "transient" is not one of system_default, transient_local,`,
		"/a:\n  deadline: {sec: 1}":                  `line 2: /a.deadline.nsec: the key is missing`,
		"/a:\n  deadline: {sec: -1, nsec: 0}":        `line 2: /a.deadline.sec: "-1"`,
		"/a:\n  deadline: 1":                         `line 2: /a.deadline: a map is wanted, not "1"`,
		"/a: {}\n/b: {}\n/a: {}":                     `line 3: /a: the topic is given twice`,
		"/a: {depth: 1, depth: 1}":                   `line 1: /a.depth: the key is given twice`,
		"/a: keep_all":                               `line 1: /a: a map is wanted`,
		"- topic: /a\n  qos: {depth: x}":             `line 2: /a.depth: "x"`,
		"- topic: /a\n  quos: {depth: 1}":            `line 2: [0].quos: unknown key (there is: topic, qos)`,
		"- qos: {depth: 1}":                          `the key topic is missing`,
		"- topic: /a":                                `[0].qos: the key is missing`,
		"- {topic: /a, qos: }\n- {topic: /a, qos: }": `/a: the topic is given twice`,
		"just text":                                  `a map is wanted`,
	} {
		_, err := ParseQoSOverrides([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestQoSOverridesFixture(t *testing.T) {
	p := shared(t, "fixtures/rosbag2/era/jazzy_0.26.10/rosbag2_transport_resources/qos_profile_overrides.yaml")
	got, err := ParseQoSOverrides([]byte(readFile(t, p)))
	want := QoSProfile{History: 1, Depth: 10, Reliability: 1, Durability: 2}
	if err != nil || len(got) != 1 || got["/overrided_topic_qos"] != want {
		t.Fatal(got, err)
	}
}

func FuzzDecodeQoS(f *testing.F) {
	f.Add(EncodeQoS([]QoSProfile{DefaultQoSProfile(), {}}, true))
	f.Add(EncodeQoS([]QoSProfile{DefaultQoSProfile()}, false))
	f.Add("/a: {depth: 1}")
	f.Fuzz(func(t *testing.T, text string) {
		ParseQoSOverrides([]byte(text))
		ps, err := DecodeQoS(text)
		if err != nil {
			return
		}
		for _, names := range []bool{true, false} {
			if got, err := DecodeQoS(EncodeQoS(ps, names)); err != nil || len(got) != len(ps) || len(ps) > 0 && !reflect.DeepEqual(got, ps) {
				t.Fatalf("%v: %+v, %+v", err, ps, got)
			}
		}
	})
}
