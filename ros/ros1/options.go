package ros1

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"
)

// Options configure a node. Master is needed.
type Options struct {
	Master string // ROS_MASTER_URI, "http://robot:11311"
	Host   string // the name or address that others reach us at; "" = the address that the master is reached from
	Name   string // of the node, without what makes it unique; "" = "gobag"

	Poll        time.Duration // how often the master is asked for the graph; 0 = 1 s
	Window      int           // bytes that a publisher keeps for a subscriber that is behind; 0 = 8 MiB
	MaxBlocking time.Duration // how long Publish waits for it; 0 = 100 ms
	MaxMessage  int           // bytes of the largest message taken; 0 = 1 GiB

	Now    func() int64 // wall clock for receive stamps, ns since the Unix epoch; nil = the system's
	Logger *slog.Logger // nil is silent
}

const (
	defaultPoll       = time.Second
	defaultWindow     = 8 << 20
	defaultBlocking   = 100 * time.Millisecond
	defaultMaxMessage = 1 << 30
	defaultPort       = "11311"
)

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = "gobag"
	}
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	if o.Window <= 0 {
		o.Window = defaultWindow
	}
	if o.MaxBlocking <= 0 {
		o.MaxBlocking = defaultBlocking
	}
	if o.MaxMessage <= 0 || o.MaxMessage > defaultMaxMessage {
		o.MaxMessage = defaultMaxMessage
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// OptionsFromEnv reads ROS_MASTER_URI, ROS_HOSTNAME, ROS_IP and the name; pass os.Getenv. As in ROS 1 the host name wins
// over the address. Warnings name what is not honoured.
func OptionsFromEnv(getenv func(string) string) (o Options, warnings []string, err error) {
	o.Master = getenv("ROS_MASTER_URI")
	if o.Master == "" {
		return o, nil, errors.New("ROS_MASTER_URI is not set: where is the ROS 1 master, http://robot:11311?")
	}
	if _, err := masterAddress(o.Master); err != nil {
		return o, nil, fmt.Errorf("environment ROS_MASTER_URI=%s: %w", o.Master, err)
	}
	if o.Host = getenv("ROS_HOSTNAME"); o.Host == "" {
		o.Host = getenv("ROS_IP")
	}
	if ns := strings.Trim(getenv("ROS_NAMESPACE"), "/"); ns != "" {
		warnings = append(warnings, fmt.Sprintf("ROS_NAMESPACE=%s: not used, topics are named in full", ns))
	}
	if v := getenv("ROS_IPV6"); v == "on" {
		warnings = append(warnings, "ROS_IPV6=on: names are resolved as the system does")
	}
	return o, warnings, nil
}

// masterAddress returns host and port of a master's URI.
func masterAddress(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" {
		return "", errors.New("want http://host:port")
	}
	port := u.Port()
	if port == "" {
		port = defaultPort
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// ownHost returns the address that reaches the master: others that reach the master reach it too.
func ownHost(master string) (string, error) {
	c, err := net.Dial("udp", master) // sends nothing
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }() // nothing was sent
	return c.LocalAddr().(*net.UDPAddr).IP.String(), nil
}

// uniqueName is a node name that no other node has: the master shuts the first of two down.
func uniqueName(base string, now int64) string {
	return fmt.Sprintf("/%s_%d_%d", strings.Trim(base, "/"), os.Getpid(), now)
}
