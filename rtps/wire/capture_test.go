package wire

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gobag/gobag/cdr"
)

// handled are the submessages that a Handler gets.
var handled = []string{"DATA", "DATA_FRAG", "ACKNACK", "NACK_FRAG", "HEARTBEAT", "HEARTBEAT_FRAG", "GAP"}

// checkCounts compares what a capture holds with what its list says (tshark's and an independent counter's numbers).
func (o *observer) checkCounts(t *testing.T, want map[string]int) {
	if want != nil && !maps.Equal(o.raw, want) {
		t.Errorf("submessages\n got %v\nwant %v", o.raw, want)
	}
	for _, n := range handled {
		if o.counts[n] != o.raw[n] {
			t.Errorf("%s: %d in the capture, %d delivered", n, o.raw[n], o.counts[n])
		}
	}
}

// listedCounts reads the table of a captures' README: file → submessages.
func listedCounts(t *testing.T, path string) map[string]map[string]int {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list := map[string]map[string]int{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		cols := strings.Split(sc.Text(), "|")
		if len(cols) < 4 || !strings.Contains(cols[1], ".pcap") {
			continue
		}
		counts := map[string]int{}
		for item := range strings.SplitSeq(strings.ReplaceAll(cols[len(cols)-2], "(Fast DDS statistics) ", ""), ",") {
			f := strings.Fields(item)
			if len(f) < 2 {
				continue
			}
			n, err := strconv.Atoi(f[len(f)-1])
			if err != nil {
				t.Fatalf("%s: %q", path, item)
			}
			counts[strings.Join(f[:len(f)-1], " ")] = n
		}
		if len(counts) == 0 {
			counts = nil
		}
		list[strings.TrimSpace(cols[1])] = counts
	}
	return list
}

// TestCaptures reads the captures that are part of the repository.
func TestCaptures(t *testing.T) {
	for file, want := range listedCounts(t, "testdata/README.md") {
		t.Run(file, func(t *testing.T) {
			o := observe(t, filepath.Join("testdata", file))
			o.checkCounts(t, want)
			switch {
			case file == "cyclone_recorder.pcap":
				checkROS(t, o)
				checkBag(t, o, "testdata/cyclone_recorder.expected.txt")
			case strings.HasPrefix(file, "fastrtps"):
				checkROS(t, o)
			default:
				checkPeers(t, o, file)
			}
		})
	}
}

// TestSharedCaptures reads all captures of raw Cyclone DDS and Fast DDS.
func TestSharedCaptures(t *testing.T) {
	dir := filepath.Join(sharedDir(t), "rtps")
	list := listedCounts(t, filepath.Join(dir, "README.md"))
	files, _ := filepath.Glob(filepath.Join(dir, "*.pcap"))
	if len(files) != len(list) || len(files) < 25 {
		t.Errorf("%d captures, %d in the list", len(files), len(list))
	}
	for _, path := range files {
		file := filepath.Base(path)
		t.Run(file, func(t *testing.T) {
			o := observe(t, path)
			o.checkCounts(t, list[file])
			checkPeers(t, o, file)
		})
	}
}

// TestSharedROSCaptures reads all captures of real ROS 2 nodes.
func TestSharedROSCaptures(t *testing.T) {
	dir := filepath.Join(sharedDir(t), "rosbag2")
	summary := summaryCounts(t, filepath.Join(dir, "fastrtps/pcap/SUMMARY.txt"))
	bags := map[string]string{
		"cyclone_recorder.pcap":                         "bags/pcap_cyclone_recorder_bag.expected.txt",
		"interop_fastdds_talker_cyclone_recorder.pcap":  "bags/interop_fastdds_bag.expected.txt",
		"fastrtps_recorder_udp_only.pcap":               "fastrtps/bags/fastrtps_recorder_udp_only.expected.txt",
		"interop_cyclone_talker_fastrtps_recorder.pcap": "fastrtps/bags/interop_cyclone_talker_fastrtps_recorder.expected.txt",
		"interop_fastrtps_talker_cyclone_recorder.pcap": "fastrtps/bags/interop_fastrtps_talker_cyclone_recorder.expected.txt",
	}
	for _, pattern := range []string{"pcap/*.pcap", "fastrtps/pcap/*.pcap"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
		if len(files) < 7 {
			t.Errorf("%d captures in %s", len(files), pattern)
		}
		for _, path := range files {
			file := filepath.Base(path)
			t.Run(file, func(t *testing.T) {
				o := observe(t, path)
				o.checkCounts(t, summary[file])
				if strings.HasPrefix(file, "fastrtps") && summary[file] == nil {
					t.Error("not in the summary")
				}
				if !strings.HasPrefix(file, "fastdds_") {
					checkROS(t, o)
				}
				if bag := bags[file]; bag != "" {
					checkBag(t, o, filepath.Join(dir, bag))
				}
				if !strings.Contains(file, "shm_default") { // the data is elsewhere
					checkReceived(t, o, strings.TrimSuffix(path, ".pcap")+".note.txt")
				}
				checkWhole(t, o)
			})
		}
	}
}

// summaryCounts reads lines "## file.pcap …" followed by "submessages {'INFO_TS': 107, …}".
func summaryCounts(t *testing.T, path string) map[string]map[string]int {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	list, file := map[string]map[string]int{}, ""
	item := regexp.MustCompile(`'(\w+)': (\d+)`)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "##" {
			file = f[1]
		}
		if strings.Contains(line, "submessages {") {
			list[file] = map[string]int{}
			for _, m := range item.FindAllStringSubmatch(line, -1) {
				n, _ := strconv.Atoi(m[2])
				list[file][strings.Replace(m[1], "VENDOR_80", "vendor 0x80", 1)] = n
			}
		}
	}
	return list
}

// checkPeers checks the topics and payloads of the raw Cyclone DDS and Fast DDS test programs.
func checkPeers(t *testing.T, o *observer, file string) {
	if len(o.participants) < 2 {
		t.Errorf("%d participants", len(o.participants))
	}
	for _, p := range o.participants {
		if p.GUID.Entity() != EntityParticipant || p.Lease <= 0 || len(p.MetaUnicast) == 0 || p.Endpoints&BuiltinPubWriter == 0 {
			t.Errorf("participant %+v", p)
		}
		if p.Vendor == VendorCyclone && p.RecvBuffer == 0 {
			t.Errorf("no receive buffer of %s", p.Vendor)
		}
	}
	types := map[string]string{"rt/chatter": "std_msgs::msg::dds_::String_", "rt/latched": "std_msgs::msg::dds_::String_",
		"rt/imu": "sensor_msgs::msg::dds_::Imu_", "rt/image": "sensor_msgs::msg::dds_::Image_", "rt/load_0": "load_msgs::msg::dds_::Blob_"}
	for _, e := range endpoints(o) {
		if types[e.Topic] != e.Type {
			t.Errorf("topic %s has type %s", e.Topic, e.Type)
		}
		reliable, durability := Reliable, Volatile
		if e.Topic == "rt/imu" || e.Topic == "rt/load_0" {
			reliable = BestEffort
		}
		if e.Topic == "rt/latched" {
			durability = TransientLocal
		}
		if e.QoS.Reliability != reliable || e.QoS.Durability != durability {
			t.Errorf("%s of %s: %s, %s", e.Topic, e.Vendor, e.QoS.Reliability, e.QoS.Durability)
		}
	}
	if file == "fadefault_fadefault.pcap" {
		return // nothing but SPDP on the network
	}
	if len(o.writers) == 0 || len(o.readers) == 0 {
		t.Fatalf("%d writers, %d readers", len(o.writers), len(o.readers))
	}
	// All peers but one that leaves by _exit say goodbye, and so do their endpoints.
	if file != "bestfrag_cy_fa.pcap" && len(o.gone) < len(o.participants)/2 {
		t.Errorf("%d goodbyes of %d participants", len(o.gone), len(o.participants))
	}
	total := 0
	for _, topic := range []string{"rt/chatter", "rt/latched", "rt/imu", "rt/image", "rt/load_0"} {
		seqs, samples := o.topic(topic)
		for i, s := range samples {
			k := int(seqs[i] - 1)
			if len(s.payload) == 0 || s.key {
				continue // goodbye of the writer's instance
			}
			total++
			if err := checkSample(topic, k, s.payload); err != nil {
				t.Errorf("%s, sequence number %d: %v", topic, seqs[i], err)
			}
			if s.time.Unix() < 1600000000e9 {
				t.Errorf("%s, sequence number %d: source time %d", topic, seqs[i], s.time.Unix())
			}
		}
		t.Logf("%-10s %d samples", topic, len(samples))
	}
	if total == 0 {
		t.Error("no samples")
	}
	if file != "fa_fa_loss.pcap" { // there a fragment was lost before the wire and never asked for
		checkWhole(t, o)
	}
}

// checkWhole checks that every sample that came in fragments came whole.
func checkWhole(t *testing.T, o *observer) {
	for w, list := range o.partial {
		for seq := range list {
			if o.samples[w][seq] == nil {
				t.Errorf("sample %d of %s is incomplete", seq, o.writers[w].Topic)
			}
		}
	}
}

// checkSample decodes sample k of a topic of the test programs.
func checkSample(topic string, k int, payload []byte) error {
	d, err := cdr.NewDecoder(payload)
	if err != nil {
		return err
	}
	text := func(want string) error {
		if got := d.Str(); got != want {
			return fmt.Errorf("text %q, %q expected", got, want)
		}
		return nil
	}
	stamp := func(sec, nsec int, frame string) error {
		if s, n, f := d.Int32(), d.Uint32(), d.Str(); int(s) != sec || int(n) != nsec || f != frame {
			return fmt.Errorf("stamp %d.%09d, frame %q", s, n, f)
		}
		return nil
	}
	pattern := func(b []byte) error {
		for i := range b {
			want := byte(i*7 + (i>>8)*13 + 3)
			if i < 4 {
				want = byte(k >> (8 * i))
			} else if j := i - len(b) + 4; j >= 0 {
				want = byte(k >> (8 * j))
			}
			if b[i] != want {
				return fmt.Errorf("data byte %d is %d, %d expected", i, b[i], want)
			}
		}
		return nil
	}
	switch topic {
	case "rt/chatter":
		err = text(fmt.Sprintf("Hello World: %d", k))
	case "rt/latched":
		err = text(fmt.Sprintf("latched #%d", k+1))
	case "rt/imu":
		if len(payload) != 324 {
			return fmt.Errorf("%d bytes", len(payload))
		}
		err = stamp(1700000000+k/10, k%10*100000000, "imu_link")
		var v [37]float64
		for i := range v {
			v[i] = d.Float64()
		}
		if v[3] != 1 || v[13] != float64(k)*0.001 || v[27] != 9.81 || v[36] != 0 {
			return fmt.Errorf("values %v", v)
		}
	case "rt/image":
		err = stamp(1700000000+k, 0, "camera")
		height, width, enc, big, step := d.Uint32(), d.Uint32(), d.Str(), d.Uint8(), d.Uint32()
		data := d.ByteSeq()
		if height*step != uint32(len(data)) && height != 1024 || width != step || enc != "mono8" || big != 0 || len(data) < 4096 {
			return fmt.Errorf("image %d×%d, step %d, %s, %d bytes", width, height, step, enc, len(data))
		}
		if err == nil {
			err = pattern(data)
		}
	case "rt/load_0":
		if inst, seq := d.Uint32(), d.Uint32(); inst != 0 || int(seq) != k {
			return fmt.Errorf("instance %d, number %d", inst, seq)
		}
		d.Uint64()
		data := d.ByteSeq()
		if len(data) != 200000 {
			return fmt.Errorf("%d bytes", len(data))
		}
		err = pattern(data)
	}
	if err == nil {
		err = d.Err()
	}
	if err == nil && d.Left() > 3 {
		err = fmt.Errorf("%d bytes left over", d.Left())
	}
	return err
}

func endpoints(o *observer) (all []EndpointData) {
	for _, m := range []map[GUID]EndpointData{o.writers, o.readers} {
		for _, e := range m {
			all = append(all, e)
		}
	}
	return all
}

// checkROS checks what real ROS 2 nodes announce: enclave, names, type hashes.
func checkROS(t *testing.T, o *observer) {
	enclaves := 0
	for _, p := range o.participants {
		if strings.HasPrefix(string(p.UserData), "enclave=/;") {
			enclaves++
		}
	}
	if enclaves == 0 {
		t.Error("no participant with an enclave")
	}
	hash := regexp.MustCompile(`(^|;)typehash=RIHS01_[0-9a-f]{64};`)
	known := map[string]string{
		"std_msgs::msg::dds_::String_":                        "df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18",
		"rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_": "91a0593bacdcc50ea9bdcf849a938b128412cc1ea821245c663bcd26f83c295e",
	}
	hashes, knownHashes := 0, 0
	for _, e := range endpoints(o) {
		if !strings.Contains(e.Type, "::dds_::") || !strings.HasSuffix(e.Type, "_") {
			t.Errorf("topic %s has type %q", e.Topic, e.Type)
		}
		if e.GUID.Entity().Keyed() {
			t.Errorf("topic %s is keyed", e.Topic)
		}
		if len(e.UserData) == 0 {
			continue // raw peers beside the ROS nodes have no type hashes
		}
		hashes++
		if !hash.Match(e.UserData) {
			t.Errorf("topic %s has user data %q", e.Topic, e.UserData)
		}
		if h := known[e.Type]; h != "" {
			knownHashes++
			if !strings.Contains(string(e.UserData), h) {
				t.Errorf("type %s has hash %q", e.Type, e.UserData)
			}
		}
	}
	if n := len(endpoints(o)); n > 0 && (hashes < n/2 || knownHashes == 0) {
		t.Errorf("%d endpoints, %d type hashes, %d of them known", n, hashes, knownHashes)
	}
}

// checkReceived compares the number of samples on the wire with what the listener's note says it received.
func checkReceived(t *testing.T, o *observer, note string) {
	b, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "received" {
			continue
		}
		topic := f[1]
		switch {
		case strings.HasPrefix(topic, "rt/"):
		case strings.HasPrefix(topic, "/"):
			topic = "rt" + topic
		default:
			topic = "rt/demo/" + topic
		}
		want, _ := strconv.Atoi(f[2])
		if _, samples := o.topic(topic); len(samples) != want {
			t.Errorf("%s: %d samples on the wire, %d received", topic, len(samples), want)
		}
	}
}

// checkBag looks up every message of a bag, which rosbag2 recorded during the capture, among the samples on the wire.
func checkBag(t *testing.T, o *observer, expected string) {
	b, err := os.ReadFile(expected)
	if err != nil {
		t.Fatal(err)
	}
	lineRE := regexp.MustCompile(`^(\S+) recv=(\d+) send=(\d+) len=(\d+) fnv1a64=([0-9a-f]{16})$`)
	messages, onWire := 0, 0
	for line := range strings.Lines(string(b)) {
		m := lineRE.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		messages++
		send, _ := strconv.ParseInt(m[3], 10, 64)
		size, _ := strconv.Atoi(m[4])
		hash, _ := strconv.ParseUint(m[5], 16, 64)
		found := false
		for guid, w := range o.writers {
			if w.Topic != "rt"+m[1] {
				continue
			}
			for _, s := range o.samples[guid] {
				if len(s.payload) < size || len(s.payload) > size+3 {
					continue
				}
				if listHash(s.payload[:size]) == hash && s.time.Unix() == send {
					found = true
				}
			}
		}
		if found {
			onWire++
		}
		if !found && m[1] != "/rosout" { // the recorder's own log did not travel
			t.Errorf("not on the wire: %s", line)
		}
	}
	if messages < 50 {
		t.Errorf("%d messages in %s", messages, expected)
	}
	t.Logf("%d of %d messages of the bag are on the wire", onWire, messages)
}

// listHash is the hash in the lists of messages: FNV-1a, begun with 1469598103934665603, which lacks the last digit of
// the usual 14695981039346656037.
func listHash(b []byte) uint64 {
	h := uint64(1469598103934665603)
	for _, c := range b {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return h
}
