package bag

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

// RepairOptions configure Repair. The zero value works.
type RepairOptions struct {
	StorageID string        // of the damaged bag; "" = as metadata.yaml and the files say
	TempDir   string        // where whole-file compression is undone; "" = os.TempDir
	Writer    WriterOptions // of the new bag. StorageID "" = the format of the damaged one; Compat "" = as that
}

// RepairReport says what Repair kept and lost.
type RepairReport struct {
	Files  []RepairedFile
	Topics []RepairedTopic
	Kept   uint64
	Lost   uint64   // known to have been there and gone
	Notes  []string // about the bag as a whole
}

// Complete says that nothing is known to be lost.
func (r RepairReport) Complete() bool {
	for _, f := range r.Files {
		if f.Unreadable {
			return false
		}
	}
	return r.Lost == 0
}

// RepairedFile is one storage of the damaged bag.
type RepairedFile struct {
	Path       string // relative to the bag
	Kept, Lost uint64
	How        string // "whole", "salvaged", "until the damage" or "nothing"
	Unreadable bool   // nothing of it could be read, and how much it held is not known or not nothing
	Notes      []string
}

// RepairedTopic is one topic.
type RepairedTopic struct {
	Name, Type string
	Kept, Lost uint64 // Lost by what metadata.yaml counts
}

// Repair writes what can be read of the bag or storage at path into a new bag at out, and leaves path as it is: whole
// storages as they are, of damaged ones what the format's Salvager finds, or else what comes before the damage. Each
// storage gives one file or more. The new bag is read once more before Repair returns. An error means that nothing was
// made; what was lost is in the report.
func Repair(ctx context.Context, path, out string, o RepairOptions) (RepairReport, error) {
	p := &repair{ctx: ctx, o: o, custom: map[string]string{}}
	err := p.run(path, out)
	if err != nil && p.w != nil {
		_ = p.w.Close() // its failure, if it failed, is in err
		err = errors.Join(err, os.RemoveAll(out))
	}
	if err != nil {
		return RepairReport{}, fmt.Errorf("repair %s: %w", path, err)
	}
	return p.rep, nil
}

// repair is one run.
type repair struct {
	ctx    context.Context
	o      RepairOptions
	dir    string
	meta   *Metadata // metadata.yaml, if it can be read
	w      *Writer
	rep    RepairReport
	custom map[string]string
}

// run repairs all storages.
func (p *repair) run(path, out string) error {
	names, err := p.find(path)
	if err != nil {
		return err
	}
	if err := p.create(out, names); err != nil {
		return err
	}
	for _, name := range names {
		if err := p.w.Split(); err != nil {
			return err
		}
		f, err := p.file(name)
		if err != nil {
			return err
		}
		p.rep.Files = append(p.rep.Files, f)
		p.rep.Kept += f.Kept
		p.rep.Lost += f.Lost
	}
	p.reportMissing(names)
	for k, v := range p.custom {
		p.w.SetCustomData(k, v)
	}
	if err := p.w.Close(); err != nil {
		return err
	}
	p.reportTopics()
	if p.rep.Kept == 0 && !p.rep.Complete() {
		return fmt.Errorf("nothing in it can be read: %s", p.rep.Files[0].Notes)
	}
	return p.verify(out)
}

// find returns the names of the storages, in order.
func (p *repair) find(path string) ([]string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() || isStorageDir(path) {
		p.dir = filepath.Dir(path)
		return []string{filepath.Base(path)}, nil
	}
	p.dir = path
	r := &Reader{dir: path}
	if p.meta, err = r.readMetadata(); err != nil {
		p.rep.Notes = append(p.rep.Notes, err.Error())
	}
	p.rep.Notes = append(p.rep.Notes, r.info.Warnings...)
	if p.meta != nil {
		maps.Copy(p.custom, p.meta.CustomData)
	}
	all, err := storageNames(path)
	if err != nil {
		return nil, err
	}
	plain := map[string]bool{}
	for _, n := range all {
		plain[n.file] = true
	}
	var names []string
	for _, n := range all {
		if !strings.HasSuffix(n.file, zstdExt) || !plain[strings.TrimSuffix(n.file, zstdExt)] {
			names = append(names, n.file)
		}
	}
	if len(names) == 0 {
		return nil, noStorage(path)
	}
	return names, nil
}

// driver returns the format of a damaged storage, whose first bytes may be gone.
func (p *repair) driver(name, path string) (plugin.Driver, error) {
	if p.o.StorageID != "" {
		return plugin.Lookup(p.o.StorageID)
	}
	if d, err := plugin.DetectDriver(path); err == nil {
		return d, nil
	}
	ext := filepath.Ext(strings.TrimSuffix(name, zstdExt))
	for _, d := range plugin.Drivers() {
		if d.Extension() == ext && (p.meta == nil || p.meta.StorageIdentifier == "" || p.meta.StorageIdentifier == d.Name()) {
			return d, nil
		}
	}
	return nil, plugin.ErrNoDriver
}

// create makes the new bag.
func (p *repair) create(out string, names []string) error {
	o := p.o.Writer
	if o.StorageID == "" {
		if d, err := p.driver(names[0], filepath.Join(p.dir, names[0])); err == nil && !d.Features().ReadOnly {
			o.StorageID = d.Name()
		}
	}
	if o.Compat == "" && p.meta != nil && p.meta.Version <= MetadataVersionHumble {
		o.Compat = plugin.CompatHumble
	}
	if o.ROSDistro == "" && p.meta != nil {
		o.ROSDistro = p.meta.ROSDistro
	}
	o.SyncInterval, o.SplitByStamp = -1, true
	var err error
	p.w, err = Create(p.ctx, out, o)
	return err
}

// file copies what can be read of one storage.
func (p *repair) file(name string) (f RepairedFile, err error) {
	f = RepairedFile{Path: name, How: "whole"}
	listed := p.listed(name)
	full := filepath.Join(p.dir, name)
	r, err := Open(p.ctx, full, ReaderOptions{StorageID: p.o.StorageID, TempDir: p.o.TempDir})
	if err != nil {
		if p.ctx.Err() != nil {
			return f, p.ctx.Err()
		}
		f.Notes = append(f.Notes, err.Error())
		err = p.finishFile(&f, listed, p.salvage(&f, name, full))
		return f, err
	}
	defer r.Close()
	if p.meta != nil && p.meta.CompressionMode == CompressionMessage {
		r.unpack = unpackAll
	}
	for k, v := range r.Info().CustomData {
		if _, have := p.custom[k]; !have {
			p.custom[k] = v
		}
	}
	f.Notes = append(f.Notes, r.Info().Warnings...)
	damage := p.check(r)
	if p.ctx.Err() != nil {
		return f, p.ctx.Err()
	}
	expected := max(listed, r.Info().Messages)
	if damage == nil {
		err = p.finishFile(&f, expected, p.copy(&f, r, false))
		return f, err
	}
	f.Notes = append(f.Notes, damage.Error())
	if d, err := p.driver(name, full); err == nil {
		if _, ok := d.(plugin.Salvager); ok {
			err = p.finishFile(&f, expected, p.salvage(&f, name, full))
			return f, err
		}
	}
	f.How = "until the damage"
	err = p.finishFile(&f, expected, p.copy(&f, r, true))
	return f, err
}

// finishFile works out the loss from what was expected, at least.
func (p *repair) finishFile(f *RepairedFile, expected uint64, err error) error {
	if expected > f.Kept {
		f.Lost = max(f.Lost, expected-f.Kept)
	}
	return err
}

// listed returns how many messages metadata.yaml counts in a storage.
func (p *repair) listed(name string) uint64 {
	if p.meta == nil {
		return 0
	}
	for _, f := range p.meta.Files {
		if sameStorage(f.Path, name) {
			return f.MessageCount
		}
	}
	if len(p.meta.Paths) == 1 && sameStorage(p.meta.Paths[0], name) {
		return p.meta.MessageCount
	}
	return 0
}

// sameStorage compares names of storages, compressed or not.
func sameStorage(a, b string) bool {
	base := func(s string) string { return strings.TrimSuffix(path.Base(filepath.ToSlash(s)), zstdExt) }
	return base(a) == base(b)
}

// check reads a storage through and returns what is in the way.
func (p *repair) check(r *Reader) error {
	return p.each(r, func(*plugin.Message) error { return nil })
}

// each calls f for each message of a storage, until an error or the end.
func (p *repair) each(r *Reader, f func(*plugin.Message) error) (err error) {
	it, err := r.Messages(plugin.Query{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var m plugin.Message
	for n := 0; ; n++ {
		if n%1024 == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		if err := it.Next(&m); err != nil {
			return ignoreEOF(err)
		}
		if err := f(&m); err != nil {
			return err
		}
	}
}

// copy takes over the messages of a storage. Of a damaged one those before the damage count.
func (p *repair) copy(f *RepairedFile, r *Reader, damaged bool) error {
	ids := map[plugin.TopicID]plugin.TopicID{}
	for _, t := range r.Info().Topics {
		id, err := p.w.AddTopic(t.Topic)
		if err != nil {
			return err
		}
		ids[t.ID] = id
	}
	one := make([]plugin.Message, 1)
	var failed error
	err := p.each(r, func(m *plugin.Message) error {
		one[0] = *m
		one[0].Topic = ids[m.Topic]
		if failed = p.w.Write(one); failed == nil {
			f.Kept++
		}
		return failed
	})
	if damaged && failed == nil && p.ctx.Err() == nil {
		return nil // it is in the notes
	}
	return err
}

// salvage asks the format for what is left in a storage.
func (p *repair) salvage(f *RepairedFile, name, path string) error {
	f.How = "nothing"
	d, err := p.driver(name, path)
	s, ok := d.(plugin.Salvager)
	if err != nil || !ok {
		f.Unreadable = true
		return nil //nolint:nilerr // why it does not open stands in the notes
	}
	if strings.HasSuffix(name, zstdExt) {
		f.Unreadable = true
		f.Notes = append(f.Notes, "what was compressed as a whole cannot be salvaged in parts")
		return nil
	}
	sw := &salvageWriter{w: p.w, unpack: p.meta != nil && p.meta.CompressionMode == CompressionMessage}
	rep, err := s.Salvage(p.ctx, path, sw)
	f.Notes = append(f.Notes, rep.Notes...)
	f.Kept, f.Lost = sw.kept, rep.Lost+sw.spoilt
	if sw.spoilt > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d messages cannot be unpacked", sw.spoilt))
	}
	if p.ctx.Err() != nil || sw.failed != nil {
		return errors.Join(p.ctx.Err(), sw.failed)
	}
	if err != nil {
		f.Notes = append(f.Notes, err.Error())
	}
	if f.Kept > 0 {
		f.How = "salvaged"
	}
	f.Unreadable = err != nil
	return nil
}

// salvageWriter is the new bag as a Salvager sees it.
type salvageWriter struct {
	w            *Writer
	unpack       bool
	kept, spoilt uint64
	failed       error // of the bag
	batch        []plugin.Message
}

// AddTopic implements plugin.Writer.
func (s *salvageWriter) AddTopic(t plugin.Topic) (plugin.TopicID, error) {
	id, err := s.w.AddTopic(t)
	if err != nil {
		s.failed = err
	}
	return id, err
}

// Write implements plugin.Writer.
func (s *salvageWriter) Write(batch []plugin.Message) error {
	s.batch = s.batch[:0]
	for _, m := range batch {
		if s.unpack {
			data, err := unpackMessage(nil, m.Data)
			if err != nil {
				s.spoilt++
				continue
			}
			m.Data = data
		}
		s.batch = append(s.batch, m)
	}
	if err := s.w.Write(s.batch); err != nil {
		s.failed = err
		return err
	}
	s.kept += uint64(len(s.batch))
	return nil
}

// Sync implements plugin.Writer.
func (s *salvageWriter) Sync() error { return nil }

// Size implements plugin.Writer.
func (s *salvageWriter) Size() int64 { return s.w.Stats().Size }

// Close implements plugin.Writer; the bag is closed by Repair.
func (s *salvageWriter) Close(plugin.Metadata) error { return nil }

// reportMissing adds storages that metadata.yaml lists and that are not there.
func (p *repair) reportMissing(names []string) {
	if p.meta == nil {
		return
	}
	for _, listed := range p.meta.Paths {
		if !slices.ContainsFunc(names, func(n string) bool { return sameStorage(n, listed) }) {
			n := p.listed(listed)
			p.rep.Files = append(p.rep.Files, RepairedFile{Path: listed, Lost: n, How: "nothing", Unreadable: true, Notes: []string{"the file is missing"}})
			p.rep.Lost += n
		}
	}
}

// reportTopics compares what is kept of each topic with what metadata.yaml counts.
func (p *repair) reportTopics() {
	listed := map[topicKey]uint64{}
	if p.meta != nil {
		for _, t := range p.meta.Topics {
			listed[topicKey{t.Name, t.Type}] += t.MessageCount
		}
	}
	for _, t := range p.w.Topics() {
		key := topicKey{t.Name, t.Type}
		rt := RepairedTopic{Name: t.Name, Type: t.Type, Kept: t.Messages}
		if n := listed[key]; n > t.Messages {
			rt.Lost = n - t.Messages
		}
		delete(listed, key)
		p.rep.Topics = append(p.rep.Topics, rt)
	}
	for key, n := range listed {
		if n > 0 {
			p.rep.Topics = append(p.rep.Topics, RepairedTopic{Name: key.name, Type: key.typ, Lost: n})
		}
	}
	slices.SortFunc(p.rep.Topics, func(a, b RepairedTopic) int { return strings.Compare(a.Name, b.Name) })
}

// verify reads the new bag.
func (p *repair) verify(out string) error {
	r, err := Open(p.ctx, out, ReaderOptions{TempDir: p.o.TempDir})
	if err != nil {
		return fmt.Errorf("the new bag: %w", err)
	}
	defer r.Close()
	n := uint64(0)
	if err := p.each(r, func(*plugin.Message) error { n++; return nil }); err != nil {
		return fmt.Errorf("the new bag: %w", err)
	}
	if n != p.rep.Kept {
		return fmt.Errorf("the new bag %s holds %d messages instead of %d", out, n, p.rep.Kept)
	}
	return nil
}
