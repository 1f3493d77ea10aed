package bag

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugin/plugintest"
)

var errHook = errors.New("the disk is on fire")

// hooked is the memory driver with places to interfere.
type hooked struct {
	plugin.Driver
	name     string
	features func(*plugin.Features)
	create   func(path string) error
	write    func(batch []plugin.Message) error
	swallow  bool // writes are taken and reach nothing
	sync     func() error
	close    func() error
	addTopic func(t plugin.Topic) error
	idOffset func() plugin.TopicID // what the storage's own ids are moved by, asked once per storage
}

var hookedCount atomic.Int64

// newHooked registers a driver of its own name.
func newHooked() *hooked {
	d := &hooked{Driver: plugintest.NewMemory(), name: fmt.Sprintf("hooked%d", hookedCount.Add(1))}
	plugin.Register(d)
	return d
}

func (d *hooked) Name() string      { return d.name }
func (d *hooked) Extension() string { return "." + d.name }

func (d *hooked) Features() plugin.Features {
	f := d.Driver.Features()
	if d.features != nil {
		d.features(&f)
	}
	return f
}

// Detect leaves the files to the memory driver when nobody asks for this one by name.
func (d *hooked) Detect(string) (bool, error) { return false, nil }

func (d *hooked) Create(ctx context.Context, path string, o plugin.WriteOptions) (plugin.Writer, error) {
	if d.create != nil {
		if err := d.create(path); err != nil {
			return nil, err
		}
	}
	w, err := d.Driver.Create(ctx, path, o)
	if err != nil {
		return nil, err
	}
	h := &hookedWriter{Writer: w, d: d}
	if d.idOffset != nil {
		h.offset = d.idOffset()
	}
	return h, nil
}

type hookedWriter struct {
	plugin.Writer
	d      *hooked
	offset plugin.TopicID
	batch  []plugin.Message
}

func (w *hookedWriter) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	if w.d.addTopic != nil {
		if err := w.d.addTopic(t); err != nil {
			return 0, err
		}
	}
	id, err := w.Writer.AddTopic(t)
	return id + w.offset, err
}

func (w *hookedWriter) Write(batch []plugin.Message) error {
	if w.d.write != nil {
		if err := w.d.write(batch); err != nil {
			return err
		}
	}
	if w.d.swallow {
		return nil
	}
	w.batch = append(w.batch[:0], batch...)
	for i := range w.batch {
		w.batch[i].Topic -= w.offset
	}
	return w.Writer.Write(w.batch)
}

func (w *hookedWriter) Sync() error {
	if w.d.sync != nil {
		if err := w.d.sync(); err != nil {
			return err
		}
	}
	return w.Writer.Sync()
}

func (w *hookedWriter) Close(m plugin.Metadata) error {
	err := w.Writer.Close(m)
	if w.d.close != nil {
		err = errors.Join(err, w.d.close())
	}
	return err
}
