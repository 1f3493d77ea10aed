package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// TriggerNode offers services without arguments, as std_srvs/Trigger of ROS 1: what they do was done or not, and a text.
type TriggerNode interface {
	ServeTrigger(name string, handle func() (done bool, text string)) (io.Closer, error)
}

// Triggers are the services that ServeTriggers has made.
type Triggers struct{ list []io.Closer }

// limitedTriggers are offered with RemoteLimited; the others end or change more.
var limitedTriggers = []string{"pause", "resume", "toggle", "split", "snapshot", "status"}

// ServeTriggers offers commands below a node's name, "/gobag_recorder": each that can do without arguments becomes a
// service "/gobag_recorder/pause". The text is what the command returned, as JSON, or its error.
func ServeTriggers(node TriggerNode, nodeName string, commands Commands, remote Remote, log *slog.Logger) (*Triggers, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &Triggers{}
	if remote == RemoteOff {
		return t, nil
	}
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		if remote != RemoteFull && !slices.Contains(limitedTriggers, name) {
			continue
		}
		c := commands[name]
		service := strings.TrimSuffix(nodeName, "/") + "/" + strings.ReplaceAll(name, "-", "_")
		s, err := node.ServeTrigger(service, func() (bool, string) { return c.trigger(log, service) })
		if err != nil {
			return nil, errors.Join(fmt.Errorf("control: %w", err), t.Close())
		}
		t.list = append(t.list, s)
	}
	return t, nil
}

// trigger runs a command for a caller of a service.
func (c Command) trigger(log *slog.Logger, service string) (bool, string) {
	v, err := c.Run(nil)
	if err != nil {
		log.Info("a service was called and failed", "service", service, "err", err)
		return false, err.Error()
	}
	if v == nil {
		return true, ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return false, err.Error()
	}
	return true, string(text)
}

// Close ends all of them.
func (t *Triggers) Close() error {
	var errs []error
	for _, s := range t.list {
		errs = append(errs, s.Close())
	}
	t.list = nil
	return errors.Join(errs...)
}
