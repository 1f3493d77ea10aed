package columnar

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// kinds counts the parts of a closed or open storage by kind.
func kinds(t *testing.T, dir string) map[byte]int {
	t.Helper()
	s, err := readState(dir)
	if err != nil {
		t.Fatal(err)
	}
	n := map[byte]int{}
	for _, p := range s.parts {
		n[p.kind]++
		fi, err := os.Stat(filepath.Join(dir, filepath.FromSlash(p.name)))
		if err != nil || fi.Size() != p.size {
			t.Errorf("part %s: %v, want %d bytes", p.name, err, p.size)
		}
	}
	return n
}

// A payload that is not quite what its values give is kept by a patch, one that is nothing of the type as it is.
func TestOddPayloads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	mustTopic(t, w, reading)
	ms := readings(2000)
	for i := range ms {
		d := ms[i].Data
		switch i % 10 {
		case 1: // a padding byte
			ms[i].Data[4+4+len("sensor 1")+1] = 0xee
		case 2: // bytes behind the value
			ms[i].Data = append(d, 0, 0, 0)
		case 3:
			ms[i].Data = append(d, 1, 2, 3, 4, 5)
		case 4: // no text
			ms[i].Data[8] = 0xff
		case 5:
			ms[i].Data = d[:len(d)-5]
		case 6:
			ms[i].Data = nil
		case 7: // big endian is a form of its own
			ms[i].Data = []byte{0, 0, 0, 0, 0, 0, 0, 2, 'x', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6}
		}
	}
	mustWrite(t, w, ms...)
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t, mustOpen(t, dir), plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range ms {
		if ms[i].Data == nil {
			ms[i].Data = []byte{}
		}
		if got[i].Data == nil {
			got[i].Data = []byte{}
		}
	}
	checkAll(t, "odd payloads", got, ms)
	if n := kinds(t, dir); n[partTyped] != 1 || n[partRaw] != 1 {
		t.Errorf("parts: %v, want one of columns and one of payloads", n)
	}
	s, err := readState(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range s.parts {
		if want := uint64(400); p.kind == partRaw && p.rows != want {
			t.Errorf("%d payloads are stored as they are, want %d: those that are cut off or empty", p.rows, want)
		}
	}
}

// Many small topics have few files, and large ones have their own.
func TestManyTopics(t *testing.T) {
	for _, batch := range []int{20, 20_000} {
		if raceDetector && batch == 20 {
			continue
		}
		dir := filepath.Join(t.TempDir(), "s.columnar")
		w := mustCreate(t, dir, plugin.WriteOptions{})
		var want []plugin.Message
		for i := range 1000 {
			topic := reading
			topic.Name = fmt.Sprintf("/topic%d", i)
			if i%5 == 0 {
				topic.Definition = plugin.Definition{}
			}
			id := mustTopic(t, w, topic)
			for k, m := range readings(20) {
				m.Topic, m.RecvTime, m.Order = id, int64(k), 0
				want = append(want, m)
			}
		}
		large := reading
		large.Name = "/large"
		id := mustTopic(t, w, large)
		for _, m := range readings(3000) {
			m.Topic, m.Order = id, 0
			want = append(want, m)
		}
		for c := range slices.Chunk(want, batch) {
			mustWrite(t, w, c...)
		}
		for i := range want {
			want[i].Order = uint64(i + 1)
		}
		if err := w.Close(plugin.Metadata{}); err != nil {
			t.Fatal(err)
		}
		count := 0
		err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				count++
			}
			return err
		})
		if err != nil || count > 64+1 {
			t.Errorf("%d files, want at most 64 and one of the large topic (%v)", count, err)
		}
		r := mustOpen(t, dir)
		got, err := readAll(t, r, plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b plugin.Message) int { return int(a.Order) - int(b.Order) })
		checkAll(t, "many topics", got, want)
		one, err := readAll(t, r, plugin.Query{Topics: []plugin.TopicID{999}})
		if err != nil || len(one) != 20 {
			t.Errorf("%d messages of one topic, %v", len(one), err)
		}
	}
}

// The log does not grow without end: files of which everything is in parts go, and what there is of slow topics is
// carried over. A reader sees everything at any time.
func TestLogIsCleared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	w := mustCreate(t, dir, plugin.WriteOptions{Config: map[string]any{"part_size": 128 << 10}})
	w.set.segment, w.set.maxLog = 64<<10, 256<<10
	slow, fast := reading, reading
	slow.Name, fast.Name = "/slow", "/fast"
	fast.Definition = plugin.Definition{}
	mustTopic(t, w, slow)
	mustTopic(t, w, fast)
	var want []plugin.Message
	noise := make([]byte, 5000)
	x := uint64(1)
	for i := range 240 {
		for k := range noise {
			x = x*6364136223846793005 + 1
			noise[k] = byte(x >> 56)
		}
		m := plugin.Message{Topic: 2, RecvTime: int64(i), Order: uint64(len(want) + 1), Data: bytes.Clone(noise)}
		want = append(want, m)
		mustWrite(t, w, m)
		if i%4 == 0 {
			m := plugin.Message{Topic: 1, RecvTime: int64(i), Order: uint64(len(want) + 1), Data: readingData(i)}
			want = append(want, m)
			mustWrite(t, w, m)
		}
		if i%80 == 79 {
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			got, err := readAll(t, mustOpen(t, dir), plugin.Query{})
			if err != nil {
				t.Fatal(err)
			}
			checkAll(t, "while writing", got, want)
		}
	}
	var size int64
	for _, f := range files(t, dir, logDir, "*") {
		fi, err := os.Stat(f)
		if err == nil {
			size += fi.Size()
		}
	}
	if size > 3<<18 {
		t.Errorf("the log has %d bytes after 1.2 MB were written", size)
	}
	copied := copyDir(t, dir)
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{copied, dir} {
		r := mustOpen(t, d)
		got, err := readAll(t, r, plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		checkAll(t, d, got, want)
		if i := r.Info(); i.Messages != uint64(len(want)) || i.Topics[0].Count != 60 {
			t.Errorf("info: %d messages, %d of the slow topic", i.Messages, i.Topics[0].Count)
		}
	}
	if left := files(t, dir, logDir, "*"); len(left) > 0 {
		t.Errorf("the log is still there: %v", left)
	}
}

// A definition that changes begins new parts; each is read by its own.
func TestDefinitionChanges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	topic := reading
	ms := readings(300)
	topic.Definition = plugin.Definition{}
	mustTopic(t, w, topic)
	mustWrite(t, w, ms[:100]...)
	mustTopic(t, w, reading)
	mustWrite(t, w, ms[100:200]...)
	topic.Definition = plugin.Definition{Encoding: "ros2msg", Text: "uint8 first\nuint8[] rest\n"}
	mustTopic(t, w, topic)
	mustWrite(t, w, ms[200:]...)
	topic.Definition = plugin.Definition{Encoding: "ros2msg", Text: "no such thing at all"}
	mustTopic(t, w, topic)
	last := plugin.Message{Topic: 1, RecvTime: 1 << 62, Order: 301, Data: []byte("last")}
	mustWrite(t, w, last)
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t, mustOpen(t, dir), plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	checkAll(t, "definitions", got, append(ms, last))
	if n := kinds(t, dir); n[partTyped] < 1 || n[partRaw] < 2 {
		t.Errorf("parts: %v", n)
	}
}

// Parts and page groups overlap in time, stamps go back and forth, and queries come in both directions.
func TestOverlappingParts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	w.set.partPayload = 100 << 10
	other := reading
	other.Name = "/other"
	mustTopic(t, w, reading)
	mustTopic(t, w, other)
	ms := readings(10_000)
	for i := range ms {
		ms[i].RecvTime = int64(i*7919%10_000) / 3
		ms[i].Topic = plugin.TopicID(i%2 + 1)
	}
	for c := range slices.Chunk(ms, 1000) {
		mustWrite(t, w, c...)
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	if n := kinds(t, dir); n[partTyped] < 6 {
		t.Errorf("parts: %v, want several", n)
	}
	r := mustOpen(t, dir)
	for _, q := range []plugin.Query{{}, {Reverse: true}, {Topics: []plugin.TopicID{2}, Range: &plugin.TimeRange{Start: 500, End: 900}}} {
		var want []plugin.Message
		for _, m := range ms {
			if (q.Topics == nil || m.Topic == 2) && (q.Range == nil || m.RecvTime >= 500 && m.RecvTime <= 900) {
				want = append(want, m)
			}
		}
		slices.SortFunc(want, func(a, b plugin.Message) int {
			c := byTime(row{time: a.RecvTime, order: a.Order}, row{time: b.RecvTime, order: b.Order})
			if q.Reverse {
				return -c
			}
			return c
		})
		got, err := readAll(t, r, q)
		if err != nil {
			t.Fatal(err)
		}
		checkAll(t, fmt.Sprintf("%+v", q), got, want)
	}
}

// A file of the log whose messages have become parts while a sync waits for the disk with it stays open for that sync.
func TestForgottenWhileSyncing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	w := mustCreate(t, dir, plugin.WriteOptions{})
	mustTopic(t, w, reading)
	mustWrite(t, w, readings(10)...)
	w.mu.Lock()
	syncing, number := w.f, w.segment
	w.syncing = syncing
	err := w.nextSegment()
	w.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	w.forget(number)
	if err := datasync(syncing); err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	w.syncing, w.unsynced = nil, 1
	w.mu.Unlock()
	if err := w.sync(true); err != nil { // it is the next sync that closes the file
		t.Error(err)
	}
	if err := syncing.Sync(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it is open still: %v", err)
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Error(err)
	}
}

// Blocks on their way to the sealer take no more memory than is stated when each holds one small message.
func TestSyncEachMemory(t *testing.T) {
	w := mustCreate(t, filepath.Join(t.TempDir(), "s.columnar"), plugin.WriteOptions{Preset: plugin.PresetNone})
	mustTopic(t, w, reading)
	most := 0
	for i, m := range readings(3000) {
		mustWrite(t, w, m)
		if err := w.Sync(); err != nil {
			t.Fatal(i, err)
		}
		w.mu.Lock()
		waiting := 0
		var last *block
		for _, p := range w.queue {
			if p.k != last {
				waiting += cap(p.k.b)
			}
			last = p.k
		}
		waiting = max(waiting, w.inFlight)
		most = max(most, waiting)
		w.mu.Unlock()
	}
	if most > maxInFlight+2*blockSize {
		t.Errorf("%d bytes of blocks were waiting, more than %d", most, maxInFlight+2*blockSize)
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Error(err)
	}
}

// What was synced message by message is there at every moment, over several files of the log, and after closing.
func TestSyncEach(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s.columnar")
	w := mustCreate(t, dir, plugin.WriteOptions{Preset: plugin.PresetNone})
	w.set.segment = 100 << 10
	mustTopic(t, w, reading)
	ms := readings(6000)
	ms[2500].Data = append(ms[2500].Data, make([]byte, 2*blockSize)...) // a block of its own; a short patch would do for zeros
	for i, m := range ms {
		mustWrite(t, w, m)
		if i%7 == 3 {
			continue // two in a frame
		}
		if err := w.Sync(); err != nil {
			t.Fatal(i, err)
		}
		if i%997 != 0 {
			continue
		}
		got, err := readAll(t, mustOpen(t, copyDir(t, dir)), plugin.Query{})
		if err != nil {
			t.Fatal(i, err)
		}
		checkAll(t, "after a sync", got, ms[:i+1])
	}
	if n := len(files(t, dir, logDir, "*")); n < 3 {
		t.Errorf("%d files of the log", n)
	}
	if err := w.Close(plugin.Metadata{}); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t, mustOpen(t, dir), plugin.Query{})
	if err != nil {
		t.Fatal(err)
	}
	checkAll(t, "after closing", got, ms)
}
