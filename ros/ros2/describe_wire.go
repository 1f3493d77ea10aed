package ros2

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps/wire"
)

// The service type_description_interfaces/srv/GetTypeDescription on the wire.
const (
	describeSuffix       = "/get_type_description"
	describeRequest      = "type_description_interfaces::srv::dds_::GetTypeDescription_Request_"
	describeResponse     = "type_description_interfaces::srv::dds_::GetTypeDescription_Response_"
	describeRequestHash  = "RIHS01_470f56ccbcf13d55c78c8b735fb12da03e639e5acded994426c89d94778d9e28"
	describeResponseHash = "RIHS01_648c49d976240861a482f961c5621ddd0d2135d8cce6f297a76d4f6376d93b75"

	maxReply   = 8 << 20 // bytes of a reply that is read
	maxSources = 4096    // files in it
)

// serviceForm is how requests and replies of a service belong together.
type serviceForm uint8

const (
	// identityForm puts a sample identity into the inline QoS: of the client's reader on a request, and that reader with
	// the request's sequence number on the reply (rmw_fastrtps, after DDS-RPC 1.0 §7.8.2).
	identityForm serviceForm = iota

	// headerForm puts 16 bytes before the value, a number of the client and one of the request, which the reply repeats
	// (rmw_cyclonedds).
	headerForm
)

// formOf is the form of a vendor's services.
func formOf(v wire.VendorID) serviceForm {
	if v == wire.VendorCyclone {
		return headerForm
	}
	return identityForm
}

// requestID names a request: client is used in headerForm only.
type requestID struct {
	client uint64
	seq    int64
}

// encodeDescribe makes a GetTypeDescription_Request that asks for the sources.
func encodeDescribe(form serviceForm, id requestID, typ, hash string) []byte {
	var e cdr.Encoder
	e.Reset(nil, cdr.CDRLE)
	if form == headerForm {
		e.Uint64(id.client)
		e.Int64(id.seq)
	}
	e.Str(typ)
	e.Str(hash)
	e.Bool(true)
	return e.Bytes()
}

// replyID finds out which request a reply in headerForm is for.
func replyID(payload []byte) (id requestID, ok bool) {
	var d cdr.Decoder
	if d.Reset(payload) != nil {
		return id, false
	}
	id.client, id.seq = d.Uint64(), d.Int64()
	return id, d.Err() == nil
}

// errRefused says that a node does not describe the type.
var errRefused = errors.New("the node refuses")

// parseDescription reads the sources out of a GetTypeDescription_Response. The description beside them is walked over:
// the sources say the same, and have what it lacks. The error of a node that says no wraps errRefused.
func parseDescription(form serviceForm, payload []byte) ([]ros.TypeSource, error) {
	if len(payload) > maxReply {
		return nil, fmt.Errorf("reply of %d bytes: at most %d are read", len(payload), maxReply)
	}
	d, err := cdr.NewDecoder(payload)
	if err != nil {
		return nil, fmt.Errorf("reply: %w", err)
	}
	if form == headerForm {
		d.Skip(16)
	}
	successful, reason := d.Bool(), d.StrBytes()
	fields := map[string]string{}
	note := func() {
		if typ, text := describedFields(d); text != "" {
			fields[typ] = text
		}
	}
	note()
	for range d.Len(8) { // referenced types
		if note(); d.Err() != nil {
			break
		}
	}
	n := d.Len(12)
	if n > maxSources {
		return nil, fmt.Errorf("reply: %d sources: at most %d are read", n, maxSources)
	}
	sources := make([]ros.TypeSource, 0, n)
	for range n {
		if sources = append(sources, ros.TypeSource{Type: d.Str(), Encoding: d.Str(), Text: d.Str()}); d.Err() != nil {
			break
		}
	}
	for range d.Len(8) { // extra information
		d.StrBytes()
		if d.StrBytes(); d.Err() != nil {
			break
		}
	}
	if err := d.Err(); err != nil {
		return nil, fmt.Errorf("reply: %w", err)
	}
	if d.Left() > 3 {
		return nil, fmt.Errorf("reply: %d bytes too many", d.Left())
	}
	for i := range sources {
		sources[i].Fields = fields[sources[i].Type]
	}
	if !successful {
		return nil, fmt.Errorf("%w: %s", errRefused, quoteReason(reason))
	}
	return sources, nil
}

// describedFields reads an IndividualTypeDescription: the type and its fields, as the text of a message; "" if a message
// cannot have them.
func describedFields(d *cdr.Decoder) (typ, text string) {
	m := msg.Message{Name: d.Str()}
	expressible := true
	for range d.Len(29) { // fields
		f := msg.Field{Name: d.Str()}
		id, capacity, stringCapacity, nested := d.Uint8(), d.Uint64(), d.Uint64(), d.Str()
		if f.Default = d.Str(); d.Err() != nil {
			return "", ""
		}
		var err error
		if f.Type, err = msg.TypeOf(id, capacity, stringCapacity, nested); err != nil {
			expressible = false
		}
		m.Fields = append(m.Fields, f)
	}
	if text, err := m.Text(); err == nil && expressible {
		return m.Name, text
	}
	return m.Name, ""
}

// quoteReason makes what a node says fit for a log.
func quoteReason(reason []byte) string {
	const most = 300
	if len(reason) == 0 {
		return "it gives no reason"
	}
	return fmt.Sprintf("%.*q", most, reason)
}

// clientUserData is the USER_DATA of a client's endpoints. A server of rmw_cyclonedds finds by the client's id the reader
// that belongs to a writer, and waits a moment for it if it does not know it yet.
func clientUserData(form serviceForm, participant wire.Prefix, client uint32, hash string) []byte {
	data := endpointUserData(hash)
	if form != headerForm {
		return data
	}
	id := make([]string, 0, 16)
	for _, b := range participant {
		id = append(id, strconv.FormatUint(uint64(b), 16))
	}
	for shift := 24; shift >= 0; shift -= 8 {
		id = append(id, strconv.FormatUint(uint64(byte(client>>shift)), 16))
	}
	return append([]byte("clientid="+strings.Join(id, ".")+";"), data...)
}
