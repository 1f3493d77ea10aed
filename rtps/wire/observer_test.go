package wire

import (
	"bytes"
	"slices"
	"testing"
)

// observer follows a capture as a bystander would: discovery, and every sample of every writer, put together from its
// fragments.
type observer struct {
	t       testing.TB
	decoder Decoder

	datagrams, foreign int
	counts             map[string]int // submessages, as the Handler sees them
	raw                map[string]int // submessages, by their headers

	participants map[GUID]ParticipantData
	writers      map[GUID]EndpointData
	readers      map[GUID]EndpointData
	gone         map[GUID]int
	liveliness   map[Prefix]int

	samples map[GUID]map[int64]*sample // complete ones of user writers
	partial map[GUID]map[int64]*assembly
}

type sample struct {
	payload []byte
	time    Timestamp
	key     bool
	status  uint32
}

type assembly struct {
	data []byte
	have map[uint32]bool
	size uint16
	time Timestamp
}

func observe(t testing.TB, path string) *observer {
	o := &observer{t: t, counts: map[string]int{}, raw: map[string]int{}, participants: map[GUID]ParticipantData{},
		writers: map[GUID]EndpointData{}, readers: map[GUID]EndpointData{}, gone: map[GUID]int{}, liveliness: map[Prefix]int{},
		samples: map[GUID]map[int64]*sample{}, partial: map[GUID]map[int64]*assembly{}}
	for i, d := range readPcap(t, path) {
		o.datagrams++
		err := o.decoder.Decode(d.data, o)
		if err == ErrNotRTPS {
			o.foreign++
			if len(d.data) != 1 {
				t.Errorf("datagram %d: %d bytes, not RTPS", i, len(d.data))
			}
			continue
		}
		if (err != nil) != d.cut {
			t.Errorf("datagram %d: %v", i, err)
			continue
		}
		for pos := HeaderSize; pos < len(d.data); {
			s, next, what := split(d.data, pos)
			n := name(s.id)
			if s.id == 0x80 {
				n = "vendor 0x80"
			}
			o.raw[n]++
			if pos = next; what != "" {
				break // cut there
			}
		}
	}
	return o
}

func (o *observer) Data(c *Context, d *Data) {
	o.counts["DATA"]++
	switch d.Writer {
	case EntitySPDPWriter:
		o.discovery(c, d, func() (GUID, error) {
			p, err := ParseParticipant(d.Payload, &d.InlineQoS, c.Vendor)
			o.participants[p.GUID] = p
			return p.GUID, err
		})
	case EntityPubWriter, EntitySubWriter:
		writer, known := d.Writer == EntityPubWriter, o.readers
		if writer {
			known = o.writers
		}
		o.discovery(c, d, func() (GUID, error) {
			e, err := ParseEndpoint(d.Payload, &d.InlineQoS, c.Vendor, writer)
			known[e.GUID] = e
			return e.GUID, err
		})
	case EntityLivelinessWriter:
		if d.Payload == nil || d.Key {
			return
		}
		m, err := ParseLiveliness(d.Payload)
		if err != nil || m.Prefix != c.Source || m.Kind != LivelinessAutomatic {
			o.t.Errorf("liveliness message %x: %+v, %v", d.Payload, m, err)
		}
		o.liveliness[c.Source]++
	default:
		if d.Writer.Builtin() {
			return // type lookup
		}
		o.sample(MakeGUID(c.Source, d.Writer), d.Seq, sample{slices.Clone(d.Payload), c.Time, d.Key, d.InlineQoS.Status})
	}
}

// discovery handles a DATA of a discovery writer: a goodbye or an announcement.
func (o *observer) discovery(c *Context, d *Data, parse func() (GUID, error)) {
	if d.Key || d.Payload == nil {
		g, err := ParseKey(d.Payload, &d.InlineQoS)
		if err != nil || g.Prefix() != c.Source || d.InlineQoS.Status&StatusDisposed == 0 {
			o.t.Errorf("goodbye of %s: %s, status %d, %v", c.Source, g, d.InlineQoS.Status, err)
		}
		o.gone[g]++
		return
	}
	g, err := parse()
	if err != nil || g.Prefix() != c.Source {
		o.t.Errorf("announcement of %s: %s, %v", c.Source, g, err)
	}
}

func (o *observer) sample(writer GUID, seq int64, s sample) {
	if o.samples[writer] == nil {
		o.samples[writer] = map[int64]*sample{}
	}
	if old := o.samples[writer][seq]; old != nil {
		if !bytes.Equal(old.payload, s.payload) {
			o.t.Errorf("writer %s, %d: sent again with other bytes", writer, seq)
		}
		return
	}
	o.samples[writer][seq] = &s
}

func (o *observer) DataFrag(c *Context, d *DataFrag) {
	o.counts["DATA_FRAG"]++
	writer := MakeGUID(c.Source, d.Writer)
	if o.partial[writer] == nil {
		o.partial[writer] = map[int64]*assembly{}
	}
	a := o.partial[writer][d.Seq]
	if a == nil {
		a = &assembly{data: make([]byte, d.SampleSize), have: map[uint32]bool{}, size: d.Size}
		o.partial[writer][d.Seq] = a
	}
	if a.size != d.Size || len(a.data) != int(d.SampleSize) {
		o.t.Errorf("writer %s, %d: fragments of %d bytes, %d before", writer, d.Seq, d.Size, a.size)
		return
	}
	copy(a.data[d.Offset():], d.Payload)
	if c.HasTime { // Cyclone DDS says the time with the first fragment only
		a.time = c.Time
	}
	for i := range uint32(d.Count) {
		a.have[d.First+i] = true
	}
	if len(a.have) == (len(a.data)+int(a.size)-1)/int(a.size) {
		o.sample(writer, d.Seq, sample{a.data, a.time, d.Key, d.InlineQoS.Status})
	}
}

func (o *observer) AckNack(*Context, *AckNack)             { o.counts["ACKNACK"]++ }
func (o *observer) NackFrag(*Context, *NackFrag)           { o.counts["NACK_FRAG"]++ }
func (o *observer) Heartbeat(*Context, *Heartbeat)         { o.counts["HEARTBEAT"]++ }
func (o *observer) HeartbeatFrag(*Context, *HeartbeatFrag) { o.counts["HEARTBEAT_FRAG"]++ }
func (o *observer) Gap(*Context, *Gap)                     { o.counts["GAP"]++ }

// topic lists the samples of a topic's writers in the order of their numbers; there is one writer in most captures.
func (o *observer) topic(name string) (seqs []int64, samples []*sample) {
	for guid, w := range o.writers {
		if w.Topic != name {
			continue
		}
		for seq := range o.samples[guid] {
			seqs = append(seqs, seq)
		}
		slices.Sort(seqs)
		for _, seq := range seqs {
			samples = append(samples, o.samples[guid][seq])
		}
	}
	return seqs, samples
}
