package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/ros"
)

// burstLimit is the longest that a caller waits for a burst.
const burstLimit = time.Hour

// ServePlayer offers a player's services below the node's name, "/rosbag2_player".
func ServePlayer(node ros.Node, nodeName string, p *player.Player, remote Remote, log *slog.Logger) (*Servers, error) {
	return serve(node, nodeName, playerServices(p), remote, log)
}

func playerServices(p *player.Player) []service {
	return []service{
		{name: "pause", typ: "Pause", handle: func(*fields, *cdr.Encoder) { p.Pause() }},
		{name: "resume", typ: "Resume", handle: func(_ *fields, e *cdr.Encoder) {
			p.Resume()
			result(e, codeOK, nil)
		}},
		{name: "toggle_paused", typ: "TogglePaused", handle: func(*fields, *cdr.Encoder) { p.Toggle() }},
		{name: "is_paused", typ: "IsPaused", handle: func(_ *fields, e *cdr.Encoder) { e.Bool(p.Paused()) }},
		{name: "get_rate", typ: "GetRate", handle: func(_ *fields, e *cdr.Encoder) { e.Float64(p.Rate()) }},
		{name: "set_rate", typ: "SetRate", full: true, handle: func(f *fields, e *cdr.Encoder) { e.Bool(p.SetRate(f.d.Float64()) == nil) }},
		{name: "play_next", typ: "PlayNext", full: true, handle: func(_ *fields, e *cdr.Encoder) { e.Bool(p.PlayNext()) }},
		{name: "burst", typ: "Burst", full: true, handle: func(f *fields, e *cdr.Encoder) { e.Uint64(burst(p, f.d.Uint64())) }},
		{name: "seek", typ: "Seek", full: true, handle: func(f *fields, e *cdr.Encoder) { e.Bool(p.SeekTo(f.time())) }},
		{name: "play", typ: "Play", full: true, handle: func(_ *fields, e *cdr.Encoder) { e.Bool(false) }}, // it plays already
		{name: "stop", typ: "Stop", full: true, handle: func(_ *fields, e *cdr.Encoder) {
			p.Stop()
			result(e, codeOK, nil)
		}},
	}
}

func burst(p *player.Player, n uint64) uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), burstLimit)
	defer cancel()
	return p.Burst(ctx, n)
}

// PlayerCommands are a player's commands for a Socket.
func PlayerCommands(p *player.Player) Commands {
	return Commands{
		"pause":  {Help: "stop the bag's time", Run: func([]string) (any, error) { p.Pause(); return paused(true), nil }},
		"resume": {Help: "go on", Run: func([]string) (any, error) { p.Resume(); return paused(false), nil }},
		"toggle": {Help: "pause or resume", Run: func([]string) (any, error) { return paused(p.Toggle()), nil }},
		"stop":   {Help: "end the playback", Run: func([]string) (any, error) { p.Stop(); return nil, nil }},
		"rate": {Help: "say or set how fast: rate [FACTOR]", Args: 1, Run: func(args []string) (any, error) {
			if len(args) > 0 {
				r, err := strconv.ParseFloat(args[0], 64)
				if err != nil {
					return nil, fmt.Errorf("rate %q: not a number", args[0])
				}
				if err := p.SetRate(r); err != nil {
					return nil, err
				}
			}
			return map[string]any{"rate": p.Rate()}, nil
		}},
		"next": {Help: "publish the next message, while paused", Run: func([]string) (any, error) {
			if !p.PlayNext() {
				return nil, errors.New("the next message can be played while paused only")
			}
			return nil, nil
		}},
		"burst": {Help: "publish the next N messages at once, while paused: burst [N], 0 = all", Args: 1, Run: func(args []string) (any, error) {
			var n uint64
			if len(args) > 0 {
				var err error
				if n, err = strconv.ParseUint(args[0], 10, 64); err != nil {
					return nil, fmt.Errorf("burst %q: not a number of messages", args[0])
				}
			}
			if !p.Paused() {
				return nil, errors.New("a burst can be played while paused only")
			}
			return map[string]any{"burst": burst(p, n)}, nil
		}},
		"seek": {Help: "go to a time: seek +SECONDS after the start, or a stamp in seconds or nanoseconds", Args: 1, Run: func(args []string) (any, error) {
			if len(args) == 0 {
				return nil, errors.New("seek where to: +SECONDS after the start, or a stamp")
			}
			stamp, err := parseStamp(args[0], p)
			if err != nil {
				return nil, err
			}
			if !p.SeekTo(stamp) {
				return nil, fmt.Errorf("%s is behind the end of what is played", args[0])
			}
			return nil, nil
		}},
		"status": {Help: "what it is doing", Run: func([]string) (any, error) {
			s := p.Snapshot()
			return map[string]any{"state": s.State.String(), "position_ns": s.Position, "start_ns": s.Start, "end_ns": s.End,
				"elapsed_s": s.Elapsed.Seconds(), "total_s": s.Total.Seconds(), "rate": s.Rate, "played": s.Played, "loops": s.Loops,
				"late_p50_ns": int64(s.Lateness.P50), "late_p99_ns": int64(s.Lateness.P99)}, nil
		}},
	}
}

// parseStamp reads seconds after the start ("+30"), seconds since 1970, or nanoseconds where there are 16 digits and more.
func parseStamp(s string, p *player.Player) (int64, error) {
	bad := fmt.Errorf("%q is not a time", s)
	if rest, ok := strings.CutPrefix(s, "+"); ok {
		sec, err := strconv.ParseFloat(rest, 64)
		if err != nil || math.IsNaN(sec) || math.Abs(sec) > 1e9 {
			return 0, bad
		}
		start, _ := p.Bounds()
		return start + int64(sec*1e9), nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && len(s) >= 16 {
		return n, nil
	}
	sec, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(sec) || math.Abs(sec) > 9e9 {
		return 0, bad
	}
	whole := math.Floor(sec)
	return int64(whole)*1e9 + int64((sec-whole)*1e9), nil
}
