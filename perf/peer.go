package perf

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/ros"
)

// PeerPublisher is a program that publishes a load in our place: one of interop/peers (cy_pub on Cyclone DDS, fa_pub on
// Fast DDS), or another with their command line and events.
type PeerPublisher struct {
	Name string   // for the report
	Path string   // of the program
	Args []string // before all others
}

// peerType is the type of their messages: instance, number, time since the start when it was due, data.
const peerType = "load_msgs/msg/Blob"

// maxPeerGroups is how many groups such a program takes.
const maxPeerGroups = 32

func (p *PeerPublisher) validate(l Load) error {
	if len(l.Groups) > maxPeerGroups {
		return fmt.Errorf("publisher %s: %d groups: more than %d", p.Name, len(l.Groups), maxPeerGroups)
	}
	if _, err := exec.LookPath(p.Path); err != nil {
		return fmt.Errorf("publisher %s: %w (\"make -C interop peers\" builds it)", p.Name, err)
	}
	return nil
}

// command makes the process that publishes a load.
func (p *PeerPublisher) command(ctx context.Context, l Load, domain int) *exec.Cmd {
	args := append([]string{}, p.Args...)
	args = append(args, "--wait", "1", "--linger", "10", "--seconds", strconv.FormatFloat(l.Span().Seconds(), 'f', 3, 64))
	for _, g := range l.Groups {
		spec := fmt.Sprintf("type=blob,topic=%s%s,n=%d,hz=%g,size=%d,count=%d", LoadTopicRoot, g.Name, g.Instances, g.Frequency, g.Size, g.perTopic(l.Duration))
		if g.Reliability == ros.BestEffort.String() {
			spec += ",rel=best_effort"
		}
		if g.Durability == ros.TransientLocal.String() {
			spec += ",dur=transient_local"
		}
		if g.Depth > 0 {
			spec += fmt.Sprintf(",depth=%d", g.Depth)
		}
		args = append(args, "-t", spec)
	}
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Env = append(os.Environ(), "ROS_DOMAIN_ID="+strconv.Itoa(domain), `CYCLONEDDS_URI=<CycloneDDS><Domain id="any"><General><Interfaces>`+
		`<NetworkInterface name="lo" multicast="true"/></Interfaces></General></Domain></CycloneDDS>`)
	return cmd
}

// result reads the program's events: a line of JSON each.
func (p *PeerPublisher) result(out []byte, l Load) (LoadResult, error) {
	res := LoadResult{Expected: l.Expected(), Acked: true}
	numbers := map[string]int{} // topic to number
	for _, g := range l.Groups {
		for i := range g.Instances {
			numbers[fmt.Sprintf("%s%s_%d", LoadTopicRoot, g.Name, i)] = len(numbers)
		}
	}
	res.PerTopic = make([]uint64, len(numbers))
	start, end := int64(0), int64(0)
	s := bufio.NewScanner(bytes.NewReader(out))
	for s.Scan() {
		var e struct {
			Event  string `json:"event"`
			Topic  string `json:"topic"`
			Mono   int64  `json:"mono_ns"`
			Wall   int64  `json:"wall_ns"`
			Sent   uint64 `json:"sent"`
			Last   int64  `json:"last_ns"`
			Lag    int64  `json:"lag_ns"`
			Max    int64  `json:"max_ns"`
			Failed uint64 `json:"failed"`
		}
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return res, fmt.Errorf("%s: %w in %.200q", p.Name, err, s.Text())
		}
		switch e.Event {
		case "start":
			start, res.Start = e.Mono, e.Wall
		case "topic":
			n, ok := numbers[e.Topic]
			if !ok {
				return res, fmt.Errorf("%s: it published %s, which it was not asked to", p.Name, e.Topic)
			}
			res.PerTopic[n] = e.Sent
			res.Sent += e.Sent
			res.LateMax, res.CallMax = max(res.LateMax, time.Duration(e.Lag)), max(res.CallMax, time.Duration(e.Max))
			end = max(end, e.Last)
		}
	}
	if start == 0 || res.Sent == 0 {
		return res, errors.New("it tells of no start, or of nothing sent")
	}
	res.Seconds = float64(end-start) / 1e9
	return res, s.Err()
}

// peerStamp reads what a message of such a program says of itself.
func peerStamp(payload []byte, start int64) (s sentStamp, err error) {
	d, err := cdr.NewDecoder(payload)
	if err != nil {
		return s, err
	}
	d.Uint32() // instance
	s.number = int64(d.Uint32())
	after := d.Uint64()
	if d.ByteSeq(); d.Err() != nil {
		return s, d.Err()
	}
	if after < math.MaxInt64/2 {
		s.due = start + int64(after)
	}
	return s, nil
}

// PeerNames are the publishers that --publisher names; programs are looked for in dir.
func PeerNames(word, dir string) (*PeerPublisher, error) {
	join := func(name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }
	switch word {
	case "", ownPublishers:
		return nil, nil
	case "cyclone":
		return &PeerPublisher{Name: "Cyclone DDS", Path: join("cy_pub")}, nil
	case "fast":
		return &PeerPublisher{Name: "Fast DDS, UDP", Path: join("fa_pub"), Args: []string{"--transport", "udp"}}, nil
	case "fast-shm":
		return &PeerPublisher{Name: "Fast DDS, default transports", Path: join("fa_pub"), Args: []string{"--transport", "default"}}, nil
	}
	if !strings.ContainsRune(word, '/') {
		return nil, fmt.Errorf("publisher %q: gobag, cyclone, fast, fast-shm or the path of a program", word)
	}
	return &PeerPublisher{Name: word, Path: word}, nil
}
