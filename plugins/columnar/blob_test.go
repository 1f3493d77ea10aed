package columnar

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/gobag/gobag/cdr"
	"github.com/gobag/gobag/plugin"
)

func TestBlobShapes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range []blobShape{{blobPoints, 2, 1}, {blobPoints, 20, 1}, {blobPoints, 333, 1}, {blobPixels, 5, 1}, {blobPixels, 960, 3}, {blobPixels, 64, 8}} {
		for _, rows := range []int{1, 2, 63, 64, 65, 1000} {
			src := make([]byte, int(s.step)*rows)
			for i := range src {
				src[i] = byte(rng.Uint32())
			}
			moved := s.apply([]byte("x"), src)
			if got := s.undo([]byte("yy"), moved[1:]); !s.fits(len(src)) || !bytes.Equal(got[2:], src) {
				t.Errorf("%+v of %d rows does not come back", s, rows)
			}
			if s.kind == blobPoints && rows > 1 && moved[2] != src[s.step] {
				t.Errorf("%+v: the second byte is not the first of the second point", s)
			}
		}
	}
}

const imageText = "uint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\nuint8[] data\n"

// Images that have the shape, and those that lie about it, come back in both modes.
func TestImages(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 2))
	var ms []plugin.Message
	for i := range 120 {
		e := cdr.NewEncoder(nil, cdr.CDRLE)
		width, step := 40, 120
		encoding := "rgb8"
		if i >= 60 {
			encoding = []string{"mono8", "unheard of", "rgb8"}[i%3]
			step = []int{0, 1, 120, 1 << 30, 50}[i%5]
		}
		e.Uint32(30)
		e.Uint32(uint32(width))
		e.Str(encoding)
		e.Uint8(0)
		e.Uint32(uint32(step))
		data := make([]byte, 30*120+i/60*(i%4))
		for k := range data {
			data[k] = byte(k/3 + int(rng.Uint32()%4))
		}
		e.ByteSeq(data)
		ms = append(ms, plugin.Message{Topic: plugin.TopicID(1 + i/60), RecvTime: int64(i), Order: uint64(i + 1), Data: e.Bytes()})
	}
	var sizes []int64
	for _, preset := range []string{plugin.PresetResilient, plugin.PresetSmall} {
		dir := filepath.Join(t.TempDir(), "s.columnar")
		w := mustCreate(t, dir, plugin.WriteOptions{Preset: preset})
		for _, name := range []string{"/image", "/liar"} {
			mustTopic(t, w, plugin.Topic{Name: name, Type: "x_msgs/msg/Image", SerializationFormat: "cdr", Definition: plugin.Definition{Encoding: "ros2msg", Text: imageText}})
		}
		mustWrite(t, w, ms...)
		if err := w.Close(plugin.Metadata{}); err != nil {
			t.Fatal(err)
		}
		r := mustOpen(t, dir)
		got, err := readAll(t, r, plugin.Query{})
		if err != nil {
			t.Fatal(err)
		}
		checkAll(t, fmt.Sprint("images, ", preset), got, ms)
		sizes = append(sizes, r.Info().Size)
	}
	if sizes[1] > sizes[0]*4/5 {
		t.Errorf("small: %d bytes, stored: %d", sizes[1], sizes[0])
	}
}
