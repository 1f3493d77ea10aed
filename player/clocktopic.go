package player

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/internal/selection"
	defs "github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/ros"
)

// The topic of simulated time.
const (
	clockTopic = "/clock"
	clockType  = "rosgraph_msgs/msg/Clock"
)

// publishesClock says whether /clock is ours, so that the bag's is left out.
func (o Options) publishesClock() bool {
	return o.ClockRate > 0 || o.ClockAll || len(o.ClockTopics) > 0
}

// clockPublisher publishes the bag's time on /clock.
type clockPublisher struct {
	pub    ros.Publisher
	every  bool     // before every message
	before []string // before messages of these topics
	said   bool
}

// openClock announces /clock; nil if it is not asked for. Best effort, as rosbag2 offers it (rclcpp::ClockQoS).
func (p *Player) openClock() (*clockPublisher, error) {
	if !p.o.publishesClock() {
		return nil, nil
	}
	q := ros.DefaultQoS()
	q.Reliability, q.Depth = ros.BestEffort, 1
	pub, err := p.o.Node.Advertise(ros.Topic{Name: clockTopic, Type: clockType, TypeHash: clockHash()}, q)
	if err != nil {
		return nil, fmt.Errorf("clock: %w", err)
	}
	return &clockPublisher{pub: pub, every: p.o.ClockAll, before: selection.AllAbsolute(p.o.ClockTopics)}, nil
}

// clockHash is the hash of the type of /clock; "" if it is not in the built-in table.
func clockHash() string {
	d, err := defs.NewFinder(defs.Options{}).Find(clockType, "")
	if err != nil {
		return ""
	}
	return d.Hash
}

// tell publishes a bag time.
func (c *clockPublisher) tell(p *Player, stamp int64) {
	sec, nsec := stamp/1e9, stamp%1e9
	if nsec < 0 {
		sec, nsec = sec-1, nsec+1e9
	}
	var e cdr.Encoder
	e.Reset(nil, cdr.CDRLE)
	e.Int32(int32(sec))
	e.Uint32(uint32(nsec))
	if err := c.pub.Publish(e.Bytes(), time.Now().UnixNano()); err != nil && !c.said {
		c.said = true
		p.emit(EventOther, slog.LevelWarn, clockTopic, fmt.Sprintf("/clock cannot be published: %v", err))
	}
}

// before a message of a topic that asks for it, its time is published.
func (c *clockPublisher) message(p *Player, it *item) {
	if c != nil && (c.every || slices.Contains(c.before, it.pub.from) || slices.Contains(c.before, it.pub.Name)) {
		c.tell(p, it.stamp)
	}
}

// run publishes at Options.ClockRate, also while the playback is paused, until ctx ends.
func (c *clockPublisher) run(ctx context.Context, p *Player) {
	if c == nil || p.o.ClockRate <= 0 {
		return
	}
	tick := time.NewTicker(max(time.Duration(float64(time.Second)/p.o.ClockRate), 100*time.Microsecond))
	defer tick.Stop()
	for {
		c.tell(p, max(p.start, min(p.clock.now(), p.end)))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *clockPublisher) close() error {
	if c == nil {
		return nil
	}
	if err := c.pub.Close(); err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	return nil
}
