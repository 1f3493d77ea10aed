package ros2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/rtps"
)

// Timing of a question.
const (
	matchTick   = 10 * time.Millisecond // how often it is looked whether the server knows us
	matchLimit  = time.Second           // how long that is waited for before it is asked all the same
	firstRepeat = time.Second           // the question is repeated after, doubling
	lastRepeat  = 8 * time.Second       // at most
)

// describeReply is a reply to a question.
type describeReply struct {
	from   *describeClient
	sample rtps.Sample
}

// DescribeType implements ros.TypeDescriber. The node is the one that ros_discovery_info credits the publisher to; while
// that is not known, every node of the publisher's participant is asked. Nodes of rclcpp and rclpy describe the types of
// their own endpoints, by hash only.
func (n *Node) DescribeType(ctx context.Context, publisher ros.EndpointID, typ, hash string) ([]ros.TypeSource, error) {
	if err := ros.ValidType(typ); err != nil {
		return nil, fmt.Errorf("describe type: %w", err)
	}
	q := question{n: n, publisher: rtps.GUID(publisher), typ: typ, hash: hash, servers: map[serverKey]*server{}, replies: make(chan describeReply, 4)}
	defer q.end()
	sources, err := q.run(ctx)
	if err != nil {
		return nil, fmt.Errorf("describe %s: %w", typ, err)
	}
	return sources, nil
}

// question is one call of DescribeType.
type question struct {
	n         *Node
	publisher rtps.GUID
	typ, hash string

	node    string // of the publisher; "" unknown
	servers map[serverKey]*server
	replies chan describeReply // with room for several servers; what does not fit is dropped and asked for again
}

// server is a service that may know the answer.
type server struct {
	client *describeClient
	tries  int
	next   time.Time // of the next try, once it was asked
	failed error     // it has answered, but without what we want: it is not asked again
}

func (q *question) run(ctx context.Context) ([]ros.TypeSource, error) {
	for {
		changed := q.n.graph.Changed() // before the look: a change in between is not missed
		if err := q.look(); err != nil {
			return nil, err
		}
		for looking := true; looking; {
			if err := q.refusals(); err != nil {
				return nil, err
			}
			wait, err := q.ask()
			if err != nil {
				return nil, err
			}
			select {
			case r := <-q.replies:
				if sources := q.take(r); sources != nil {
					return sources, nil
				}
			case <-changed:
				looking = false
			case <-time.After(wait):
			case <-q.n.stop:
				return nil, fmt.Errorf("node: %w", ros.ErrClosed)
			case <-ctx.Done():
				return nil, fmt.Errorf("%s: %w", q.state(), ctx.Err())
			}
		}
	}
}

// look finds the services that may be asked, and drops those that are gone.
func (q *question) look() error {
	q.node = q.n.names.owner(q.publisher)
	there, prefix := false, q.publisher.Prefix()
	found := q.n.p.Select(func(e *rtps.Endpoint) bool {
		if e.Local || e.GUID.Prefix() != prefix {
			return false
		}
		there = there || e.GUID == q.publisher
		return !e.Writer && !e.Keyed && e.Type == describeRequest && strings.HasSuffix(e.Topic, describeSuffix+"Request")
	})
	if !there {
		return fmt.Errorf("publisher %v is not there", q.publisher)
	}
	listed := map[serverKey]bool{}
	for _, e := range found {
		_, service, ok := DemangleTopic(e.Topic)
		if !ok || q.node != "" && service != q.node+describeSuffix {
			continue
		}
		key := serverKey{prefix: prefix, service: service, vendor: e.Vendor}
		listed[key] = true
		if q.servers[key] != nil {
			continue
		}
		c, err := q.n.asks.client(q.n, key)
		if err != nil {
			return err
		}
		q.servers[key] = &server{client: c}
	}
	for key, s := range q.servers {
		if !listed[key] {
			q.leave(s)
			delete(q.servers, key)
		}
	}
	return nil
}

// ask sends the question where it is due, and returns how long to wait until there is more to do.
func (q *question) ask() (wait time.Duration, err error) {
	wait = lastRepeat
	for _, s := range q.servers {
		if s.failed != nil {
			continue
		}
		if s.tries == 0 && !s.client.known() {
			wait = min(wait, matchTick)
			continue
		}
		if s.tries == 0 || time.Until(s.next) <= 0 {
			if err := s.client.ask(q.typ, q.hash, q.replies); err != nil {
				return 0, closedError(err)
			}
			s.next = time.Now().Add(min(firstRepeat<<min(s.tries, 10), lastRepeat))
			s.tries++
		}
		wait = min(wait, max(time.Until(s.next), time.Millisecond))
	}
	return wait, nil
}

// take reads a reply; nil if it is not the answer.
func (q *question) take(r describeReply) []ros.TypeSource {
	defer r.sample.Release()
	s := q.servers[r.from.key]
	if s == nil || s.client != r.from || s.failed != nil {
		return nil
	}
	sources, err := parseDescription(r.from.form, r.sample.Data)
	if err == nil && !slices.ContainsFunc(sources, func(s ros.TypeSource) bool { return s.Type == q.typ }) {
		err = fmt.Errorf("it is not among the %d sources of the reply", len(sources))
	}
	if err != nil {
		s.failed = fmt.Errorf("service %s: %w", r.from.key.service, err)
		return nil
	}
	return sources
}

// refusals is why nobody can be asked any more, nil while somebody can.
func (q *question) refusals() error {
	if len(q.servers) == 0 {
		return nil
	}
	var errs []error
	for _, s := range q.servers {
		if s.failed == nil {
			return nil
		}
		errs = append(errs, s.failed)
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	all := errs[0]
	for _, err := range errs[1:] {
		all = fmt.Errorf("%w; %w", all, err) // in one line
	}
	return all
}

// state says what was waited for.
func (q *question) state() string {
	owner := "node " + q.node
	if q.node == "" {
		owner = fmt.Sprintf("the node of publisher %v is not known and its participant", q.publisher)
	}
	if len(q.servers) == 0 {
		return owner + " has no service get_type_description"
	}
	var silent []string
	for key, s := range q.servers {
		switch {
		case s.failed != nil:
		case s.tries == 0:
			silent = append(silent, key.service+" is not connected")
		default:
			silent = append(silent, fmt.Sprintf("%s did not answer, asked %d times", key.service, s.tries))
		}
	}
	slices.Sort(silent)
	return "service " + strings.Join(silent, ", ")
}

// leave ends the interest in a server.
func (q *question) leave(s *server) {
	s.client.forget(q.replies)
	q.n.asks.release(s.client)
}

// end leaves all servers and gives back what they have sent since.
func (q *question) end() {
	for _, s := range q.servers {
		q.leave(s)
	}
	for {
		select {
		case r := <-q.replies:
			r.sample.Release()
		default:
			return
		}
	}
}
