package ros_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/ros"
)

// profile is DefaultQoS with changes.
func profile(change func(*ros.QoS)) ros.QoS {
	q := ros.DefaultQoS()
	change(&q)
	return q
}

var (
	sensor  = profile(func(q *ros.QoS) { q.Depth, q.Reliability = 5, ros.BestEffort })
	latched = profile(func(q *ros.QoS) { q.Depth, q.Durability = 1, ros.TransientLocal })
)

func TestPolicyNames(t *testing.T) {
	for n := range 5 {
		if s := ros.Reliability(n).String(); must(ros.ParseReliability(s)) != ros.Reliability(n) {
			t.Errorf("reliability %d is called %q and not read back", n, s)
		}
		if s := ros.Durability(n).String(); must(ros.ParseDurability(s)) != ros.Durability(n) {
			t.Errorf("durability %d is called %q and not read back", n, s)
		}
		if s := ros.Liveliness(n).String(); must(ros.ParseLiveliness(s)) != ros.Liveliness(n) {
			t.Errorf("liveliness %d is called %q and not read back", n, s)
		}
		if s := ros.History(n % 4).String(); must(ros.ParseHistory(s)) != ros.History(n%4) {
			t.Errorf("history %d is called %q and not read back", n%4, s)
		}
	}
	// The names of rosbag2's files.
	got := []string{ros.KeepLast.String(), ros.KeepAll.String(), ros.Reliable.String(), ros.BestEffort.String(), ros.TransientLocal.String(),
		ros.Volatile.String(), ros.Automatic.String(), ros.ManualByTopic.String(), ros.HistoryUnknown.String(), ros.ReliabilitySystemDefault.String()}
	want := []string{"keep_last", "keep_all", "reliable", "best_effort", "transient_local", "volatile", "automatic", "manual_by_topic", "unknown", "system_default"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("names are %q, want %q", got, want)
	}
	if r, err := ros.ParseReliability("2"); err != nil || r != ros.BestEffort {
		t.Errorf("ParseReliability of a number: %v, %v", r, err)
	}
	for _, s := range []string{"", "Reliable", "5", "-1", "256", strings.Repeat("x", 1000)} {
		_, err := ros.ParseReliability(s)
		if err == nil || !strings.Contains(err.Error(), "best_effort") || len(err.Error()) > 300 {
			t.Errorf("ParseReliability(%.20q): %v, want an error that lists the names", s, err)
		}
	}
	if s := ros.Reliability(77).String(); s != "77" {
		t.Errorf("an unknown number is called %q", s)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestQoSString(t *testing.T) {
	q := profile(func(q *ros.QoS) {
		q.Deadline, q.Liveliness, q.LivelinessLeaseDuration = time.Second, ros.ManualByTopic, 2*time.Second
	})
	for want, q := range map[string]ros.QoS{
		"reliable, volatile, keep_last 10":                                         ros.DefaultQoS(),
		"reliable, volatile, keep_last 10, deadline 1s, manual_by_topic, lease 2s": q,
		"system_default, system_default, system_default":                           {},
	} {
		if got := q.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}

func TestNormalized(t *testing.T) {
	if got := (ros.QoS{}).Normalized(); got != ros.DefaultQoS() {
		t.Errorf("the zero profile is %+v", got)
	}
	unknown := ros.QoS{History: ros.HistoryUnknown, Reliability: ros.ReliabilityUnknown, Durability: ros.DurabilityUnknown, Liveliness: ros.LivelinessUnknown, Deadline: -1}
	if got := unknown.Normalized(); got != ros.DefaultQoS() {
		t.Errorf("the unknown profile is %+v", got)
	}
	for _, q := range []ros.QoS{ros.DefaultQoS(), ros.BestAvailableQoS(), sensor, latched} {
		if got := q.Normalized(); got != q {
			t.Errorf("%v became %v", q, got)
		}
	}
}

func TestCompatible(t *testing.T) {
	with := func(base ros.QoS, change func(*ros.QoS)) ros.QoS { change(&base); return base }
	def := ros.DefaultQoS()
	cases := []struct {
		name               string
		offered, requested ros.QoS
		policy             string // "" compatible
	}{
		{"same", def, def, ""},
		{"stronger offer", latched, sensor, ""},
		{"best effort for reliable", sensor, def, "reliability"},
		{"volatile for transient local", def, latched, "durability"},
		{"best available takes all", sensor, ros.BestAvailableQoS(), ""},
		{"best available takes latched", latched, ros.BestAvailableQoS(), ""},
		{"history does not matter", with(def, func(q *ros.QoS) { q.Depth = 1 }), with(def, func(q *ros.QoS) { q.History = ros.KeepAll }), ""},
		{"lifespan does not matter", with(def, func(q *ros.QoS) { q.Lifespan = time.Second }), def, ""},
		{"shorter deadline offered", with(def, func(q *ros.QoS) { q.Deadline = time.Second }), def, ""},
		{"deadline asked for", def, with(def, func(q *ros.QoS) { q.Deadline = time.Second }), "deadline"},
		{"liveliness asked for", def, with(def, func(q *ros.QoS) { q.Liveliness = ros.ManualByTopic }), "liveliness"},
		{"lease asked for", def, with(def, func(q *ros.QoS) { q.LivelinessLeaseDuration = time.Second }), "liveliness lease"},
		{"system defaults", ros.QoS{}, ros.QoS{}, ""},
	}
	for _, c := range cases {
		reason, ok := ros.Compatible(c.offered, c.requested)
		if ok != (c.policy == "") || !ok && !strings.HasPrefix(reason, c.policy+": ") {
			t.Errorf("%s: %v %q, want policy %q", c.name, ok, reason, c.policy)
		}
	}
}

func TestAdaptQoS(t *testing.T) {
	depth := func(q ros.QoS, n int) ros.QoS { q.Depth = n; return q }
	keepAll := func(q ros.QoS) ros.QoS { q.History, q.Depth = ros.KeepAll, 0; return q }
	def := ros.DefaultQoS()
	limits := profile(func(q *ros.QoS) {
		q.Deadline, q.Lifespan, q.Liveliness, q.LivelinessLeaseDuration = 1, 2, ros.ManualByTopic, 3
	})
	cases := []struct {
		name   string
		offers []ros.QoS
		want   ros.QoS
		mixed  []string // starts
	}{
		{"none", nil, def, nil},
		{"reliable", []ros.QoS{def, depth(def, 7)}, def, nil},
		{"sensor", []ros.QoS{sensor}, sensor, nil},
		{"latched", []ros.QoS{latched, latched}, keepAll(latched), nil},
		{"mixed reliability", []ros.QoS{def, sensor}, depth(sensor, 10), []string{"reliability: 1 of 2"}},
		{"mixed durability", []ros.QoS{latched, def, latched}, def, []string{"durability: 2 of 3"}},
		{"mixed both", []ros.QoS{latched, sensor}, sensor, []string{"reliability: 1 of 2", "durability: 1 of 2"}},
		{"unknown history", []ros.QoS{{Reliability: ros.Reliable, Durability: ros.Volatile}}, keepAll(def), nil},
		{"limits are not asked for", []ros.QoS{limits}, def, nil},
	}
	for _, c := range cases {
		q, mixed := ros.AdaptQoS(c.offers)
		if q != c.want || len(mixed) != len(c.mixed) {
			t.Errorf("%s: %v %q, want %v %q", c.name, q, mixed, c.want, c.mixed)
			continue
		}
		for i := range mixed {
			if !strings.HasPrefix(mixed[i], c.mixed[i]) {
				t.Errorf("%s: %q, want %q", c.name, mixed[i], c.mixed[i])
			}
		}
		for _, o := range c.offers {
			if reason, ok := ros.Compatible(o, q); !ok {
				t.Errorf("%s: the chosen profile does not match %v: %s", c.name, o, reason)
			}
		}
	}
}

func TestPlaybackQoS(t *testing.T) {
	def := ros.DefaultQoS()
	deadline := profile(func(q *ros.QoS) { q.Deadline = time.Second })
	lifespan := profile(func(q *ros.QoS) { q.Lifespan = time.Second })
	latched10 := profile(func(q *ros.QoS) { q.Durability = ros.TransientLocal })
	cases := []struct {
		name     string
		recorded []ros.QoS
		want     ros.QoS
		warning  string
	}{
		{"none", nil, def, ""},
		{"one", []ros.QoS{latched}, latched10, ""},
		{"history and lifespan aside", []ros.QoS{lifespan, profile(func(q *ros.QoS) { q.History = ros.KeepAll })}, lifespan, ""},
		{"history unknown", []ros.QoS{{History: ros.HistoryUnknown, Reliability: ros.BestEffort, Durability: ros.Volatile, Liveliness: ros.Automatic}},
			profile(func(q *ros.QoS) { q.Reliability = ros.BestEffort }), ""},
		{"best available recorded", []ros.QoS{ros.BestAvailableQoS()}, def, ""},
		{"zero durations are infinite", []ros.QoS{def, {History: ros.KeepLast, Reliability: ros.Reliable, Durability: ros.Volatile, Liveliness: ros.Automatic}}, def, ""},
		{"mixed reliability", []ros.QoS{def, sensor}, def, "reliability"},
		{"mixed durability", []ros.QoS{latched, def}, def, "durability"},
		{"mixed deadline", []ros.QoS{deadline, def}, def, "deadline"},
	}
	for _, c := range cases {
		q, warning := ros.PlaybackQoS(c.recorded)
		if q != c.want || (warning == "") != (c.warning == "") || !strings.Contains(warning, c.warning) {
			t.Errorf("%s: %v %q, want %v %q", c.name, q, warning, c.want, c.warning)
		}
	}
}
