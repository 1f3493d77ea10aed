package main

import (
	"errors"
	"fmt"
	"net"
	"os"
)

// Domains that freeDomain chooses from: away from 0 and the low numbers that people give to robots, and below 102, from
// where on the ports collide with Linux's ephemeral ones.
const (
	firstFree = 60
	lastFree  = 99
)

// freeDomain returns a ROS domain that nobody on this machine uses: its discovery port is not bound. Which one is tried
// first depends on the process, so that several at once choose different ones.
func freeDomain() (int, error) {
	const n = lastFree - firstFree + 1
	for i := range n {
		d := firstFree + (os.Getpid()+i)%n
		if discoveryPortFree(d) {
			return d, nil
		}
	}
	return 0, errors.New("no free ROS domain: every one from 60 to 99 is in use on this machine")
}

// discoveryPortFree: every participant of a domain binds the multicast discovery port 7400 + 250 × domain (RTPS 2.5
// §9.6.2.4), shared among those that ask for sharing. We do not, so that binding fails where there is one.
func discoveryPortFree(domain int) bool {
	c, err := net.ListenPacket("udp4", fmt.Sprintf(":%d", 7400+250*domain))
	if err != nil {
		return false
	}
	return c.Close() == nil
}
