package bag

import (
	"path/filepath"
	"strings"

	"github.com/gobag/gobag/internal/fsx"
)

// countsInFile returns the messages of the file being written, by topic. w.stateMu is held.
func (w *Writer) countsInFile() []uint64 {
	n := make([]uint64, len(w.topics))
	for i := range w.topics {
		n[i] = w.topics[i].inFile
	}
	return n
}

// forgetOldest takes the files that are too many, or make the bag too large, out of the books and returns them. They are
// still there: first metadata.yaml has to stop naming them. w.mu is held.
func (w *Writer) forgetOldest() (gone []FileMetadata) {
	w.stateMu.Lock()
	defer w.stateMu.Unlock()
	for len(w.files) > 0 {
		many := w.o.MaxBagFiles > 0 && len(w.files)+1 > w.o.MaxBagFiles
		large := w.o.MaxTotalSize > 0 && w.filesSize+w.size > w.o.MaxTotalSize
		f := w.files[0]
		if !many && !large || w.shrinker != nil && !w.shrinker.drop(f.Path) {
			break
		}
		w.filesSize -= fsx.DiskSize(filepath.Join(w.dir, f.Path))
		for i, n := range w.perFile[0] {
			w.topics[i].deleted += n
		}
		w.deleted += f.MessageCount
		w.files, w.perFile = w.files[1:], w.perFile[1:]
		if len(w.repeats) > 0 && strings.TrimSuffix(w.repeats[0].File, zstdExt) == strings.TrimSuffix(f.Path, zstdExt) {
			w.repeats = w.repeats[1:]
		}
		gone = append(gone, f)
	}
	if gone != nil {
		w.span = span{}
		for _, f := range w.files {
			if f.MessageCount > 0 {
				w.span.merge(span{true, f.Start, f.End()})
			}
		}
		w.span.merge(w.file.span)
	}
	return gone
}

// deleteFiles removes files that forgetOldest returned.
func (w *Writer) deleteFiles(gone []FileMetadata) {
	for _, f := range gone {
		w.remove(f.Path)
		if w.o.OnDelete != nil {
			w.o.OnDelete(f.Path, f.MessageCount)
		}
	}
}
