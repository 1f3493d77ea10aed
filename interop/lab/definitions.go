//go:build linux

package lab

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gobag/gobag/msg"
)

// SecretFiles are the definitions behind the kind Reading, by name below share/: of secret_msgs, which no distribution has,
// and of the common types in it. The struct in peers/ros.idl has the same layout.
var SecretFiles = map[string]string{
	"secret_msgs/msg/Reading.msg": `# What a meter reads, in whatever its samples say.
uint8 MAX_SAMPLES=3   # a constant: not on the wire

std_msgs/Header header
string label          # "reading" and the running number
Sample[] samples
float32[3] scale
uint64 number
bool valid true
`,
	"secret_msgs/msg/Sample.msg": `uint8 channel
float64 value
string<=8 unit "V"
`,
	"std_msgs/msg/Header.msg": `# The stamp and the frame of what comes with it.
builtin_interfaces/Time stamp
string frame_id
`,
	"builtin_interfaces/msg/Time.msg": `int32 sec
uint32 nanosec
`,
}

// SecretReading is what a peer sends of the kind Reading, in the form that interop/node/decode.js prints.
type SecretReading struct {
	Header struct {
		Stamp struct {
			Sec     int64 `json:"sec"`
			Nanosec int64 `json:"nsec"` // what the decoder makes of nanosec in builtin_interfaces/Time
		} `json:"stamp"`
		FrameID string `json:"frame_id"`
	} `json:"header"`
	Label   string         `json:"label"`
	Samples []SecretSample `json:"samples"`
	Scale   []float64      `json:"scale"`
	Number  string         `json:"number"` // JSON has no integers of 64 bits
	Valid   bool           `json:"valid"`
}

// SecretSample is one of its samples.
type SecretSample struct {
	Channel int     `json:"channel"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
}

// MakeReading returns the content of running number n.
func MakeReading(n uint32) SecretReading {
	var r SecretReading
	r.Header.Stamp.Sec, r.Header.Stamp.Nanosec, r.Header.FrameID = int64(n), int64(n%1000)*1000000, "meter"
	r.Label = fmt.Sprintf("reading %d", n)
	r.Samples = []SecretSample{}
	for k := range n % 4 {
		r.Samples = append(r.Samples, SecretSample{Channel: int(k), Value: float64(n)*0.25 - float64(k), Unit: []string{"A", "volt"}[k%2]})
	}
	for i := range 3 {
		r.Scale = append(r.Scale, float64(n%1000)*0.5+float64(i))
	}
	r.Number = fmt.Sprint(uint64(n)<<32 | uint64(n))
	r.Valid = n%2 == 0
	return r
}

func (w *cdrWriter) reading(n uint32) {
	r := MakeReading(n)
	w.header(n, r.Header.FrameID)
	w.text(r.Label)
	w.u32(uint32(len(r.Samples)))
	for _, s := range r.Samples {
		w.b = append(w.b, byte(s.Channel))
		w.f64(s.Value)
		w.text(s.Unit)
	}
	for _, v := range r.Scale {
		w.u32(math.Float32bits(float32(v)))
	}
	w.align(8)
	w.b = binary.LittleEndian.AppendUint64(w.b, uint64(n)<<32|uint64(n))
	w.b = append(w.b, 0)
	if r.Valid {
		w.b[len(w.b)-1] = 1
	}
}

// Definitions are the type definitions that a peer serves (its option --definitions).
type Definitions struct {
	Dir  string
	Hash map[string]string // of the types that the peer has endpoints of, by name
}

// Compiled is what a node that was built by rosidl_generator_c serves of an interface file (full__description.c.em, from Iron
// on). Tabs, backslashes, control characters and bytes above 0x7e of a line are escaped as in a literal of Python, single
// quotes only where the line has double ones too; the newline at the end is missing; and what the escapes have made longer
// than the file has characters is cut off.
func Compiled(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		quote := strings.Contains(line, `"`)
		for _, c := range []byte(line) {
			switch {
			case c == '\\' || c == '\'' && quote:
				b.WriteString(`\` + string(rune(c)))
			case c == '\t':
				b.WriteString(`\t`)
			case c == '\r':
				b.WriteString(`\r`)
			case c < ' ' || c > '~':
				fmt.Fprintf(&b, `\x%02x`, c)
			default:
				b.WriteByte(c)
			}
		}
	}
	return b.String()[:min(b.Len(), utf8.RuneCountInString(text))]
}

// WriteDefinitions writes interface files, as compiled, and the index that the peers read (see peers/describe.h) into dir. The
// peer has endpoints of the types; those in them come with them. files are by name below share/.
func WriteDefinitions(dir string, files map[string]string, types ...string) (Definitions, error) {
	d := Definitions{Dir: dir, Hash: map[string]string{}}
	source := func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(text), nil
	}
	all := map[string]msg.Message{}
	for _, t := range types {
		described, err := msg.Describe(t, source)
		if err != nil {
			return d, err
		}
		d.Hash[t] = described.Hash()
		for _, m := range append(described.Referenced, described.Type) {
			all[m.Name] = m
		}
	}
	var index strings.Builder
	// The hash of a service goes into USER_DATA of its endpoints; it is that of the type as a whole.
	service, err := msg.NewFinder(msg.Options{Dirs: []string{}}).Find("type_description_interfaces/srv/GetTypeDescription", "")
	if err != nil {
		return d, err
	}
	fmt.Fprintf(&index, "service %s\n", service.Hash)
	for _, m := range slices.SortedFunc(maps.Values(all), func(a, b msg.Message) int { return cmp.Compare(a.Name, b.Name) }) {
		fmt.Fprintf(&index, "type %s %s\n", m.Name, cmp.Or(d.Hash[m.Name], "-"))
		for _, f := range m.Fields {
			line := fmt.Sprintf("member %s %d %d %d %s %s", f.Name, f.Type.ID(), f.Type.Capacity, f.Type.StringCapacity,
				cmp.Or(f.Type.Name, "-"), f.Default)
			index.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		path := filepath.Join(dir, filepath.FromSlash(m.Name)+".msg")
		err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(Compiled(files[m.Name+".msg"])), 0o666))
		if err != nil {
			return d, err
		}
	}
	return d, os.WriteFile(filepath.Join(dir, "index"), []byte(index.String()), 0o666)
}

// Ask asks the node behind the publisher of a topic for the definition of its type, with gobag's client, and returns the
// event: "answer" or "refused" (see probe/ask.go).
func (n *Net) Ask(topic string, options ...string) (Event, error) {
	args, err := Own.command("ask")
	if err != nil {
		return nil, err
	}
	p, err := n.Start(nil, append(append(args, "-topic", topic), options...)...)
	if err != nil {
		return nil, err
	}
	if err := p.Wait(60 * time.Second); err != nil {
		return nil, err
	}
	for _, e := range append(p.Events("answer"), p.Events("refused")...) {
		return e, nil
	}
	return nil, fmt.Errorf("probe ask: no answer in %q", p.Stdout())
}
