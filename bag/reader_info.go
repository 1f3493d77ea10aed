package bag

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gobag/gobag/plugin"
)

// inspect looks into the storages: all of them, or only the last of a bag whose metadata can be trusted.
func (r *Reader) inspect(ctx context.Context) error {
	if r.trusted() {
		for i, f := range r.files {
			m := r.meta.Files[i]
			f.known, f.count = true, m.MessageCount
			if m.MessageCount > 0 {
				f.span = span{true, m.Start, m.End()}
			}
		}
		return r.look(ctx, r.files[len(r.files)-1])
	}
	for i := 0; i < len(r.files); i++ {
		f := r.files[i]
		err := r.look(ctx, f)
		if err != nil && r.o.Rebuild && ctx.Err() == nil && (len(r.files) > 1 || len(r.info.Skipped) > 0) {
			r.info.Skipped = append(r.info.Skipped, SkippedFile{f.name, err})
			r.files = slices.Delete(r.files, i, i+1)
			i--
			continue
		}
		if err != nil && i > 0 && i == len(r.files)-1 && r.maybeCutOff() && unreadable(err) {
			r.warnf("the last file cannot be read, the recording was cut off while it was begun: %v", err)
			r.files = r.files[:i]
			r.lastLost = true
			r.takeUnlisted()
			return nil
		}
		if err != nil {
			return err
		}
	}
	if len(r.files) == 0 {
		return fmt.Errorf("no storage can be opened: %w", r.info.Skipped[0].Err)
	}
	r.takeUnlisted()
	return nil
}

// takeUnlisted keeps of the files that metadata.yaml does not name yet those that hold something. The recorder opens files
// before it needs them.
func (r *Reader) takeUnlisted() {
	r.files = slices.DeleteFunc(r.files, func(f *readerFile) bool {
		if !f.unlisted {
			return false
		}
		if f.count == 0 {
			if f.known {
				_ = f.close() // read only: nothing to lose
			}
			return f.known // the next messages may go into it
		}
		r.warnf("%s is not in %s yet; it is read all the same", f.name, MetadataFile)
		return false
	})
}

// maybeCutOff says that the bag was not closed in order, or is not closed yet, as far as metadata.yaml goes.
func (r *Reader) maybeCutOff() bool {
	if r.meta == nil {
		return true
	}
	if r.lacksCustomData() { // look into the storages, the last one that can be read
		for _, f := range slices.Backward(r.files) {
			if rd, err := f.acquire(r.ctx); err == nil {
				m := storedMetadata(rd.Info())
				f.release()
				r.adoptCustomData(m)
				break
			}
		}
	}
	return r.meta.CustomData[KeyState] == StateRecording
}

// lacksCustomData says that metadata.yaml is of a version without custom_data, so that only the storages can have it.
func (r *Reader) lacksCustomData() bool {
	return r.meta.Version < customDataVersion && r.meta.CustomData == nil
}

// adoptCustomData gives metadata.yaml the custom_data of what a storage keeps.
func (r *Reader) adoptCustomData(stored *Metadata) {
	if stored != nil && r.lacksCustomData() {
		r.meta.CustomData = stored.CustomData
	}
}

// storedMetadata is the metadata kept inside a storage; nil if there is none that can be read.
func storedMetadata(info plugin.Info) *Metadata {
	m, err := ParseMetadata([]byte(info.Metadata.Text))
	if err != nil {
		return nil
	}
	return m
}

// unreadable says that a file is there but is no whole storage.
func unreadable(err error) bool {
	var c *plugin.CorruptError
	return errors.As(err, &c) || errors.Is(err, plugin.ErrFormat) || errors.Is(err, plugin.ErrNoDriver)
}

// look opens one storage and notes what it says of itself.
func (r *Reader) look(ctx context.Context, f *readerFile) error {
	rd, err := f.acquire(ctx)
	if err != nil {
		return err
	}
	defer f.release()
	info := rd.Info()
	f.info = &info
	f.count = info.Messages
	f.span = span{}
	if info.Messages > 0 {
		f.span = span{true, info.Start, info.End}
	}
	f.known = !info.Unclean || !r.info.StillRecording
	if !strings.HasSuffix(f.path, zstdExt) && info.Size > 0 {
		f.size = info.Size
	}
	for _, w := range info.Warnings {
		r.warnf("%s: %s", f.name, w)
	}
	return nil
}

// trusted says whether metadata.yaml is that of several files closed in order by gobag, so that it can stand for them.
func (r *Reader) trusted() bool {
	m := r.meta
	if m == nil || r.o.Rebuild || len(r.files) < 2 || r.info.StillRecording || len(m.Files) != len(r.files) || m.CompressionMode != CompressionNone ||
		m.CustomData[KeyState] != StateClosed || m.CustomData[KeyVersion] == "" {
		return false
	}
	var sum, byTopic uint64
	for i, f := range m.Files {
		if path.Base(f.Path) != path.Base(r.files[i].name) || f.Duration == math.MaxInt64 || f.Duration < 0 { // more than can be said, or nobody's
			return false
		}
		sum += f.MessageCount
	}
	for _, t := range m.Topics {
		if strings.ContainsRune(t.Name+t.Type, utf8.RuneError) { // may stand for any of several
			return false
		}
		byTopic += t.MessageCount
	}
	return sum == m.MessageCount && byTopic == sum && m.Duration >= 0
}

// addTopic returns the bag's id of a topic of a file, and how the file's sources are numbered in the bag (nil: the same).
// While the bag is opened, what later files say of a topic is taken over.
func (r *Reader) addTopic(t plugin.Topic) (plugin.TopicID, []uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := topicKey{t.Name, t.Type}
	id, known := r.byKey[key]
	if !known {
		id = plugin.TopicID(len(r.topics) + 1)
		t.ID = id
		r.byKey[key] = id
		r.topics = append(slices.Clip(r.topics), TopicInfo{TopicInfo: plugin.TopicInfo{Topic: t}})
		return id, nil
	}
	have := r.topics[id-1]
	if !r.loaded {
		takeOver(&have.Topic, t)
	}
	remap := mergeSources(&have.Topic, t.Sources)
	r.topics = slices.Clone(r.topics) // Info may have handed the old one out
	r.topics[id-1] = have
	return id, remap
}

// takeOver updates a topic with what a later file says of it.
func takeOver(have *plugin.Topic, t plugin.Topic) {
	if t.OfferedQoS != "" {
		have.OfferedQoS = t.OfferedQoS
	}
	if t.TypeHash != "" {
		have.TypeHash = t.TypeHash
	}
	if t.SerializationFormat != "" {
		have.SerializationFormat = t.SerializationFormat
	}
	if t.Definition.Text != "" || have.Definition.Encoding == "" {
		have.Definition = t.Definition
	}
}

// mergeSources adds sources to a topic and returns how they are numbered there; nil where the numbers are the same.
func mergeSources(have *plugin.Topic, sources []string) []uint32 {
	n := min(len(have.Sources), len(sources))
	if slices.Equal(have.Sources[:n], sources[:n]) {
		if len(sources) > n {
			have.Sources = sources
		}
		return nil
	}
	have.Sources = slices.Clone(have.Sources)
	remap := make([]uint32, len(sources))
	for i, s := range sources {
		at := slices.Index(have.Sources, s)
		if at < 0 {
			at = len(have.Sources)
			have.Sources = append(have.Sources, s)
		}
		remap[i] = uint32(at + 1)
	}
	return remap
}

// merge puts r.info and r.meta together from metadata.yaml and the storages.
func (r *Reader) merge(single bool) {
	trusted := r.files[0].info == nil
	listed := r.meta // metadata.yaml
	inner := r.innerMetadata()
	if listed != nil {
		r.adoptCustomData(inner)
	}
	given := listed
	if given == nil {
		given = inner
	}
	r.setUnpack(given)
	r.sumFiles()
	r.sumTopics(trusted, listed)
	r.setState(single, listed, inner)
	if listed != nil && !trusted && !r.info.CutOff && !r.info.StillRecording {
		r.compare(listed)
	}
	r.setMetadata(given)
	r.loaded = true
}

// innerMetadata returns the newest metadata that is kept inside the storages; nil if there is none.
func (r *Reader) innerMetadata() *Metadata {
	for _, f := range slices.Backward(r.files) {
		if f.info == nil || f.info.Metadata.Version == 0 || f.info.Metadata.Text == "" {
			continue
		}
		m, err := ParseMetadata([]byte(f.info.Metadata.Text))
		if err != nil {
			r.warnf("%s: metadata inside: %v", f.name, err)
			continue
		}
		return m
	}
	return nil
}

func (r *Reader) setUnpack(given *Metadata) {
	switch {
	case given == nil:
		r.unpack = unpackAuto
	case given.CompressionMode == CompressionMessage:
		r.unpack = unpackAll
		if given.CompressionFormat != "zstd" {
			r.warnf("compression format %q is not known; payloads that are zstd frames are unpacked, others are left", given.CompressionFormat)
		}
	}
}

// sumFiles fills counts, times and files of r.info.
func (r *Reader) sumFiles() {
	var all span
	for _, f := range r.files {
		fi := FileInfo{Path: f.name, Size: f.size, Messages: f.count}
		fi.Start, fi.Duration = f.span.times()
		fi.End = f.span.end
		if f.info != nil {
			fi.Format, fi.CutOff = f.info.Format, f.info.Unclean
			if r.info.ROSDistro == "" {
				r.info.ROSDistro = f.info.ROSDistro
			}
		}
		r.info.Files = append(r.info.Files, fi)
		r.info.Messages += f.count
		r.info.Size += f.size
		all.merge(f.span)
	}
	r.info.Start, r.info.Duration = all.times()
	r.info.End = all.end
}

// sumTopics fills the counts of topics and what only metadata.yaml says of them.
func (r *Reader) sumTopics(trusted bool, listed *Metadata) {
	for _, f := range r.files {
		if f.info == nil || trusted {
			continue
		}
		for _, t := range f.info.Topics {
			have := &r.topics[f.toBag[t.ID].id-1]
			have.Count += t.Count
			if have.Bytes >= 0 && t.Bytes >= 0 {
				have.Bytes += t.Bytes
			} else {
				have.Bytes = -1
			}
		}
	}
	if listed != nil {
		for _, t := range listed.Topics {
			r.mergeListed(t, trusted)
		}
	}
	if trusted {
		for i := range r.topics {
			r.topics[i].Bytes = -1
		}
	}
	for i := range r.topics {
		t := &r.topics[i]
		ps, err := DecodeQoS(t.OfferedQoS)
		if err != nil {
			r.warnf("topic %q: offered QoS is unknown: %v", clip(t.Name), err)
		}
		t.QoS = ps
	}
}

// mergeListed takes over what metadata.yaml knows of a topic and the storages do not, and warns where they disagree.
func (r *Reader) mergeListed(t TopicMetadata, trusted bool) {
	id, ok := r.byKey[topicKey{t.Name, t.Type}]
	if !ok {
		at := slices.IndexFunc(r.topics, func(have TopicInfo) bool { return have.Name == t.Name || yamlText(have.Name) == t.Name })
		if at >= 0 && yamlText(r.topics[at].Type) == t.Type {
			id = plugin.TopicID(at + 1) // the same but for bytes that YAML cannot carry
		} else if at >= 0 {
			r.warnf("topic %q: %s says its type is %s, the storage says %s", clip(t.Name), MetadataFile, clip(t.Type), clip(r.topics[at].Type))
			id = plugin.TopicID(at + 1)
		} else {
			id, _ = r.addTopic(plugin.Topic{Name: t.Name, Type: t.Type, SerializationFormat: t.SerializationFormat, TypeHash: t.TypeHash})
		}
	}
	have := &r.topics[id-1]
	if trusted {
		have.Count = t.MessageCount
	}
	if have.OfferedQoS == "" {
		have.OfferedQoS = EncodeQoS(t.OfferedQoS, true)
	}
	if have.TypeHash == "" {
		have.TypeHash = t.TypeHash
	}
	if have.SerializationFormat == "" {
		have.SerializationFormat = t.SerializationFormat
	} else if t.SerializationFormat != "" && t.SerializationFormat != have.SerializationFormat {
		r.warnf("topic %q: %s says its serialization format is %s, the storage says %s", clip(t.Name), MetadataFile,
			clip(t.SerializationFormat), clip(have.SerializationFormat))
	}
}

// setState decides whether the recording was cut off.
func (r *Reader) setState(single bool, listed, inner *Metadata) {
	cut, unclean := r.lastLost, false
	for _, f := range r.files {
		if f.info == nil {
			continue
		}
		unclean = unclean || f.info.Unclean
		cut = cut || f.info.Unclean || listed == nil && stale(inner, f)
	}
	if listed != nil && listed.CustomData[KeyState] == StateRecording {
		cut = true
	}
	if listed == nil && !single && inner != nil && inner.CustomData[KeyState] == StateRecording {
		cut = true
	}
	if single && !unclean {
		r.info.StillRecording = false // another file of the bag is being recorded
	}
	r.info.CutOff = cut && !r.info.StillRecording
	if r.info.CutOff {
		r.warnf("the recording was cut off; what reached the storage is read")
	}
	if listed == nil && !single {
		r.warnf("there is no %s; the bag is put together from its files", MetadataFile)
	}
}

// stale says whether the metadata inside a storage is older than its messages: rosbag2 writes it at opening and closing.
func stale(inner *Metadata, f *readerFile) bool {
	if inner == nil {
		return false
	}
	for _, m := range inner.Files {
		if path.Base(m.Path) == path.Base(strings.TrimSuffix(f.name, zstdExt)) {
			return m.MessageCount < f.count
		}
	}
	return len(inner.Paths) == 1 && inner.MessageCount < f.count
}

// compare warns where metadata.yaml and the storages disagree.
func (r *Reader) compare(m *Metadata) {
	i := &r.info
	if m.MessageCount != i.Messages {
		r.warnf("%s says %d messages, the storages hold %d", MetadataFile, m.MessageCount, i.Messages)
	}
	if i.Messages > 0 && (m.Start != i.Start || m.Duration != i.Duration) {
		r.warnf("%s says start %d ns and duration %d ns, the storages hold %d and %d", MetadataFile, m.Start, m.Duration, i.Start, i.Duration)
	}
	for _, t := range m.Topics {
		for _, have := range r.topics {
			if have.Name == t.Name && have.Type == t.Type && have.Count != t.MessageCount {
				r.warnf("topic %q: %s says %d messages, the storages hold %d", clip(t.Name), MetadataFile, t.MessageCount, have.Count)
			}
		}
	}
}

// setMetadata fills r.meta and what r.info takes from custom_data.
func (r *Reader) setMetadata(given *Metadata) {
	m := &Metadata{Version: MetadataVersion}
	if given != nil {
		*m = *given
	}
	i := &r.info
	m.StorageIdentifier = r.files[len(r.files)-1].drvName()
	if m.ROSDistro != "" {
		i.ROSDistro = m.ROSDistro
	}
	m.ROSDistro = i.ROSDistro
	i.StorageID = m.StorageIdentifier
	m.Start, m.Duration, m.MessageCount = i.Start, i.Duration, i.Messages
	m.Topics, m.Paths, m.Files = nil, nil, nil
	for _, f := range i.Files {
		m.Paths = append(m.Paths, f.Path)
		m.Files = append(m.Files, FileMetadata{Path: f.Path, Start: f.Start, Duration: f.Duration, MessageCount: f.Messages})
	}
	if m.CompressionMode != CompressionNone {
		i.Compression = strings.TrimSpace(m.CompressionMode + " " + m.CompressionFormat)
	}
	i.CustomData = m.CustomData
	if text, ok := m.CustomData[KeyLedger]; ok {
		if l, err := ParseLedger(text); err != nil {
			r.warnf("%v", err)
		} else {
			i.Ledger = &l
		}
	}
	if text, ok := m.CustomData[KeyClockSteps]; ok {
		steps, err := ParseClockSteps(text)
		if err != nil {
			r.warnf("%v", err)
		}
		i.ClockSteps = steps
	}
	if text, ok := m.CustomData[KeySimJumps]; ok {
		jumps, err := ParseClockSteps(text)
		if err != nil {
			r.warnf("%v", err)
		}
		i.SimJumps = jumps
	}
	if text, ok := m.CustomData[KeyOverloads]; ok {
		var err error
		if i.Overloads, err = ParseOverloads(text); err != nil {
			r.warnf("%v", err)
		}
	}
	for n := range r.topics {
		t := &r.topics[n]
		if i.Ledger != nil {
			if l, ok := i.Ledger.Topics[t.Name]; ok {
				t.Ledger = &l
			}
		}
		m.Topics = append(m.Topics, TopicMetadata{Name: t.Name, Type: t.Type, SerializationFormat: t.SerializationFormat,
			OfferedQoS: t.QoS, TypeHash: t.TypeHash, MessageCount: t.Count})
	}
	r.meta = m
	if text, ok := m.CustomData[KeyRepeats]; ok { // last: metadata.yaml counts what the storages hold
		r.setRepeats(text)
	}
}

func (f *readerFile) drvName() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.drv == nil {
		return ""
	}
	return f.drv.Name()
}
