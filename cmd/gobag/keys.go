package main

import (
	"context"
	"io"
	"os"
)

// key is a key that a verb listens to.
type key int

const (
	keyNone key = iota
	keySpace
	keyRight
	keyUp
	keyDown
)

// readKeys calls f with every key typed on the terminal stdin until ctx ends; stop waits for that and puts the terminal
// back. Without a terminal, or in the background, nothing is read and stop does nothing.
func readKeys(ctx context.Context, stdin io.Reader, f func(key)) (stop func()) {
	tty, ok := stdin.(*os.File)
	if !ok || !isTerminal(tty) || !foreground(tty) {
		return func() {}
	}
	restore, err := rawKeys(tty)
	if err != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var p keyParser
		buf := make([]byte, 64)
		for ctx.Err() == nil {
			if !waitKey(tty, 100) {
				continue
			}
			n, err := tty.Read(buf)
			if err != nil || n == 0 {
				return
			}
			for _, b := range buf[:n] {
				if k := p.feed(b); k != keyNone {
					f(k)
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
		restore()
	}
}

// keyParser recognises keys in a terminal's bytes. Arrows are ESC [ A..D, or ESC O A..D in application mode.
type keyParser struct{ state byte }

func (p *keyParser) feed(b byte) key {
	state := p.state
	p.state = 0
	switch {
	case b == 0x1b:
		p.state = 0x1b
	case state == 0x1b && (b == '[' || b == 'O'):
		p.state = '['
	case state == '[':
		switch b {
		case 'A':
			return keyUp
		case 'B':
			return keyDown
		case 'C':
			return keyRight
		}
		if b >= '0' && b <= '?' { // parameters of a longer sequence
			p.state = '['
		}
	case state == 0 && b == ' ':
		return keySpace
	}
	return keyNone
}
