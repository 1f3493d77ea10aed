//go:build linux

package lab

import (
	"encoding/hex"
	"fmt"
	"time"
)

// Call has a client of the vendor call a service, "/rosbag2_recorder/pause" of type "rosbag2_interfaces::srv::dds_::Pause",
// with a request of at most eight bytes (nil is empty), and returns the reply without its header.
func (n *Net) Call(v Vendor, service, typ string, request []byte) ([]byte, error) {
	args, err := v.command("call")
	if err != nil {
		return nil, err
	}
	args = append(args, "--service", service, "--type", typ)
	if len(request) > 0 {
		args = append(args, "--value", hex.EncodeToString(request))
	}
	p, err := n.Start(nil, args...)
	if err != nil {
		return nil, err
	}
	if err := p.Wait(30 * time.Second); err != nil {
		return nil, fmt.Errorf("call %s: %w", service, err)
	}
	replies := p.Events("reply")
	if len(replies) != 1 {
		return nil, fmt.Errorf("call %s: %d replies", service, len(replies))
	}
	return hex.DecodeString(replies[0].Text("data"))
}
