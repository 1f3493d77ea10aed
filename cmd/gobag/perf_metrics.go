package main

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/gobag/gobag/metrics"
	"github.com/gobag/gobag/perf"
	"github.com/spf13/pflag"
)

// metricsFlag is --metrics.
type metricsFlag struct{ address string }

func (f *metricsFlag) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.address, "metrics", "", "serve Prometheus metrics at http://`ADDR`/metrics, HOST:PORT or :PORT (without a value "+metrics.DefaultAddress+", this host only)")
	optionalAddress(fs, "metrics", metrics.DefaultAddress)
}

// metricsServer is a server that may not be there.
type metricsServer struct {
	server *metrics.Server // nil: nothing is served
	log    *slog.Logger
}

// Close ends it.
func (s metricsServer) Close() {
	if err := s.server.Close(); err != nil {
		s.log.Warn(err.Error())
	}
}

// serve serves what collect returns, where that was asked for.
func (f *metricsFlag) serve(a *app, collect func() []metrics.Metric) (s metricsServer, err error) {
	if f.address == "" {
		return s, nil
	}
	s.log = a.logger
	if s.server, err = metrics.Serve(f.address, collect); err != nil {
		return s, fmt.Errorf("--metrics %s: %w", f.address, err)
	}
	a.logger.Info("metrics at http://" + s.server.Addr() + "/metrics")
	return s, nil
}

// servePerf serves the progress of a matrix run and the figures of its finished cells. It hooks into the run's callbacks.
func (f *metricsFlag) servePerf(a *app, o *perf.RecordOptions) (s metricsServer, err error) {
	if f.address == "" {
		return s, nil
	}
	var mu sync.Mutex
	var cell, cells int
	var done float64
	var finished []perf.Cell
	o.OnProgress = func(c, n int, share float64, _ string) {
		mu.Lock()
		defer mu.Unlock()
		cell, cells, done = c, n, share
	}
	o.OnCell = func(c perf.Cell) {
		c.Series = nil
		mu.Lock()
		defer mu.Unlock()
		finished = append(finished, c)
	}
	return f.serve(a, func() []metrics.Metric {
		mu.Lock()
		defer mu.Unlock()
		return append(perfMetrics(cell, cells, done, finished), metrics.Process()...)
	})
}

// perfMetrics are the progress of a run and its finished cells.
func perfMetrics(cell, cells int, done float64, finished []perf.Cell) []metrics.Metric {
	list := []metrics.Metric{
		metrics.One("gobag_perf_cell", "Number of the cell that runs.", metrics.Gauge, float64(cell)),
		metrics.One("gobag_perf_cells", "Number of cells of the run.", metrics.Gauge, float64(cells)),
		metrics.One("gobag_perf_done_ratio", "Share of the run's time that is over.", metrics.Gauge, done),
	}
	for _, m := range []struct {
		name, help string
		value      func(*perf.Cell) float64
	}{
		{"gobag_perf_recorded_ratio", "Share of the messages sent that a cell recorded.", func(c *perf.Cell) float64 { return c.Percent() / 100 }},
		{"gobag_perf_sent_messages", "Messages that a cell's publishers sent.", func(c *perf.Cell) float64 { return float64(c.Publisher.Sent) }},
		{"gobag_perf_recorder_cpu_seconds", "CPU time of a cell's recorder.", func(c *perf.Cell) float64 { return c.Recorder.CPUSeconds }},
		{"gobag_perf_recorder_peak_resident_bytes", "Peak of a cell's recorder's resident memory.", func(c *perf.Cell) float64 { return float64(c.Recorder.PeakRSS) }},
		{"gobag_perf_latency_p99_seconds", "Latency of a cell's messages from when they were due.", func(c *perf.Cell) float64 { return c.Latency.P99.Seconds() }},
		{"gobag_perf_failed", "1 for a cell that failed.", func(c *perf.Cell) float64 {
			if c.Failed() != "" {
				return 1
			}
			return 0
		}},
	} {
		metric := metrics.Metric{Name: m.name, Help: m.help, Kind: metrics.Gauge}
		for i := range finished {
			c := &finished[i]
			metric.Values = append(metric.Values, metrics.Value{Labels: []metrics.Label{{Name: "cell", Value: fmt.Sprint(i + 1)}, {Name: "load", Value: c.Load},
				{Name: "storage", Value: c.Storage}, {Name: "preset", Value: c.Preset}, {Name: "run", Value: fmt.Sprint(c.Repeat)}}, Value: m.value(c)})
		}
		list = append(list, metric)
	}
	return list
}
