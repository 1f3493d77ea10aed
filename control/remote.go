package control

import "fmt"

// Remote says what is offered over DDS.
type Remote string

// The values of Remote.
const (
	RemoteOff     Remote = "off"     // nothing
	RemoteLimited Remote = "limited" // pause, resume, split, snapshot, and what only asks
	RemoteFull    Remote = "full"    // everything
)

// ParseRemote reads a value of Remote; "" is RemoteLimited.
func ParseRemote(s string) (Remote, error) {
	switch r := Remote(s); r {
	case "":
		return RemoteLimited, nil
	case RemoteOff, RemoteLimited, RemoteFull:
		return r, nil
	}
	return "", fmt.Errorf("%q: not one of off, limited, full", s)
}
