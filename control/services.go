package control

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
)

// The package of rosbag2's interfaces.
const interfaces = "rosbag2_interfaces"

// service is one that rosbag2 offers.
type service struct {
	name string // below the node's: "pause"
	typ  string // in rosbag2_interfaces: "Pause"
	full bool   // offered with RemoteFull only

	// handle reads the request and writes the reply. What a request lacks, since the caller is of another distribution, reads
	// as zero.
	handle func(request *fields, reply *cdr.Encoder)
}

// fields reads a request whose later fields may be missing: SplitBagfile, Resume and Record had fewer before Lyrical.
type fields struct {
	d    *cdr.Decoder
	body int // bytes
}

// has says that the request has at least n bytes.
func (f *fields) has(n int) bool { return f.body >= n }

// time reads a builtin_interfaces/Time or Duration, in nanoseconds.
func (f *fields) time() int64 { return int64(f.d.Int32())*1e9 + int64(f.d.Uint32()) }

// Servers are the services that Serve has made.
type Servers struct{ list []ros.Server }

// serve offers services of a node, "/rosbag2_recorder". What the node cannot do is said once.
func serve(node ros.Node, nodeName string, services []service, remote Remote, log *slog.Logger) (*Servers, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	out := &Servers{}
	if remote == RemoteOff || nodeName == "" {
		return out, nil
	}
	n, ok := node.(ros.Services)
	if !ok {
		log.Warn("this transport offers no services: control over the socket only")
		return out, nil
	}
	finder := msg.NewFinder(msg.Options{})
	for _, s := range services {
		if s.full && remote != RemoteFull {
			continue
		}
		typ := interfaces + "/srv/" + s.typ
		spec := ros.Service{Name: strings.TrimSuffix(nodeName, "/") + "/" + s.name, Type: typ,
			RequestHash: typeHash(finder, typ+"_Request"), ResponseHash: typeHash(finder, typ+"_Response")}
		server, err := n.Serve(spec, s.answer)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("control: %w", err), out.Close())
		}
		out.list = append(out.list, server)
	}
	return out, nil
}

// typeHash returns the hash of a type of the built-in table; "" if it is not there.
func typeHash(f *msg.Finder, typ string) string {
	d, err := f.Find(typ, "")
	if err != nil {
		return ""
	}
	return d.Hash
}

// answer turns a request into a reply.
func (s *service) answer(request []byte) []byte {
	d, err := cdr.NewDecoder(request)
	if err != nil {
		return nil
	}
	reply := cdr.NewEncoder(nil, cdr.CDRLE)
	s.handle(&fields{d, d.Left()}, reply)
	if len(reply.Bytes()) <= 4 { // nothing behind the encapsulation
		reply.Uint8(0) // a structure has at least one member
	}
	return reply.Bytes()
}

// Close ends all services.
func (s *Servers) Close() error {
	var errs []error
	for _, v := range s.list {
		errs = append(errs, v.Close())
	}
	s.list = nil
	return errors.Join(errs...)
}

// result writes return_code and error_string.
func result(e *cdr.Encoder, code int32, err error) {
	e.Int32(code)
	text := ""
	if err != nil {
		text = err.Error()
	}
	e.Str(text)
}
