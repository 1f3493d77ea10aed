package wire

// Prefix identifies a participant: the first 12 bytes of a GUID.
type Prefix [12]byte

// EntityID identifies an endpoint within a participant; its 4 bytes are never swapped.
type EntityID [4]byte

// GUID is prefix and entity id.
type GUID [16]byte

// VendorID names the implementation that sent a message.
type VendorID [2]byte

// Version is the protocol version.
type Version struct{ Major, Minor uint8 }

// Header starts every datagram (20 bytes).
type Header struct {
	Version Version
	Vendor  VendorID
	Prefix  Prefix
}

// Data is a DATA submessage. The slices alias the datagram.
type Data struct {
	Reader, Writer EntityID
	Seq            int64
	InlineQoS      InlineQoS
	Payload        []byte // with its encapsulation header; nil if there is none
	Key            bool   // Payload is a serialized key, not data
}

// DataFrag is a DATA_FRAG submessage. The slices alias the datagram.
type DataFrag struct {
	Reader, Writer EntityID
	Seq            int64
	First          uint32 // number of the first fragment, from 1
	Count          uint16 // fragments in this submessage
	Size           uint16 // bytes of a fragment
	SampleSize     uint32 // bytes of the whole payload, encapsulation header included
	InlineQoS      InlineQoS
	Payload        []byte // the fragments' bytes, all of them and no padding
	Key            bool
}

// InlineQoS is what we use of the inline parameters of DATA and DATA_FRAG.
type InlineQoS struct {
	Present     bool
	Status      uint32 // STATUS_INFO: StatusDisposed, StatusUnregistered or both
	HasKeyHash  bool
	KeyHash     GUID
	HasRelated  bool // RELATED_SAMPLE_IDENTITY
	RelatedGUID GUID
	RelatedSeq  int64
}

// Bits of InlineQoS.Status.
const (
	StatusDisposed     = 1
	StatusUnregistered = 2
)

// SeqSet is a set of sequence numbers: bit i (most significant first) stands for Base+i.
type SeqSet struct {
	Base    int64
	NumBits uint32 // 0..256
	Bits    [8]uint32
}

// FragSet is a set of fragment numbers.
type FragSet struct {
	Base    uint32
	NumBits uint32 // 0..256
	Bits    [8]uint32
}

// AckNack is an ACKNACK submessage: everything below Set.Base is acknowledged, the set bits are missing.
type AckNack struct {
	Reader, Writer EntityID
	Set            SeqSet
	Count          uint32
	Final          bool
}

// NackFrag asks for fragments of one sample.
type NackFrag struct {
	Reader, Writer EntityID
	Seq            int64
	Set            FragSet
	Count          uint32
}

// Heartbeat says which sequence numbers a writer has.
type Heartbeat struct {
	Reader, Writer EntityID
	First, Last    int64
	Count          uint32
	Final          bool
	Liveliness     bool
}

// HeartbeatFrag says which fragments of a sample a writer has sent.
type HeartbeatFrag struct {
	Reader, Writer EntityID
	Seq            int64
	LastFrag       uint32
	Count          uint32
}

// Gap says that [Start, Set.Base) and the set bits are irrelevant.
type Gap struct {
	Reader, Writer EntityID
	Start          int64
	Set            SeqSet
}

// Timestamp is NTP-like: seconds since the Unix epoch in the high half, 2^-32 s in the low one.
type Timestamp uint64

// Handler is called by Decode for every submessage, in order. Pointers are valid during the call only.
type Handler interface {
	Data(ctx *Context, d *Data)
	DataFrag(ctx *Context, d *DataFrag)
	AckNack(ctx *Context, a *AckNack)
	NackFrag(ctx *Context, n *NackFrag)
	Heartbeat(ctx *Context, h *Heartbeat)
	HeartbeatFrag(ctx *Context, h *HeartbeatFrag)
	Gap(ctx *Context, g *Gap)
}

// Context is the interpreter's state for the submessage at hand.
type Context struct {
	Header  Header
	Source  Prefix // Header.Prefix, or what INFO_SRC said
	Vendor  VendorID
	Dest    Prefix // zero: for anyone
	Time    Timestamp
	HasTime bool
}
