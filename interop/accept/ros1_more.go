//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/ros"
	"github.com/gobag/gobag/ros/transcode"
)

// ros1Load is a load for recorders.
type ros1Load struct {
	name   string
	topics int
	hz     int
	bytes  int
}

// checkROS1Load records loads in turns with gobag and with rosbag record.
func checkROS1Load(b *bench) error {
	r, err := newROS1(b)
	if err != nil {
		return err
	}
	defer r.close()
	seconds, runs := pick(b, 8, 3), pick(b, 3, 1)
	for _, l := range []ros1Load{{"1 x 100 Hz x 1 MB", 1, 100, 1000000}, {"100 x 100 Hz x 10 KB", 100, 100, 10000}, {"100 x 200 Hz x 200 B", 100, 200, 200}} {
		var cpu, share [2][]float64
		for run := range runs {
			for _, who := range [][2]int{{0, 1}, {1, 0}}[run%2] {
				got, sent, used, err := r.loadRun(l, who, time.Duration(seconds)*time.Second)
				if err != nil {
					return fmt.Errorf("%s: %w", l.name, err)
				}
				b.note("%s, %s: %d of %d (%.2f %%), %.2f s of processor time", l.name, []string{"gobag", "rosbag"}[who], got, sent, 100*float64(got)/float64(sent), used.Seconds())
				cpu[who], share[who] = append(cpu[who], used.Seconds()/float64(max(got, 1))), append(share[who], float64(got)/float64(sent))
			}
		}
		sum := func(v []float64) (s float64) {
			for _, x := range v {
				s += x
			}
			return s / float64(len(v))
		}
		b.figure(sum(share[0]) >= sum(share[1]), l.name+", received", "at least rosbag's share", "%.2f %%, rosbag %.2f %%", 100*sum(share[0]), 100*sum(share[1]))
		ratio := lab.Quantile(cpu[0], 0.5) / lab.Quantile(cpu[1], 0.5)
		b.figure(ratio <= 0.7, l.name+", processor time per recorded message", "at most 0.70 of rosbag's", "%.2f", ratio)
	}
	return nil
}

// loadRun publishes a load to one recorder, 0 gobag and 1 rosbag, and returns what it recorded, of how many, and what
// processor time it took.
func (r *ros1Net) loadRun(l ros1Load, who int, length time.Duration) (got, sent uint64, cpu time.Duration, err error) {
	node, err := r.node("load")
	if err != nil {
		return 0, 0, 0, err
	}
	defer node.Close()
	var pubs []ros.Publisher
	var names []string
	typ := "sensor_msgs/Image"
	if l.bytes < 1000 {
		typ = "std_msgs/String"
	}
	for i := range l.topics {
		t := ros.Topic{Name: fmt.Sprintf("/load/t%d", i), Type: typ}
		p, err := node.Advertise(t, ros.DefaultQoS())
		if err != nil {
			return 0, 0, 0, err
		}
		pubs, names = append(pubs, p), append(names, t.Name)
	}
	out := filepath.Join(r.dir, fmt.Sprintf("load-%d", time.Now().UnixNano()))
	var rec *lab.Proc
	if who == 0 {
		rec, err = r.record(out, append([]string{"--max-cache-size", "256MB", "--topics"}, names...)...)
	} else {
		out += ".bag"
		rec, err = r.rosbag(out, names...)
	}
	if err != nil {
		return 0, 0, 0, err
	}
	defer rec.Kill()
	for end := time.Now().Add(30 * time.Second); ; {
		matched := 0
		for _, p := range pubs {
			matched += p.Stats().Matched
		}
		if matched == len(pubs) {
			break
		}
		if time.Now().After(end) {
			return 0, 0, 0, fmt.Errorf("%d of %d topics are subscribed", matched, len(pubs))
		}
		if err := r.b.sleep(50 * time.Millisecond); err != nil {
			return 0, 0, 0, err
		}
	}
	if err := r.b.sleep(500 * time.Millisecond); err != nil {
		return 0, 0, 0, err
	}
	payload := loadPayload(l)
	begin := time.Now()
	for n := 0; ; n++ {
		at := begin.Add(time.Duration(n) * time.Second / time.Duration(l.hz))
		if at.Sub(begin) >= length || r.b.ctx.Err() != nil {
			break
		}
		time.Sleep(time.Until(at))
		binary.LittleEndian.PutUint32(payload[len(payload)-4:], uint32(n))
		for _, p := range pubs {
			if err := p.Publish(payload, 0); err != nil {
				return 0, 0, 0, err
			}
			sent++
		}
	}
	if err := errors.Join(r.b.sleep(1500*time.Millisecond), rec.Stop(60*time.Second)); err != nil {
		return 0, 0, 0, err
	}
	bagReader, err := bag.Open(r.b.ctx, out, bag.ReaderOptions{})
	if err != nil {
		return 0, 0, 0, err
	}
	got = bagReader.Info().Messages
	return got, sent, rec.CPU(), errors.Join(bagReader.Close(), os.RemoveAll(out))
}

// loadPayload is a message of ROS 1 of about that size.
func loadPayload(l ros1Load) []byte {
	le := binary.LittleEndian
	if l.bytes < 1000 {
		return append(le.AppendUint32(nil, uint32(l.bytes-4)), bytes.Repeat([]byte{'x'}, l.bytes-4)...)
	}
	b := make([]byte, 12) // seq, stamp
	b = append(le.AppendUint32(b, 3), "cam"...)
	n := uint32(l.bytes)
	b = le.AppendUint32(le.AppendUint32(b, 1), n) // height, width
	b = append(le.AppendUint32(b, 5), "mono8"...)
	b = append(b, 0)
	b = le.AppendUint32(le.AppendUint32(b, n), n) // step, length
	return append(b, make([]byte, n)...)
}

// checkROS1ToROS2 makes a recording of ROS 1 whose messages are those that the peers know when they are turned into ROS 2,
// and plays it to both vendors.
func checkROS1ToROS2(b *bench) error {
	dir, err := b.dir("ros1to2")
	if err != nil {
		return err
	}
	seconds := pick(b, 5, 2)
	topics := []lab.Topic{{Kind: lab.String, Name: "/chatter", Hz: 50, Count: 50 * seconds}, {Kind: lab.Imu, Name: "/imu", Hz: 200, Count: 200 * seconds},
		{Kind: lab.Image, Name: "/image", Hz: 10, Count: 10 * seconds, Size: 1000000}}
	path := filepath.Join(dir, "ros1")
	if err := writeROS1(b.ctx, path, topics); err != nil {
		return err
	}
	for _, peer := range []lab.Vendor{lab.Cyclone, lab.Fast} {
		if err := b.playROS1(peer, path, topics); err != nil {
			return fmt.Errorf("%s: %w", vendor(peer), err)
		}
	}
	return nil
}

func (b *bench) playROS1(peer lab.Vendor, path string, topics []lab.Topic) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	log, err := b.peerLog("ros1")
	if err != nil {
		return err
	}
	sub, err := n.SubscribeAs(peer, topics, "--log", log)
	if err != nil {
		return err
	}
	defer sub.Kill()
	play, err := b.gobag.Play(n, path, "--ros", "2", "--wait-for-all-acked", "5000")
	if err != nil {
		return err
	}
	defer play.Kill()
	if err := errors.Join(play.Wait(2*time.Minute), b.sleep(500*time.Millisecond), sub.Stop(20*time.Second)); err != nil {
		return err
	}
	arrivals, err := lab.ReadArrivals(log)
	if err != nil {
		return err
	}
	byTopic := group(arrivals)
	for _, t := range topics {
		checker := &lab.Checker{Topic: t}
		bad := 0
		for i, a := range byTopic[t.Name] {
			err := checker.CheckHash(a)
			if err == nil && a.Number != int64(i) {
				err = fmt.Errorf("message %d came in place of %d", a.Number, i)
			}
			if err != nil {
				if bad++; bad == 1 {
					b.note("%v", err)
				}
			}
		}
		b.figure(len(byTopic[t.Name]) == t.Count && bad == 0, t.Name+" played from a bag of ROS 1 to "+vendor(peer), "every message, in order, content as made",
			"%d of %d, %d bad", len(byTopic[t.Name]), t.Count, bad)
	}
	return nil
}

// writeROS1 writes a bag of ROS 1's payloads.
func writeROS1(ctx context.Context, dir string, topics []lab.Topic) error {
	w, err := bag.Create(ctx, dir, bag.WriterOptions{StorageID: "mcap", SyncInterval: -1})
	if err != nil {
		return err
	}
	c := transcode.New(msg.Options{})
	start := time.Now().UnixNano()
	for _, t := range topics {
		p, err := c.ToROS1(t.Type(), "", "", "")
		if err != nil {
			return err
		}
		id, err := w.AddTopic(plugin.Topic{Name: t.Name, Type: p.Type, TypeHash: p.Hash, SerializationFormat: p.Format,
			Definition: plugin.Definition{Encoding: p.Encoding, Text: p.Definition}})
		if err != nil {
			return err
		}
		for n := range t.Count {
			one, err := p.Append(nil, t.Body([]byte{0, 1, 0, 0}, uint32(n), 0), uint32(n))
			if err != nil {
				return err
			}
			at := start + int64(n)*int64(time.Second)/int64(t.Hz)
			if err := w.Write([]plugin.Message{{Topic: id, RecvTime: at, Data: one}}); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// randomROS1 appends a random payload of a type of ROS 1.
func randomROS1(rng *rand.Rand, d *msg.ROS1Definition, name string, b []byte) []byte {
	le := binary.LittleEndian
	for _, f := range d.Messages[name].Fields {
		n := 1
		switch f.Array {
		case msg.Fixed:
			n = int(f.Capacity)
		case msg.Unbounded:
			n = rng.IntN(4)
			b = le.AppendUint32(b, uint32(n))
		}
		for range n {
			size, _ := msg.ROS1Size(f.Type)
			switch {
			case f.Nested:
				b = randomROS1(rng, d, f.Type, b)
			case name == "rosgraph_msgs/Log" && f.Name == "level":
				b = append(b, 1<<rng.IntN(5))
			case f.Type == "string":
				s := "grün 0123456789"[:rng.IntN(16)]
				if len(s) == 3 { // within a character
					s = ""
				}
				b = append(le.AppendUint32(b, uint32(len(s))), s...)
			case f.Type == "bool":
				b = append(b, byte(rng.IntN(2)))
			case f.Type == "time":
				b = le.AppendUint32(le.AppendUint32(b, rng.Uint32N(1<<31)), rng.Uint32N(1e9))
			case f.Type == "duration":
				b = le.AppendUint32(le.AppendUint32(b, rng.Uint32()), rng.Uint32N(1e9))
			case f.Type == "float32":
				b = le.AppendUint32(b, math.Float32bits(rng.Float32()*1000))
			case f.Type == "float64":
				b = le.AppendUint64(b, math.Float64bits(rng.NormFloat64()))
			default:
				for range size {
					b = append(b, byte(rng.Uint32()))
				}
			}
		}
	}
	return b
}

// checkROS1Decoder turns random messages both ways and lets decoders of npm compare them.
func checkROS1Decoder(b *bench) error {
	script, err := lab.NodeScript("ros1.js")
	if err != nil {
		return err
	}
	list, err := os.ReadFile("msg/testdata/ros1-md5.tsv")
	if err != nil {
		return err
	}
	c := transcode.New(msg.Options{})
	rng := rand.New(rand.NewPCG(11, 11))
	var there, back bytes.Buffer
	types, refused := 0, 0
	for l := range strings.Lines(string(list)) {
		name, _, _ := strings.Cut(l, "\t")
		d, err := msg.BuiltinROS1(name)
		if err != nil {
			return err
		}
		p, err := c.ToROS2(name, d.Text())
		if err != nil {
			b.note("%v", err)
			continue
		}
		q, err := c.ToROS1(p.Type, p.Hash, p.Encoding, p.Definition)
		if err != nil {
			b.note("%v", err)
			continue
		}
		types++
		for range pick(b, 50, 10) {
			one := randomROS1(rng, d, name, nil)
			two, err := p.Append(nil, one, 0)
			if err != nil {
				refused++
				continue
			}
			again, err := q.Append(nil, two, 5)
			if err != nil {
				return err
			}
			if err := writePair(&there, name, d.Text(), p.Definition, one, two); err != nil {
				return err
			}
			if err := writePair(&back, q.Type, q.Definition, p.Definition, again, two); err != nil {
				return err
			}
		}
	}
	if refused > 0 {
		b.note("%d random messages were refused since a sequence is longer than ROS 2 allows (SolidPrimitive.dimensions)", refused)
	}
	for name, in := range map[string]*bytes.Buffer{"ROS 1 to ROS 2": &there, "ROS 2 to ROS 1": &back} {
		cmd := exec.CommandContext(b.ctx, script[0], script[1:]...)
		cmd.Stdin = in
		text, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
		var e struct{ Same, Different, Types int }
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "{") {
				b.note("%s", strings.TrimSpace(line))
			} else if err := json.Unmarshal([]byte(line), &e); err != nil {
				return err
			}
		}
		b.figure(e.Different == 0 && e.Same > 0 && types >= 130, name, "every random message of at least 130 types decodes to the same values", "%d same, %d different, %d types",
			e.Same, e.Different, types)
	}
	return nil
}

func writePair(to *bytes.Buffer, name, def1, def2 string, one, two []byte) error {
	return json.NewEncoder(to).Encode(map[string]string{"name": name, "def1": def1, "def2": def2, "one": fmt.Sprintf("%x", one), "two": fmt.Sprintf("%x", two)})
}

// checkROS1Damage cuts and damages bags that C++ rosbag has recorded, of every compression.
func checkROS1Damage(b *bench) error {
	r, err := newROS1(b)
	if err != nil {
		return err
	}
	defer r.close()
	for _, packing := range []string{"none", "lz4", "bz2"} {
		file := filepath.Join(r.dir, packing+".bag")
		flags := []string{"--chunksize=100", "/load/t0", "/load/t1"}
		if packing != "none" {
			flags = append(flags, "--"+packing)
		}
		if err := r.recordPacked(file, flags); err != nil {
			return err
		}
		if err := b.damageROS1(packing, file); err != nil {
			return fmt.Errorf("%s: %w", packing, err)
		}
	}
	res, err := goTest(b, "./rosbag1", "Cut|Flipped")
	if err != nil {
		return err
	}
	for _, name := range []string{"TestCut", "TestFlipped"} {
		res.passed(b, name, "allocation at most 64 MB, every chunk that is whole read, nothing silent")
	}
	return nil
}

func (r *ros1Net) recordPacked(file string, flags []string) error {
	node, err := r.node("load")
	if err != nil {
		return err
	}
	defer node.Close()
	var pubs []ros.Publisher
	for i := range 2 {
		p, err := node.Advertise(ros.Topic{Name: fmt.Sprintf("/load/t%d", i), Type: "sensor_msgs/Image"}, ros.DefaultQoS())
		if err != nil {
			return err
		}
		pubs = append(pubs, p)
	}
	rec, err := r.rosbag(file, flags...)
	if err != nil {
		return err
	}
	defer rec.Kill()
	for end := time.Now().Add(20 * time.Second); pubs[0].Stats().Matched+pubs[1].Stats().Matched < 2; {
		if time.Now().After(end) {
			return errors.New("rosbag record does not subscribe")
		}
		if err := r.b.sleep(50 * time.Millisecond); err != nil {
			return err
		}
	}
	payload := loadPayload(ros1Load{bytes: 10000})
	for n := range 200 {
		for k := range 2000 {
			payload[len(payload)-4-k] = byte(n * k)
		}
		binary.LittleEndian.PutUint32(payload[len(payload)-4:], uint32(n))
		for _, p := range pubs {
			if err := p.Publish(payload, 0); err != nil {
				return err
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	return errors.Join(r.b.sleep(time.Second), rec.Stop(30*time.Second))
}

// damageROS1 runs gobag info and gobag repair on a bag cut at every percent, and on copies with one byte changed.
func (b *bench) damageROS1(packing, file string) error {
	whole, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	want, err := payloads(file)
	if err != nil {
		return err
	}
	total := 0
	for _, p := range want {
		total += len(p)
	}
	bad := filepath.Join(filepath.Dir(file), "bad-"+packing+".bag")
	read, last, silent, strange := 0, 0, 0, 0
	for percent := range 100 {
		n := len(whole) * percent / 100
		got, said, err := readDamaged(bad, whole[:n], want)
		if err != nil {
			return err
		}
		if got < 0 {
			strange++
			continue
		}
		if got < total && !said {
			silent++
		}
		if got < last {
			strange++
		}
		last = got
		read += got
	}
	b.figure(silent == 0 && strange == 0 && last > total*9/10, packing+", cut at every percent", "more is read of a longer file, never anything else, and that it is cut is said",
		"%d of %d messages at 99 %%, %d silent, %d wrong", last, total, silent, strange)
	rng := rand.New(rand.NewPCG(3, 4))
	silent = 0
	worst := total
	flips := pick(b, 200, 20)
	for range flips {
		c := slices.Clone(whole)
		c[rng.IntN(len(c))] ^= 1 << rng.IntN(8)
		got, said, err := readDamaged(bad, c, nil)
		if err != nil {
			return err
		}
		if got < total && !said {
			silent++
		}
		if said {
			worst = min(worst, got)
		}
	}
	b.figure(silent == 0, packing+fmt.Sprintf(", %d copies with one bit changed", flips), "what is missing is said", "%d silent; at least %d of %d messages were read where damage was met",
		silent, worst, total)
	return nil
}

// readDamaged counts the messages that are read of a file, -1 where one is not among want; said says that something was
// said of damage.
func readDamaged(path string, content []byte, want map[string][]string) (got int, said bool, err error) {
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return 0, false, err
	}
	r, err := bag.Open(context.Background(), path, bag.ReaderOptions{})
	if err != nil {
		return 0, true, nil //nolint:nilerr // a file that does not open says so
	}
	defer r.Close()
	info := r.Info()
	said = info.CutOff || len(info.Warnings) > 0
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return 0, false, err
	}
	defer it.Close()
	seen := map[string]int{}
	names := map[plugin.TopicID]string{}
	for _, t := range info.Topics {
		names[t.ID] = t.Name
	}
	for m := (plugin.Message{}); ; got++ {
		if err := it.Next(&m); err != nil {
			var corrupt *plugin.CorruptError
			return got, said || errors.As(err, &corrupt), nil
		}
		if want != nil {
			name := names[m.Topic]
			list := want[name]
			if seen[name] >= len(list) || list[seen[name]] != digest(m.Data) {
				return -1, said, nil
			}
			seen[name]++
		}
	}
}
