package wire

import (
	"bytes"
	"errors"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// pl makes a little-endian parameter list payload of hexadecimal parameters, sentinel added.
func pl(params string) []byte { return unhex("00030000" + params + "01000000") }

const (
	guidParam     = "5000 1000 a0a1a2a3a4a5a6a7a8a9aaab 000001c1 "
	endpointParam = "5a00 1000 a0a1a2a3a4a5a6a7a8a9aaab 00000103 "
	topicParams   = "0500 0c00 05000000 72742f61 00000000 0700 0800 02000000 54000000 " // "rt/a", "T"
)

var (
	peerPrefix      = Prefix(unhex("a0a1a2a3a4a5a6a7a8a9aaab"))
	peerParticipant = MakeGUID(peerPrefix, EntityParticipant)
)

func fullParticipant() ParticipantData {
	at := func(s string) Locator { return LocatorFrom(netip.MustParseAddrPort(s)) }
	return ParticipantData{
		GUID: peerParticipant, Version: Version{2, 3}, Vendor: VendorCyclone, Endpoints: BuiltinAll, Lease: 20 * time.Second,
		MetaUnicast:      []Locator{at("10.0.0.1:7410"), {Kind: LocatorSHM, Port: 7410}},
		MetaMulticast:    []Locator{at("239.255.0.1:7400")},
		DefaultUnicast:   []Locator{at("10.0.0.1:7411"), at("[fe80::1]:7411")},
		DefaultMulticast: []Locator{at("239.255.0.1:7401")},
		DomainID:         5, DomainTag: "tag", Name: "/", UserData: []byte("enclave=/;"), ExpectsInlineQoS: true, RecvBuffer: 1 << 21,
	}
}

func fullEndpoint() EndpointData {
	return EndpointData{
		GUID: MakeGUID(peerPrefix, EntityID{0, 0, 1, 3}), Participant: peerParticipant, Version: Version{2, 3}, Vendor: VendorGobag,
		Topic: "rt/a/b", Type: "std_msgs::msg::dds_::String_",
		QoS: QoS{Reliability: Reliable, MaxBlocking: time.Second, Durability: TransientLocal, History: KeepAll, Depth: 7,
			Deadline: 1234567891 * time.Nanosecond, Lifespan: time.Hour, LatencyBudget: time.Millisecond,
			Liveliness: ManualByTopic, LeaseDuration: 3 * time.Second, Ownership: Exclusive, OwnershipStrength: -4,
			DestinationOrder: BySource, Presentation: Presentation{ScopeGroup, true, true},
			Partition: []string{"", "a*"}, Representation: []int16{XCDR2, XCDR1}},
		Unicast:   []Locator{LocatorFrom(netip.MustParseAddrPort("10.0.0.1:7000"))},
		Multicast: []Locator{LocatorFrom(netip.MustParseAddrPort("239.255.0.1:7401"))},
		UserData:  []byte("typehash=RIHS01_00;"), Name: "w",
	}
}

func TestParticipantRoundTrip(t *testing.T) {
	for name, want := range map[string]ParticipantData{
		"full":    fullParticipant(),
		"minimal": {GUID: peerParticipant, Version: Protocol, Vendor: VendorGobag, DomainID: -1},
	} {
		b := want.Append([]byte("before"))
		if !bytes.HasPrefix(b, []byte("before\x00\x03\x00\x00")) || len(b)%4 != 2 {
			t.Errorf("%s: payload %x", name, b)
		}
		got, err := ParseParticipant(b[6:], nil, want.Vendor)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", name, err, got, want)
		}
	}
	// Cyclone's receive buffer is read from Cyclone alone.
	p := fullParticipant()
	if got, err := ParseParticipant(p.Append(nil), nil, VendorFast); err != nil || got.RecvBuffer != 0 {
		t.Errorf("receive buffer %d, %v", got.RecvBuffer, err)
	}
}

func TestEndpointRoundTrip(t *testing.T) {
	full := fullEndpoint()
	reader := full
	reader.GUID = MakeGUID(peerPrefix, EntityID{0, 0, 1, 4})
	reader.ExpectsInlineQoS = true
	reader.QoS.Lifespan, reader.QoS.OwnershipStrength = 0, 0
	for _, c := range []struct {
		name   string
		want   EndpointData
		writer bool
	}{
		{"writer", full, true},
		{"reader", reader, false},
		{"default writer", EndpointData{GUID: full.GUID, Participant: peerParticipant, Version: Protocol, Topic: "t", Type: "T",
			QoS: QoS{Reliability: Reliable, MaxBlocking: 100 * time.Millisecond, Depth: 1}}, true},
		{"default reader", EndpointData{GUID: reader.GUID, Participant: peerParticipant, Version: Protocol, Topic: "t", Type: "T",
			QoS: QoS{MaxBlocking: 100 * time.Millisecond, Depth: 1}}, false},
	} {
		b := c.want.Append(nil, c.writer)
		got, err := ParseEndpoint(b, nil, VendorGobag, c.writer)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", c.name, err, got, c.want)
		}
		if _, err := ParseEndpoint(b, nil, VendorGobag, !c.writer); err == nil {
			t.Errorf("%s: taken for the other kind", c.name)
		}
	}
}

// TestEndpointDefaults has what is assumed where nothing is said.
func TestEndpointDefaults(t *testing.T) {
	w, err := ParseEndpoint(pl(endpointParam+topicParams), nil, VendorCyclone, true)
	want := EndpointData{GUID: MakeGUID(peerPrefix, EntityID{0, 0, 1, 3}), Participant: peerParticipant, Vendor: VendorCyclone, Topic: "rt/a", Type: "T", QoS: QoS{Reliability: Reliable}}
	if err != nil || !reflect.DeepEqual(w, want) {
		t.Errorf("writer %+v, %v", w, err)
	}
	inline := InlineQoS{HasKeyHash: true, KeyHash: MakeGUID(peerPrefix, EntityID{0, 0, 1, 4})}
	r, err := ParseEndpoint(pl(topicParams), &inline, VendorCyclone, false)
	if err != nil || r.GUID != inline.KeyHash || r.QoS.Reliability != BestEffort {
		t.Errorf("reader %+v, %v", r, err)
	}
	p, err := ParseParticipant(pl(guidParam), nil, VendorCyclone)
	if err != nil || p.Lease != 100*time.Second || p.DomainID != -1 || p.Vendor != VendorCyclone {
		t.Errorf("participant %+v, %v", p, err)
	}
	p, err = ParseParticipant(pl(""), &InlineQoS{HasKeyHash: true, KeyHash: peerParticipant}, VendorFast)
	if err != nil || p.GUID != peerParticipant {
		t.Errorf("participant by key hash %+v, %v", p, err)
	}
}

// TestParticipantParameters has single parameters, good, odd and bad ones (conformance statement 7 among them).
func TestParticipantParameters(t *testing.T) {
	for _, c := range []struct {
		name, params string
		err          string // part of the error; empty: none
		check        func(p *ParticipantData) bool
	}{
		{"no domain id", guidParam, "", func(p *ParticipantData) bool { return p.DomainID == -1 }},
		{"domain id", guidParam + "0f00 0400 2a000000", "", func(p *ParticipantData) bool { return p.DomainID == 42 }},
		{"domain tag", guidParam + "1440 0800 02000000 78000000", "", func(p *ParticipantData) bool { return p.DomainTag == "x" }},
		{"unknown parameter", guidParam + "2222 0400 01020304", "", nil},
		{"unknown vendor-specific parameters", guidParam + "0780 0400 01020304 1980 0000 ffbf 0000", "", nil},
		{"unknown parameter to be understood", guidParam + "2262 0400 01020304", "parameter 0x6222: parameter that must be understood", nil},
		{"vendor's parameter to be understood", guidParam + "01c0 0400 01020304", "parameter 0xc001: parameter that must be understood", nil},
		{"PAD", "0000 0400 01020304" + guidParam, "", nil},
		{"longer than needed", guidParam + "5800 0800 3f0c0000 99999999", "", func(p *ParticipantData) bool { return p.Endpoints == BuiltinAll }},
		{"shorter than needed", guidParam + "5800 0000", "parameter 0x0058: cdr: offset 0: 4 bytes wanted, 0 left", nil},
		{"last one shorter than needed", guidParam + "3200 1400 01000000 f21c0000 000000000000000000000000", "parameter 0x0032", nil},
		{"lease infinite", guidParam + "0200 0800 ffffff7f ffffffff", "", func(p *ParticipantData) bool { return p.Lease == 0 }},
		{"lease zero", guidParam + "0200 0800 00000000 00000000", "", func(p *ParticipantData) bool { return p.Lease == 1 }},
		{"lease negative", guidParam + "0200 0800 ffffffff 00000000", "", func(p *ParticipantData) bool { return p.Lease == 0 }},
		{"lease 1.5 s", guidParam + "0200 0800 01000000 00000080", "", func(p *ParticipantData) bool { return p.Lease == 1500*time.Millisecond }},
		{"name without NUL", guidParam + "6200 0800 02000000 61620000", "", func(p *ParticipantData) bool { return p.Name == "ab" }},
		{"name of length 0", guidParam + "6200 0400 00000000", "", func(p *ParticipantData) bool { return p.Name == "" }},
		{"name longer than its parameter", guidParam + "6200 0800 05000000 61626364", "sequence of 5 elements, 4 bytes left", nil},
		{"name absurdly long", guidParam + "6200 0800 ffffffff 61626364", "sequence of 4294967295 elements", nil},
		{"name over the limit", guidParam + "6200 0820 02200000" + strings.Repeat("61", 0x2004), "string of 8194 bytes, 4096 at most", nil},
		{"user data longer than its parameter", guidParam + "2c00 0800 ff000000 61626364", "parameter 0x002c", nil},
		{"no GUID", "0f00 0400 2a000000", "no participant GUID", nil},
		{"200 locators", guidParam + strings.Repeat("3200 1800 01000000 f21c0000 000000000000000000000000 0a000001", 200), "",
			func(p *ParticipantData) bool {
				return len(p.MetaUnicast) == maxLocators && p.MetaUnicast[63].String() == "udp/10.0.0.1:7410"
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ParseParticipant(pl(c.params), nil, VendorFast)
			checkErr(t, err, c.err)
			if err == nil && c.check != nil && !c.check(&p) {
				t.Errorf("%+v", p)
			}
			if err != nil && !reflect.DeepEqual(p, ParticipantData{}) {
				t.Errorf("data beside an error: %+v", p)
			}
		})
	}
	if _, err := ParseParticipant(pl(guidParam+"2262 0000"), nil, VendorFast); !errors.Is(err, ErrMustUnderstand) {
		t.Errorf("error %v", err)
	}
	for _, c := range []struct{ payload, err string }{
		{"", "no encapsulation header"},
		{"00010000" + guidParam + "01000000", "CDR_LE, a parameter list (PL_CDR) expected"},
		{"000b0000" + guidParam + "01000000", "PL_CDR2_LE, a parameter list"},
		{"00030000" + guidParam, "without sentinel"},
		{"00030000" + guidParam + "0f00 0800 2a000000", "parameter 0x000f: length 8, 4 bytes left"},
	} {
		_, err := ParseParticipant(unhex(c.payload), nil, VendorFast)
		checkErr(t, err, c.err)
	}
	// Big-endian (conformance statement 2).
	p, err := ParseParticipant(unhex("00020000 0050 0010 a0a1a2a3a4a5a6a7a8a9aaab 000001c1 000f 0004 0000002a 0058 0004 00000c3f"+
		"0032 0018 00000001 00001cf2 000000000000000000000000 0a000001 0062 0008 00000002 61000000 0015 0004 02050000 0001 0000"), nil, VendorRTI)
	want := ParticipantData{GUID: peerParticipant, Version: Version{2, 5}, Vendor: VendorRTI, Endpoints: BuiltinAll, Lease: defaultLease, DomainID: 42, Name: "a",
		MetaUnicast: []Locator{LocatorFrom(netip.MustParseAddrPort("10.0.0.1:7410"))}}
	if err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("big-endian: %+v, %v", p, err)
	}
}

func TestEndpointParameters(t *testing.T) {
	q := func(check func(QoS) bool) func(*EndpointData) bool {
		return func(d *EndpointData) bool { return check(d.QoS) }
	}
	for _, c := range []struct {
		name, params string
		err          string
		check        func(*EndpointData) bool
	}{
		{"reliability", "1a00 0c00 01000000 00000000 9a999919", "", q(func(q QoS) bool { return q.Reliability == BestEffort && q.MaxBlocking == 100*time.Millisecond })},
		{"reliability without blocking time", "1a00 0400 02000000", "", q(func(q QoS) bool { return q.Reliability == Reliable && q.MaxBlocking == 0 })},
		{"reliability 0", "1a00 0c00 00000000 00000000 9a999919", "reliability kind 0", nil},
		{"durability 4", "1d00 0400 04000000", "parameter 0x001d: cdr: offset 4: kind 4, 3 at most", nil},
		{"history", "4000 0800 00000000 0a000000", "", q(func(q QoS) bool { return q.History == KeepLast && q.Depth == 10 })},
		{"history of negative depth", "4000 0800 01000000 ffffffff", "", q(func(q QoS) bool { return q.History == KeepAll && q.Depth == 0 })},
		{"deadline infinite", "2300 0800 ffffff7f ffffffff", "", q(func(q QoS) bool { return q.Deadline == 0 })},
		{"deadline zero", "2300 0800 00000000 00000000", "", q(func(q QoS) bool { return q.Deadline == 1 })},
		{"latency budget infinite", "2700 0800 ffffff7f ffffffff", "", q(func(q QoS) bool { return q.LatencyBudget == math.MaxInt64 })},
		{"liveliness too short", "1b00 0800 00000000 ffffff7f", "parameter 0x001b", nil},
		{"liveliness 3", "1b00 0c00 03000000 ffffff7f ffffffff", "kind 3, 2 at most", nil},
		{"ownership 2", "1f00 0400 02000000", "kind 2, 1 at most", nil},
		{"presentation", "2100 0800 01000000 01 00 0000", "", q(func(q QoS) bool { return q.Presentation == Presentation{ScopeTopic, true, false} })},
		{"partitions", "2900 1400 02000000 02000000 61000000 02000000 62000000", "", q(func(q QoS) bool { return slices.Equal(q.Partition, []string{"a", "b"}) })},
		{"no partitions", "2900 0400 00000000", "", q(func(q QoS) bool { return q.Partition == nil })},
		{"too many partitions", "2900 0402 80000000" + strings.Repeat("00000000", 128), "", q(func(q QoS) bool { return len(q.Partition) == 128 })},
		{"far too many partitions", "2900 0802 81000000" + strings.Repeat("00000000", 129), "129 partitions, 128 at most", nil},
		{"impossibly many partitions", "2900 0400 ffffffff", "sequence of 4294967295", nil},
		{"representations", "7300 0c00 03000000 0000 0100 0200 0000", "", q(func(q QoS) bool { return slices.Equal(q.Representation, []int16{XCDR1, XML, XCDR2}) })},
		{"representations cut", "7300 0800 03000000 0000 0100", "sequence of 3 elements, 4 bytes left", nil},
		{"too many representations", "7300 2800 11000000" + strings.Repeat("0000", 18), "17 data representations", nil},
		{"type information is passed over", "7500 0400 ffffffff 7200 0400 ffffffff 6900 0000", "", nil},
		{"resource limits, durability service and others are passed over", "4100 0c00 ffffffff ffffffff ffffffff 1e00 1c00 0000000000000000000000000000000000000000000000000000ffff 0400 0800 0000000000000000", "", nil},
		{"expects inline QoS", "4300 0400 01000000", "", func(d *EndpointData) bool { return d.ExpectsInlineQoS }},
		{"data sharing of Fast", "0680 0400 01000000", "", nil},
		{"user data with NUL", "2c00 0c00 05000000 613d623b 00000000", "", func(d *EndpointData) bool { return string(d.UserData) == "a=b;\x00" }},
		{"participant GUID", "5000 1000 b0b1b2b3b4b5b6b7b8b9babb 000001c1", "", func(d *EndpointData) bool { return d.Participant.Prefix() != d.GUID.Prefix() }},
		{"no topic name", "0500 0800 01000000 00000000", "no topic name", nil},
		{"no type name", "0700 0800 01000000 00000000", "no type name", nil},
		{"GUID of a participant", "5a00 1000 a0a1a2a3a4a5a6a7a8a9aaab 000001c1", "entity id 000001c1 is not that of a writer", nil},
		{"GUID of zeros", "5a00 1000 00000000000000000000000000000000", "no endpoint GUID", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := ParseEndpoint(pl(endpointParam+topicParams+c.params), nil, VendorFast, true)
			checkErr(t, err, c.err)
			if err == nil && c.check != nil && !c.check(&d) {
				t.Errorf("%+v", d)
			}
			if err != nil && !reflect.DeepEqual(d, EndpointData{}) {
				t.Errorf("data beside an error: %+v", d)
			}
		})
	}
}

func checkErr(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error %v, %q expected", err, want)
	}
}

// TestKey has both vendors' goodbyes and ours.
func TestKey(t *testing.T) {
	endpoint := MakeGUID(peerPrefix, EntityID{0, 0, 1, 3})
	hash := func(g GUID) *InlineQoS {
		return &InlineQoS{Present: true, Status: 3, HasKeyHash: true, KeyHash: g}
	}
	for _, c := range []struct {
		name    string
		payload []byte
		inline  *InlineQoS
		want    GUID
		err     string
	}{
		{"Cyclone's participant", pl(guidParam), &InlineQoS{Present: true, Status: 3}, peerParticipant, ""},
		{"Cyclone's endpoint", pl(endpointParam), nil, endpoint, ""},
		{"Fast's participant", nil, hash(peerParticipant), peerParticipant, ""},
		{"Fast's endpoint", nil, hash(endpoint), endpoint, ""},
		{"ours, participant", AppendKey(nil, peerParticipant), hash(peerParticipant), peerParticipant, ""},
		{"ours, endpoint", AppendKey(nil, endpoint), nil, endpoint, ""},
		{"key hash parameter", pl("7000 1000 a0a1a2a3a4a5a6a7a8a9aaab 00000103"), nil, endpoint, ""},
		{"endpoint beside its participant", pl(guidParam + endpointParam), nil, endpoint, ""},
		{"nothing", nil, nil, GUID{}, "no GUID"},
		{"nothing said inline", nil, &InlineQoS{Present: true, Status: 3}, GUID{}, "no GUID"},
		{"no list", unhex("00010000"), nil, GUID{}, "a parameter list (PL_CDR) expected"},
		{"list cut", pl(guidParam)[:20], hash(endpoint), GUID{}, "parameter 0x0050: length 16"},
		{"GUID cut", pl("5000 0c00 a0a1a2a3a4a5a6a7a8a9aaab"), nil, GUID{}, "parameter 0x0050"},
		{"to be understood", pl(guidParam + "2262 0000"), nil, GUID{}, "must be understood"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := ParseKey(c.payload, c.inline)
			checkErr(t, err, c.err)
			if g != c.want {
				t.Errorf("GUID %s, %s expected", g, c.want)
			}
		})
	}
	if got, want := AppendKey(nil, peerParticipant), pl(guidParam); !bytes.Equal(got, want) {
		t.Errorf("key %x", got)
	}
	if got, want := AppendKey(nil, endpoint), pl(endpointParam); !bytes.Equal(got, want) {
		t.Errorf("key %x", got)
	}
}

func TestLiveliness(t *testing.T) {
	const prefix = "a0a1a2a3a4a5a6a7a8a9aaab "
	for _, c := range []struct {
		name, payload string
		kind          uint32
		data          int
		err           string
	}{
		{"Cyclone's", "00010003" + prefix + "00000001 01000000 00000000", LivelinessAutomatic, 1, ""},
		{"Fast's, labelled a list", "00030000" + prefix + "00000002 00000000", LivelinessManual, 0, ""},
		{"big-endian", "00000000" + prefix + "00000001 00000004 01020304", LivelinessAutomatic, 4, ""},
		{"a vendor's kind", "00010000" + prefix + "01100001 00000000", 0x01100001, 0, ""},
		{"cut", "00010000" + prefix + "0000", 0, 0, "parse liveliness message: cdr: offset 12"},
		{"data cut", "00010000" + prefix + "00000001 09000000 01020304", 0, 0, "sequence of 9"},
		{"too much data", "00010000" + prefix + "00000001 04040000" + strings.Repeat("00", 0x404), 0, 0, "1028 bytes of data"},
		{"nothing", "0001", 0, 0, "no encapsulation header"},
		{"unknown encapsulation", "00990000" + prefix + "00000001 00000000", 0, 0, "encapsulation 0x0099"},
	} {
		m, err := ParseLiveliness(unhex(c.payload))
		checkErr(t, err, c.err)
		if err == nil && (m.Prefix != peerPrefix || m.Kind != c.kind || len(m.Data) != c.data) {
			t.Errorf("%s: %+v", c.name, m)
		}
	}
	m := LivelinessMessage{Prefix: peerPrefix, Kind: LivelinessManual}
	if got, want := m.Append(nil), unhex("00010000"+prefix+"00000002 00000000"); !bytes.Equal(got, want) {
		t.Errorf("appended %x", got)
	}
	m.Data = []byte{7}
	if got, want := m.Append(nil), unhex("00010000"+prefix+"00000002 01000000 07000000"); !bytes.Equal(got, want) {
		t.Errorf("appended %x", got)
	}
	if got, want := m.Key(), GUID(unhex(prefix+"00000002")); got != want {
		t.Errorf("key %s", got)
	}
}

func TestLocator(t *testing.T) {
	for s, want := range map[string]Locator{
		"10.1.2.3:7410":         {LocatorUDPv4, 7410, [16]byte{12: 10, 1, 2, 3}},
		"[::ffff:10.1.2.3]:1":   {LocatorUDPv4, 1, [16]byte{12: 10, 1, 2, 3}},
		"[fe80::1]:65535":       {LocatorUDPv6, 65535, [16]byte{0: 0xfe, 1: 0x80, 15: 1}},
		"[2001:db8::7%eth0]:99": {LocatorUDPv6, 99, [16]byte{0: 0x20, 1: 1, 2: 0x0d, 3: 0xb8, 15: 7}},
	} {
		in := netip.MustParseAddrPort(s)
		got := LocatorFrom(in)
		if got != want {
			t.Errorf("%s: %+v", s, got)
		}
		if back, ok := got.AddrPort(); !ok || back != netip.AddrPortFrom(in.Addr().Unmap().WithZone(""), in.Port()) {
			t.Errorf("%s: back %s", s, back)
		}
	}
	for want, l := range map[string]Locator{
		"udp/10.1.2.3:7410":       {LocatorUDPv4, 7410, [16]byte{12: 10, 1, 2, 3}},
		"tcp port 7411":           {Kind: LocatorTCPv4, Port: 7411},
		"shared memory port 7412": {Kind: LocatorSHM, Port: 7412},
		"invalid locator":         {Kind: LocatorInvalid},
		"locator of kind 99":      {Kind: 99, Port: 1},
		"locator of kind 1":       {Kind: LocatorUDPv4, Port: 0},
		"locator of kind 2":       {Kind: LocatorUDPv6, Port: 65536},
	} {
		if l.String() != want {
			t.Errorf("%s: %s", want, l)
		}
		if _, ok := l.AddrPort(); ok != strings.HasPrefix(want, "udp") {
			t.Errorf("%s: usable %v", want, ok)
		}
	}
}

func TestTimestamp(t *testing.T) {
	for ns, want := range map[int64]Timestamp{
		0: 0, 1: 5, 500_000_000: 1 << 31, 1_000_000_000: 1 << 32, 1796042341186541653: Timestamp(uint64(1796042341)<<32 | 0x2fc1319b),
		-1: 0, math.MinInt64: 0, math.MaxInt64: TimestampInvalid - 1,
	} {
		if got := TimestampFromUnix(ns); got != want {
			t.Errorf("%d ns: %#x, %#x expected", ns, uint64(got), uint64(want))
		}
	}
	for _, ns := range []int64{0, 1, 2, 3, 999_999_999, 1_700_000_000_123_456_789, 4_294_967_295_999_999_999} {
		for d := range int64(2000) {
			if n := ns + d*7919; n/1e9 <= math.MaxUint32 && TimestampFromUnix(n).Unix() != n {
				t.Fatalf("%d ns comes back as %d", n, TimestampFromUnix(n).Unix())
			}
		}
	}
	for d, want := range map[time.Duration][2]int64{
		0: {0, 0}, -5: {0, 0}, 1: {0, 5}, 20 * time.Second: {20, 0}, infinite: {math.MaxInt32, math.MaxUint32}, math.MaxInt32 * time.Second: {math.MaxInt32, math.MaxUint32},
	} {
		if sec, frac := wireDuration(d); int64(sec) != want[0] || int64(frac) != want[1] {
			t.Errorf("%s: %d, %d", d, sec, frac)
		}
	}
	for _, d := range []time.Duration{0, 1, 999, time.Millisecond, 123456789, 59*time.Hour + 1, math.MaxInt32*time.Second - 1} {
		if back := duration(wireDuration(d)); back != d {
			t.Errorf("%s comes back as %s", d, back)
		}
	}
}

func TestIDs(t *testing.T) {
	for e, want := range map[EntityID][4]bool{ // keyed, writer, reader, builtin
		EntityParticipant: {false, false, false, true}, EntitySPDPWriter: {true, true, false, true}, EntitySPDPReader: {true, false, true, true},
		EntityPubWriter: {true, true, false, true}, EntitySubReader: {true, false, true, true}, {0, 0, 1, 3}: {false, true, false, false},
		{0, 0, 1, 4}: {false, false, true, false}, {0, 0, 1, 2}: {true, true, false, false}, {0, 0, 1, 7}: {true, false, true, false},
		{0, 0, 1, 0x43}: {false, true, false, false}, {0, 3, 0, 0xc3}: {false, true, false, true}, EntityUnknown: {},
	} {
		if got := [4]bool{e.Keyed(), e.Writer(), e.Reader(), e.Builtin()}; got != want {
			t.Errorf("%s: %v", e, got)
		}
	}
	if BuiltinAll != 0xc3f {
		t.Errorf("builtin endpoints %#x", BuiltinAll)
	}
	g := MakeGUID(testPrefix, testWriter)
	if g.Prefix() != testPrefix || g.Entity() != testWriter || g.String() != "01ff0304.05060708.090a0b0c.00000203" {
		t.Errorf("GUID %s", g)
	}
	for v, want := range map[VendorID]string{VendorCyclone: "Cyclone DDS", VendorFast: "Fast DDS", VendorGobag: "gobag", {1, 0x7e}: "vendor 01.7e", {}: "unknown vendor"} {
		if v.String() != want {
			t.Errorf("%s expected: %s", want, v)
		}
	}
	if s := ManualByTopic.String() + ", " + Liveliness(9).String(); s != "manual by topic, unknown" {
		t.Error(s)
	}
}
