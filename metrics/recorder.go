package metrics

import (
	"time"

	"github.com/gobag/gobag/player"
	"github.com/gobag/gobag/recorder"
)

// Recorder are the metrics of a recording: its loss ledger by topic and reason, rates, queue, flushes, disk, and the
// process.
func Recorder(s recorder.Snapshot) []Metric {
	seconds := func(d time.Duration) float64 { return d.Seconds() }
	var received, recorded, lost, bytes, skipped, rate, writers []Value
	for _, t := range s.Topics {
		topic := []Label{{"topic", t.Name}}
		received = append(received, Value{topic, float64(t.Received)})
		recorded = append(recorded, Value{topic, float64(t.Recorded)})
		bytes = append(bytes, Value{topic, float64(t.Bytes)})
		skipped = append(skipped, Value{topic, float64(t.Skipped)})
		rate = append(rate, Value{topic, t.Rate})
		writers = append(writers, Value{topic, float64(t.Writers)})
		for _, l := range []struct {
			reason string
			n      uint64
		}{{"wire", t.Lost.Wire}, {"queue", t.Lost.Queue}, {"storage", t.Lost.Storage}} {
			lost = append(lost, Value{[]Label{{"topic", t.Name}, {"reason", l.reason}}, float64(l.n)})
		}
	}
	list := []Metric{
		{"gobag_record_received_messages_total", "Messages that came in.", Counter, received},
		{"gobag_record_recorded_messages_total", "Messages that the storage has taken.", Counter, recorded},
		{"gobag_record_recorded_bytes_total", "Payload of those.", Counter, bytes},
		{"gobag_record_lost_messages_total", "Messages lost, by reason: on the wire, at the full queue, by the storage.", Counter, lost},
		{"gobag_record_skipped_messages_total", "Messages that came and were not to be recorded.", Counter, skipped},
		{"gobag_record_topic_rate_hertz", "Messages received per second, over the last second.", Gauge, rate},
		{"gobag_record_topic_publishers", "Publishers of the topic.", Gauge, writers},
		One("gobag_record_messages_per_second", "Messages received per second, over the last second.", Gauge, s.Rate),
		One("gobag_record_bytes_per_second", "Payload recorded per second, over the last second.", Gauge, s.ByteRate),
		One("gobag_record_queue_messages", "Messages in the queue.", Gauge, float64(s.Queue.Len)),
		One("gobag_record_queue_bytes", "Memory that the queue holds.", Gauge, float64(s.Queue.Bytes)),
		One("gobag_record_queue_limit_bytes", "Memory that it may hold.", Gauge, float64(s.Queue.MaxBytes)),
		One("gobag_record_queue_high_water_bytes", "The most it has held.", Gauge, float64(s.Queue.HighWater)),
		One("gobag_record_flushes_total", "Batches handed to the storage.", Counter, float64(s.Flushes.Count)),
		One("gobag_record_flush_seconds_total", "Time the storage took for them.", Counter, seconds(s.Flushes.Time)),
		One("gobag_record_flush_max_seconds", "The longest of them.", Gauge, seconds(s.Flushes.Max)),
		One("gobag_record_storage_stalled_seconds", "How long the storage has not answered.", Gauge, seconds(s.Stalled)),
		One("gobag_record_bag_bytes", "Size of the bag on disk.", Gauge, float64(s.DiskBytes)),
		One("gobag_record_free_bytes", "Left on the disk at the last look; 0 unknown.", Gauge, float64(s.FreeBytes)),
		One("gobag_record_files_total", "Files of the bag begun.", Counter, float64(s.Files)),
		One("gobag_record_elapsed_seconds", "Since the bag was opened.", Gauge, seconds(s.Elapsed)),
		One("gobag_record_paused", "1 while the recording pauses.", Gauge, flag(s.Paused)),
		One("gobag_record_healthy", "1 while the storage takes what comes.", Gauge, flag(s.Healthy || s.State == recorder.StateNew)),
		One("gobag_record_missing", "Named topics, services and actions that have not appeared.", Gauge, float64(len(s.Missing))),
		One("gobag_record_clock_steps_total", "Times that the wall clock was set.", Counter, float64(s.ClockSteps)),
	}
	return append(list, Process()...)
}

// Player are the metrics of a playback, and of the process.
func Player(s player.Snapshot) []Metric {
	var late []Value
	for _, q := range []struct {
		name string
		d    time.Duration
	}{{"0.5", s.Lateness.P50}, {"0.99", s.Lateness.P99}, {"1", s.Lateness.Max}} {
		late = append(late, Value{[]Label{{"quantile", q.name}}, q.d.Seconds()})
	}
	position := 0.0
	if s.Position > s.Start {
		position = float64(s.Position-s.Start) / 1e9
	}
	list := []Metric{
		One("gobag_play_messages_total", "Messages published.", Counter, float64(s.Played)),
		One("gobag_play_loops_total", "Times that the bag began again.", Counter, float64(s.Loops)),
		One("gobag_play_rate", "How fast it is played, 1 = as recorded.", Gauge, s.Rate),
		One("gobag_play_position_seconds", "In the bag, from its start.", Gauge, position),
		One("gobag_play_length_seconds", "Of what is played.", Gauge, s.Total.Seconds()),
		{"gobag_play_late_seconds", "How long after they were due messages were published.", Gauge, late},
		One("gobag_play_late_messages_total", "Messages more than 1 ms late.", Counter, float64(s.Lateness.Late)),
	}
	return append(list, Process()...)
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
