package ros

import "context"

// Service names a service that is offered or called.
type Service struct {
	Name         string // fully qualified: "/rosbag2_recorder/pause"
	Type         string // "rosbag2_interfaces/srv/Pause"
	RequestHash  string // of Type_Request; "" unknown
	ResponseHash string // of Type_Response; "" unknown
}

// Server is a service being offered.
type Server interface {
	Close() error // the handler is not running and will not be called when it returns; idempotent
}

// Client calls a service.
type Client interface {
	// Ready says whether a server is there and knows us.
	Ready() bool

	// Call sends a request and returns the reply, both serialized with their 4-byte header. The error is that of ctx when no
	// reply has come by its end.
	Call(ctx context.Context, request []byte) (reply []byte, err error)

	Close() error
}

// Services is a Node that can offer and call services.
type Services interface {
	// Serve offers a service. handle gets a request and returns the reply, both serialized with their 4-byte header; nil is
	// no reply. It is called by one goroutine; what comes while it runs waits, a few requests at most.
	Serve(s Service, handle func(request []byte) []byte) (Server, error)

	// Client makes a client of a service, of any server that offers it.
	Client(s Service) (Client, error)
}
