package main

import (
	enc "encoding/binary"
	"log/slog"
	"slices"
	"sync"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/ros"
)

// rosoutTopic is where nodes of ROS 1 log to.
const (
	rosoutTopic = "/rosout"
	rosoutType  = "rosgraph_msgs/Log"
)

// rosout publishes log lines on /rosout of ROS 1.
type rosout struct {
	node string
	pub  ros.Publisher

	mu  sync.Mutex
	seq uint32
}

// logToRosout makes a node of ROS 1 log to /rosout too, until the function it returns is called. Where that cannot be, the
// log says why. The node itself must log elsewhere (app.nodeLogger): what it says while it publishes must not come back.
func logToRosout(a *app, node ros.Node, name string) (stop func()) {
	q := ros.DefaultQoS()
	q.Durability, q.Depth = ros.TransientLocal, 1 // as nodes of ROS 1 do
	pub, err := node.Advertise(ros.Topic{Name: rosoutTopic, Type: rosoutType}, q)
	if err != nil {
		a.logger.Warn("not on /rosout", "err", err)
		return func() {}
	}
	a.rosout.Store(&rosout{node: name, pub: pub})
	return func() {
		a.rosout.Store(nil)
		_ = pub.Close() // the node is closed behind it
	}
}

// playsRosout says whether a bag has /rosout itself.
func playsRosout(o *player.Options) bool {
	for _, r := range append([]*bag.Reader{o.Bag}, o.More...) {
		if slices.ContainsFunc(r.Info().Topics, func(t bag.TopicInfo) bool { return t.Name == rosoutTopic }) {
			return true
		}
	}
	return false
}

// publish sends a record whose whole text is given.
func (p *rosout) publish(r slog.Record, text string) {
	p.mu.Lock()
	p.seq++
	data := appendLog(nil, p.seq, r, p.node, text)
	p.mu.Unlock()
	_ = p.pub.Publish(data, r.Time.UnixNano()) // the log itself has it
}

// rosLevel is the level of a rosgraph_msgs/Log.
func rosLevel(l slog.Level) byte {
	switch {
	case l >= levelFatal:
		return 16
	case l >= slog.LevelError:
		return 8
	case l >= slog.LevelWarn:
		return 4
	case l >= slog.LevelInfo:
		return 2
	}
	return 1
}

// appendLog appends a rosgraph_msgs/Log as ROS 1 serializes it.
func appendLog(b []byte, seq uint32, r slog.Record, node, text string) []byte {
	str := func(s string) {
		b = append(enc.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	b = enc.LittleEndian.AppendUint32(b, seq)
	b = enc.LittleEndian.AppendUint32(b, uint32(r.Time.Unix()))
	b = enc.LittleEndian.AppendUint32(b, uint32(r.Time.Nanosecond()))
	str("") // frame_id
	b = append(b, rosLevel(r.Level))
	str(node)
	str(text)
	str("")                                    // file
	str("")                                    // function
	b = enc.LittleEndian.AppendUint32(b, 0)    // line
	return enc.LittleEndian.AppendUint32(b, 0) // topics
}
