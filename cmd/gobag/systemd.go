package main

import (
	"errors"
	"net"
	"os"
	"strconv"
	"time"
)

// notifySystemd tells a systemd that started us (Type=notify, WatchdogSec=) that we run, and goes on telling it while healthy
// says so; when it does not, systemd's watchdog ends and restarts us. Without systemd nothing happens. What it returns ends it.
func notifySystemd(a *app, healthy func() bool) (stop func()) {
	address := a.env("NOTIFY_SOCKET")
	if address == "" {
		return func() {}
	}
	tell := func(state string) {
		c, err := net.Dial("unixgram", address)
		if err != nil {
			a.logger.Debug("systemd is not told: " + err.Error())
			return
		}
		_, err = c.Write([]byte(state))
		if err := errors.Join(err, c.Close()); err != nil {
			a.logger.Debug("systemd is not told: " + err.Error())
		}
	}
	tell("READY=1")
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		period := watchdogPeriod(a)
		if period == 0 {
			<-end
			return
		}
		tick := time.NewTicker(period)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				if healthy() {
					tell("WATCHDOG=1")
				}
			}
		}
	}()
	return func() {
		tell("STOPPING=1")
		close(end)
		<-done
	}
}

// watchdogPeriod is a third of the time within which systemd wants to hear of us; 0 = it does not.
func watchdogPeriod(a *app) time.Duration {
	us, err := strconv.ParseInt(a.env("WATCHDOG_USEC"), 10, 64)
	if err != nil || us <= 0 {
		return 0
	}
	if pid := a.env("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return max(time.Duration(us)*time.Microsecond/3, time.Millisecond)
}
