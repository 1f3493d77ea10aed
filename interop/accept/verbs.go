//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/interop/lab"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/recorder"
)

// verbsSuite is the checks of recorder, player and every verb.
var verbsSuite = suite{lab.Cyclone, []check{
	{"flags", "every flag of ros2 bag, run and looked at", checkFlags},
	{"complaints", "what the users of rosbag2 asked for, a test for each", checkComplaints},
	{"control", "steered by keyboard, service and socket", checkControl},
	{"split", "35 topics at 100 Hz with a split every second for 60 s", checkSplits},
	{"thousand", "1,000 topics: how soon they are subscribed, and CPU while nothing comes", checkThousand},
	{"lost", "a relay drops datagrams of best-effort topics: lost + written = sent", checkLostExactly},
	{"rate1", "1 kHz and 30 Hz played at rate 1: lateness", checkRateOne},
	{"flatout", "played as fast as it goes, from each format", checkFlatOut},
	{"snapshot", "memory in snapshot mode at 100 MB/s", checkSnapshotMemory},
	{"stopped", "memory with the disk stopped for 10 s at 100 MB/s, the losses named", checkStoppedDisk},
}}

// testsPass runs tests and makes one figure of them.
func testsPass(b *bench, name, pkg, run string) (*testRun, error) {
	r, err := goTest(b, pkg, run)
	if err != nil {
		return nil, err
	}
	passed, failed := 0, 0
	for _, o := range r.outcome {
		switch o {
		case "pass":
			passed++
		case "fail":
			failed++
		}
	}
	b.figure(failed == 0 && passed > 0, name, "all pass", "%d pass, %d fail", passed, failed)
	return r, nil
}

func checkFlags(b *bench) error {
	_, err := testsPass(b, "flags of ros2 bag", "./cmd/gobag", "TestEveryRecordFlag|TestEveryPlayFlag|TestEveryOtherFlag|TestPlayLoopAndPause")
	return err
}

// complaintsInDocs is the most of them that may be a line in the documentation instead of a test.
const complaints, complaintsInDocs = 41, 5

func checkComplaints(b *bench) error {
	number := regexp.MustCompile(`^TestComplaint(\d\d)`)
	seen := map[string]bool{}
	for _, pkg := range []string{"./recorder", "./player", "./cmd/gobag"} {
		r, err := testsPass(b, "complaints, "+pkg, pkg, "TestComplaint")
		if err != nil {
			return err
		}
		for name, outcome := range r.outcome {
			if m := number.FindStringSubmatch(name); m != nil && outcome == "pass" {
				seen[m[1]] = true
			}
		}
	}
	var missing []string
	for i := 1; i <= complaints; i++ {
		if n := fmt.Sprintf("%02d", i); !seen[n] {
			missing = append(missing, n)
		}
	}
	b.figure(len(missing) <= complaintsInDocs, "complaints with a test that passes", fmt.Sprintf("≥ %d of %d", complaints-complaintsInDocs, complaints), "%d; without: %s",
		complaints-len(missing), strings.Join(missing, " "))
	return nil
}

func checkControl(b *bench) error {
	if _, err := testsPass(b, "keyboard on a terminal", "./cmd/gobag", "TestRecordOnTerminal|TestRecordKeys|TestPlayKeys"); err != nil {
		return err
	}
	if _, err := testsPass(b, "socket", "./cmd/gobag", "TestCtl|TestPlayLoopAndPause|TestSnapshotByTrigger"); err != nil {
		return err
	}
	_, err := testsPass(b, "services, in both forms", "./ros/ros2", "TestServices")
	return err
}

// checkSplits records 35 topics with a split every second.
func checkSplits(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	scratch, err := b.dir("splits")
	if err != nil {
		return err
	}
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/t", Instances: 35, Hz: 100}, {Kind: lab.String, Name: "/map", Count: 1, TransientLocal: true, Depth: 1, Early: true}}
	dir := filepath.Join(scratch, "bag")
	rec, err := b.gobag.RecordWith(n, dir, "--all-topics", "-d", "1")
	if err != nil {
		return err
	}
	defer rec.Kill()
	if err := b.sleep(time.Second); err != nil {
		return err
	}
	seconds := pick(b, 60, 8)
	pub, err := n.PublishAs(b.peer, topics, "--seconds", strconv.Itoa(seconds), "--wait", "1")
	if err != nil {
		return err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(120*time.Second), b.sleep(300*time.Millisecond), rec.Stop(30*time.Second)); err != nil {
		return err
	}
	info, err := b.gobag.Info(dir)
	if err != nil {
		return err
	}
	var sent, got, lost int64
	for name, s := range lab.SentBy(pub) {
		sent += s.Count
		got += info.Topic(name).Count
		lost += info.Topic(name).Lost.Sum()
	}
	b.figure(got == sent && lost == 0, "35 topics at 100 Hz, a split every second", "0 lost", "%d of %d in %d files, %d lost", got, sent, len(info.Files), lost)
	b.figure(len(info.Files) >= seconds-5, "files", fmt.Sprintf("about %d", seconds), "%d", len(info.Files))
	last, err := b.gobag.Info(filepath.Join(dir, info.Files[len(info.Files)-1].Path))
	if err != nil {
		return err
	}
	b.figure(last.Topic("/map").Count == 1, "latched topic in the last file", "1", "%d", last.Topic("/map").Count)
	return checkVerb(b, dir)
}

// checkVerb runs gobag check on a bag.
func checkVerb(b *bench, dir string) error {
	out, err := exec.CommandContext(b.ctx, b.gobag.Path, "check", dir).CombinedOutput()
	if e := new(exec.ExitError); err != nil && !errors.As(err, &e) {
		return err
	}
	b.figure(err == nil, "gobag check", "nothing is wrong", "%v", strings.Contains(string(out), "nothing is wrong"))
	if err != nil {
		b.note("%s", out)
	}
	return nil
}

// checkThousand lets a thousand topics appear and stay silent.
func checkThousand(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	scratch, err := b.dir("thousand")
	if err != nil {
		return err
	}
	topics := []lab.Topic{{Kind: lab.String, Name: "/t", Instances: 1000, Hz: 0.001, Size: 10}}
	socket := filepath.Join(scratch, "ctl.sock")
	rec, err := b.gobag.RecordWith(n, filepath.Join(scratch, "bag"), "-a", "--control-socket", socket)
	if err != nil {
		return err
	}
	defer rec.Kill()
	if err := b.sleep(time.Second); err != nil {
		return err
	}
	pub, err := n.PublishAs(b.peer, topics, "--seconds", "60")
	if err != nil {
		return err
	}
	defer pub.Kill()
	if _, err := pub.Await("start", 1, 30*time.Second); err != nil {
		return err
	}
	begin := time.Now()
	subscribed := 0
	for time.Since(begin) < 15*time.Second && subscribed < 1000 {
		if subscribed, err = statusNumber(b, socket, "topics"); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	took := time.Since(begin)
	b.figure(subscribed == 1000 && took <= 2*time.Second, "1,000 topics subscribed after the publisher has them all", "≤ 2 s", "%d in %.2f s", subscribed, took.Seconds())
	if err := b.sleep(3 * time.Second); err != nil {
		return err
	}
	before, err := cpuOf(rec.Pid())
	if err != nil {
		return err
	}
	span := pick(b, 20*time.Second, 5*time.Second)
	if err := b.sleep(span); err != nil {
		return err
	}
	after, err := cpuOf(rec.Pid())
	if err != nil {
		return err
	}
	share := 100 * (after - before).Seconds() / span.Seconds()
	b.figure(share < 5, "CPU of the recorder while nothing comes on 1,000 topics", "< 5 % of a core", "%.1f %%", share)
	return nil
}

// statusNumber asks gobag ctl for a number.
func statusNumber(b *bench, socket, key string) (int, error) {
	out, err := exec.CommandContext(b.ctx, b.gobag.Path, "ctl", "-s", socket, "status").Output()
	if err != nil {
		return 0, fmt.Errorf("ctl status: %w", err)
	}
	var v map[string]any
	if err := json.Unmarshal(out, &v); err != nil {
		return 0, err
	}
	n, _ := v[key].(float64)
	return int(n), nil
}

// checkLostExactly loses datagrams of best-effort topics on the way, the first and last sample of each writer spared by
// counting from the first sample seen to the last.
func checkLostExactly(b *bench) error {
	runs := pick(b, 20, 2)
	exact, lostAll := 0, int64(0)
	for i := range runs {
		ok, lost, err := lostRun(b, i)
		if err != nil {
			return err
		}
		if ok {
			exact++
		}
		lostAll += lost
	}
	b.figure(exact == runs && lostAll > 0, "lost + written = sent, per topic, between the first and the last sample seen", fmt.Sprintf("%d runs", runs), "%d runs exact, %d lost", exact, lostAll)
	return nil
}

func lostRun(b *bench, i int) (exact bool, lost int64, err error) {
	n, err := lab.NewNet()
	if err != nil {
		return false, 0, err
	}
	defer n.Close()
	n.CycloneURI = strings.Replace(n.CycloneURI, "</General>",
		fmt.Sprintf("</General><Internal><Test><XmitLossiness>%d</XmitLossiness></Test></Internal>", 20+10*(i%8)), 1)
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 500, BestEffort: true}, {Kind: lab.String, Name: "/text", Hz: 100, BestEffort: true}}
	scratch, err := b.dir("lost")
	if err != nil {
		return false, 0, err
	}
	dir := filepath.Join(scratch, "bag")
	rec, err := b.gobag.Record(n, dir, topics)
	if err != nil {
		return false, 0, err
	}
	defer rec.Kill()
	pub, err := n.PublishAs(b.peer, topics, "--seconds", "2", "--wait", "1", "--linger", "1")
	if err != nil {
		return false, 0, err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(60*time.Second), rec.Stop(30*time.Second)); err != nil {
		return false, 0, err
	}
	got, err := lab.Contents(dir, topics)
	if err != nil {
		return false, 0, err
	}
	info, err := b.gobag.Info(dir)
	if err != nil {
		return false, 0, err
	}
	exact = true
	for _, t := range topics {
		seq, l := lab.Sequence(got[t.Name].Numbers), info.Topic(t.Name).Lost
		if l.Wire != seq.Missing || l.Queue+l.Storage != 0 {
			exact = false
			b.note("run %d, %s: %d missing between %d and %d, the ledger says %+v", i+1, t.Name, seq.Missing, seq.First, seq.Last, l)
		}
		lost += l.Wire
	}
	return exact, lost, nil
}

var latePattern = regexp.MustCompile(`Late: p50 ([0-9.]+) ms, p99 ([0-9.]+) ms, at most ([0-9.]+) ms`)

// checkRateOne plays 1 kHz and 30 Hz to a subscriber beside a bare sleep loop on the same schedule.
func checkRateOne(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	scratch, err := b.dir("rate1")
	if err != nil {
		return err
	}
	dir := filepath.Join(scratch, "bag")
	topics := []lab.Topic{{Kind: lab.Imu, Name: "/imu", Hz: 1000}, {Kind: lab.Image, Name: "/image", Hz: 30, Size: 100_000}}
	rec, err := b.gobag.Record(n, dir, topics)
	if err != nil {
		return err
	}
	defer rec.Kill()
	pub, err := n.PublishAs(b.peer, topics, "--seconds", pick(b, "20", "4"), "--wait", "1")
	if err != nil {
		return err
	}
	defer pub.Kill()
	if err := errors.Join(pub.Wait(60*time.Second), b.sleep(200*time.Millisecond), rec.Stop(30*time.Second)); err != nil {
		return err
	}
	want, err := lab.Contents(dir, topics)
	if err != nil {
		return err
	}
	sub, err := n.SubscribeAs(b.peer, topics)
	if err != nil {
		return err
	}
	defer sub.Kill()
	bare, err := startBareSleep(n, want)
	if err != nil {
		return err
	}
	defer bare.Kill()
	play, err := b.gobag.Play(n, dir, "--wait-for-all-acked", "5000")
	if err != nil {
		return err
	}
	defer play.Kill()
	if err := errors.Join(play.Wait(90*time.Second), bare.Wait(60*time.Second)); err != nil {
		return err
	}
	m := latePattern.FindStringSubmatch(play.Stdout())
	if m == nil {
		return fmt.Errorf("play does not say how late it was:\n%s", play.Stdout())
	}
	var base []time.Duration
	for line := range strings.FieldsSeq(bare.Stdout()) {
		if v, err := strconv.ParseInt(line, 10, 64); err == nil {
			base = append(base, time.Duration(v))
		}
	}
	if len(base) == 0 {
		return errors.New("bare sleep loop printed nothing")
	}
	for i, x := range []struct {
		name string
		bar  time.Duration
		bare time.Duration
	}{{"median", 100 * time.Microsecond, lab.Quantile(base, 0.5)}, {"p99", 300 * time.Microsecond, lab.Quantile(base, 0.99)}} {
		v, err := strconv.ParseFloat(m[i+1], 64)
		if err != nil {
			return err
		}
		late := time.Duration(v * float64(time.Millisecond))
		b.figure(late <= x.bar+x.bare, "lateness at rate 1, "+x.name, fmt.Sprintf("≤ %s over a bare sleep loop's %s", ms(x.bar), ms(x.bare)), "%s", ms(late))
	}
	b.note("at most %s ms; the real rosbag2: median 0.11, at most 0.63", m[3])
	return nil
}

// checkFlatOut plays bags of every format with nobody listening, as fast as it goes.
func checkFlatOut(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	for _, d := range []string{"mcap", "sqlite3", "leveldb", "columnar"} {
		if _, err := plugin.Lookup(d); err != nil {
			continue
		}
		for _, x := range []struct {
			name            string
			messages, bytes int
		}{{"1 MB", pick(b, 800, 200), 1_000_000}, {"100 bytes", pick(b, 1_500_000, 200_000), 100}} {
			scratch, err := b.dir("flat")
			if err != nil {
				return err
			}
			dir := filepath.Join(scratch, "bag")
			if err := makeFlatBag(b.ctx, dir, d, x.messages, x.bytes); err != nil {
				return err
			}
			perSecond, err := flatOut(b, n, dir, x.messages)
			if err != nil {
				return err
			}
			if x.bytes > 1000 {
				b.figure(perSecond*float64(x.bytes) >= 500e6, d+", 1 MB messages", "≥ 500 MB/s", "%.0f MB/s", perSecond*float64(x.bytes)/1e6)
			} else {
				b.figure(perSecond >= 300_000, d+", small messages", "≥ 300,000/s", "%.0f/s", perSecond)
			}
			if err := os.RemoveAll(scratch); err != nil {
				return err
			}
		}
	}
	return nil
}

func makeFlatBag(ctx context.Context, dir, storage string, messages, size int) (err error) {
	w, err := bag.Create(ctx, dir, bag.WriterOptions{StorageID: storage, SyncInterval: -1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	id, err := w.AddTopic(plugin.Topic{Name: "/flat", Type: "std_msgs/msg/UInt8MultiArray"})
	if err != nil {
		return err
	}
	data := cdr.AppendHeader(nil, cdr.CDRLE)
	data = append(data, make([]byte, size-len(data))...)
	for i := range data[4:] {
		data[4+i] = byte(i * 7)
	}
	var batch []plugin.Message
	for i := range messages {
		batch = append(batch, plugin.Message{Topic: id, RecvTime: 1e18 + int64(i)*1000, SendTime: 1e18, Data: data})
		if len(batch)*size > 4<<20 || i == messages-1 {
			if err := w.Write(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return nil
}

var logStamp = regexp.MustCompile(`\[INFO\] \[([0-9.]+)\] \[gobag\]: Playback (started|ended)`)

// flatOut returns the messages played per second, from the start to the end that play logs.
func flatOut(b *bench, n *lab.Net, dir string, messages int) (float64, error) {
	play, err := b.gobag.Play(n, dir, "-r", "1000000000", "--read-ahead-queue-size", "10000")
	if err != nil {
		return 0, err
	}
	defer play.Kill()
	if err := play.Wait(120 * time.Second); err != nil {
		return 0, err
	}
	found := logStamp.FindAllStringSubmatch(play.Stderr(), -1)
	if len(found) != 2 || !strings.Contains(play.Stdout(), fmt.Sprintf("Played %d messages", messages)) {
		return 0, fmt.Errorf("play: %s%s", play.Stdout(), play.Stderr())
	}
	begin, err1 := strconv.ParseFloat(found[0][1], 64)
	end, err2 := strconv.ParseFloat(found[1][1], 64)
	return float64(messages) / max(end-begin, 1e-6), errors.Join(err1, err2)
}

// cameras is 100 MB/s of images.
var cameras = []lab.Topic{{Kind: lab.Image, Name: "/camera", Instances: 10, Hz: 20, Size: 500_000}}

// memoryBar is what a recorder with this format and cache may hold: the cache in use, the format's buffers and 32 MiB.
func memoryBar(storage string, cache int64) int64 {
	bar := cache + 32<<20
	if d, err := plugin.Lookup(storage); err == nil {
		bar += d.Features().Buffers
	}
	return bar
}

func checkSnapshotMemory(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	scratch, err := b.dir("snapshot")
	if err != nil {
		return err
	}
	socket := filepath.Join(scratch, "ctl.sock")
	rec, err := b.gobag.RecordWith(n, filepath.Join(scratch, "snaps"), "-a", "--snapshot-mode", "--control-socket", socket, "-s", "mcap", "--post-roll", "1")
	if err != nil {
		return err
	}
	defer rec.Kill()
	rss := rec.WatchRSS()
	pub, err := n.PublishAs(b.peer, cameras, "--seconds", pick(b, "20", "6"), "--wait", "1")
	if err != nil {
		return err
	}
	defer pub.Kill()
	if err := b.sleep(pick(b, 10*time.Second, 4*time.Second)); err != nil {
		return err
	}
	if out, err := exec.CommandContext(b.ctx, b.gobag.Path, "ctl", "-s", socket, "snapshot", "protect", "test").CombinedOutput(); err != nil {
		return fmt.Errorf("ctl snapshot: %w: %s", err, out)
	}
	if err := errors.Join(pub.Wait(60*time.Second), b.sleep(2*time.Second), rec.Stop(60*time.Second)); err != nil {
		return err
	}
	bar := memoryBar("mcap", recorder.DefaultCacheSize())
	b.figure(rss() <= bar, "peak memory in snapshot mode, 100 MB/s", fmt.Sprintf("≤ cache + buffers + 32 MiB = %.0f MiB", mib(bar)), "%.0f MiB", mib(rss()))
	found, err := filepath.Glob(filepath.Join(scratch, "snaps", "*", bag.MetadataFile))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d snapshots: %w", len(found), err)
	}
	info, err := b.gobag.Info(filepath.Dir(found[0]))
	if err != nil {
		return err
	}
	b.figure(info.MessageCount >= 100, "messages in the snapshot: 80 MiB of memory and a second after", "≥ 100 of 500 kB", "%d over %.1f s", info.MessageCount, float64(info.DurationNS)/1e9)
	return checkVerb(b, filepath.Dir(found[0]))
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// checkStoppedDisk freezes the disk for ten seconds.
func checkStoppedDisk(b *bench) error {
	n, err := lab.NewNet()
	if err != nil {
		return err
	}
	defer n.Close()
	disk, err := lab.NewDisk(lab.DiskOptions{Size: 6 << 30})
	if err != nil {
		return err
	}
	defer disk.Close()
	dir := filepath.Join(disk.Dir, "bag")
	rec, err := b.gobag.RecordWith(n, dir, "-a", "-s", "mcap", "--min-free-space", "0")
	if err != nil {
		return err
	}
	defer rec.Kill()
	rss := rec.WatchRSS()
	if err := b.sleep(time.Second); err != nil {
		return err
	}
	pub, err := n.PublishAs(b.peer, cameras, "--seconds", pick(b, "20", "14"), "--wait", "1")
	if err != nil {
		return err
	}
	defer pub.Kill()
	if err := b.sleep(3 * time.Second); err != nil {
		return err
	}
	if err := disk.Freeze(); err != nil {
		return err
	}
	err = b.sleep(pick(b, 10*time.Second, 6*time.Second))
	if err := errors.Join(err, disk.Thaw(), pub.Wait(60*time.Second), b.sleep(500*time.Millisecond), rec.Stop(60*time.Second)); err != nil {
		return err
	}
	bar := memoryBar("mcap", recorder.DefaultCacheSize())
	b.figure(rss() <= bar, "peak memory, disk stopped at 100 MB/s", fmt.Sprintf("≤ cache + buffers + 32 MiB = %.0f MiB", mib(bar)), "%.0f MiB", mib(rss()))
	info, err := b.gobag.Info(dir)
	if err != nil {
		return err
	}
	var sent, accounted, queue int64
	for name, s := range lab.SentBy(pub) {
		t := info.Topic(name)
		sent += s.Count
		accounted += t.Count + t.Lost.Sum()
		queue += t.Lost.Queue
	}
	b.figure(accounted == sent && queue > 0, "recorded + lost by reason = sent", "exact", "%d of %d, %d lost at the queue", accounted, sent, queue)
	out, err := exec.CommandContext(b.ctx, b.gobag.Path, "info", "-v", dir).Output()
	if err != nil {
		return err
	}
	b.figure(strings.Contains(string(out), "queue was full"), "info -v tells of the overload", "yes", "%v", strings.Contains(string(out), "queue was full"))
	return nil
}
