package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// DefaultAddress is where metrics are served when no address is given: on this host only.
const DefaultAddress = "127.0.0.1:9477"

// Server serves metrics over HTTP at /metrics.
type Server struct {
	http *http.Server
	addr net.Addr
	done chan struct{}
	once sync.Once
	err  error
}

// Serve listens on address: HOST:PORT, :PORT for every interface, port 0 for a free one. collect is called for each
// request, by one goroutine at a time; it must not block. Close the server.
func Serve(address string, collect func() []Metric) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	var mu sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		list := collect()
		mu.Unlock()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_ = Write(w, list) // the other side is gone
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!DOCTYPE html><title>gobag</title><a href=\"/metrics\">metrics</a>\n"))
	})
	s := &Server{addr: l.Addr(), done: make(chan struct{}),
		http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.err = fmt.Errorf("metrics: %w", err)
		}
	}()
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() string { return s.addr.String() }

// Close ends the server and waits for requests under way, a second at most. Idempotent; a nil server is closed.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if s.http.Shutdown(ctx) != nil {
			_ = s.http.Close() // Shutdown's error says only that it took too long
		}
		<-s.done
	})
	return s.err
}
