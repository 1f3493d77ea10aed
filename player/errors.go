package player

import (
	"errors"
	"fmt"
	"strings"
)

// Errors that callers test for.
var (
	// ErrNoTopics says that the selection leaves nothing of the bag's topics, or that none can be published.
	ErrNoTopics = errors.New("no topic to play")

	// ErrLive is what a *LiveError is.
	ErrLive = errors.New("topics are being published by others")

	// ErrRunning says that Run was called twice.
	ErrRunning = errors.New("player already ran")
)

// LiveError names topics that somebody else publishes right now. Playing into them would mix two sources.
type LiveError struct {
	Topics []string
	Nodes  []string // who publishes them, where known
}

func (e *LiveError) Error() string {
	s := "topics are being published by others: " + strings.Join(e.Topics, ", ")
	if len(e.Nodes) > 0 {
		s += " (by " + strings.Join(e.Nodes, ", ") + ")"
	}
	return s + "; remap or exclude them, or allow live topics"
}

// Is makes it an ErrLive.
func (e *LiveError) Is(target error) bool { return target == ErrLive }

// plural is "1 message", "2 messages".
func plural(n uint64, what string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
