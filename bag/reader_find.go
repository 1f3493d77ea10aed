package bag

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/gobag/gobag/internal/fsx"
	"github.com/gobag/gobag/plugin"
)

const zstdExt = ".zstd"

// findFiles fills r.meta and r.files from the bag directory.
func (r *Reader) findFiles() (err error) {
	r.meta, err = r.readMetadata()
	if r.o.Rebuild {
		if err != nil {
			r.warnf("%v", err)
		}
		return r.collectFiles()
	}
	if err != nil {
		return err
	}
	if r.meta == nil {
		return r.collectFiles()
	}
	for _, w := range r.meta.Warnings {
		r.warnf("%s: %s", MetadataFile, w)
	}
	if len(r.meta.Paths) == 0 {
		r.warnf("%s lists no files; all storages of the directory are read", MetadataFile)
		return r.collectFiles()
	}
	used := map[string]bool{}
	var missing error
	for _, p := range r.meta.Paths {
		found, err := r.locate(p)
		if r.o.AllowMissing && errors.Is(err, fs.ErrNotExist) {
			r.warnf("file %s, which %s lists, is missing; the others are read", p, MetadataFile)
			missing = err
			continue
		}
		if err != nil {
			return err
		}
		if used[found] {
			r.warnf("%s lists %s twice; it is read once", MetadataFile, p)
			continue
		}
		used[found] = true
		if err := r.addFile(found, r.meta.StorageIdentifier); err != nil {
			return err
		}
	}
	if len(r.files) == 0 {
		return missing
	}
	return r.lookAtExtraFiles(used)
}

func (r *Reader) addFile(name, storageID string) error {
	if r.o.StorageID != "" {
		storageID = r.o.StorageID
	}
	full, err := fsx.Within(r.dir, name)
	if err != nil {
		return err
	}
	f, err := r.newFile(name, full, storageID)
	if err == nil {
		r.files = append(r.files, f)
	}
	return err
}

// locate returns the name, relative to the bag, of a file that metadata.yaml lists as p. Before version 4 such paths are
// relative to the directory above the bag, later to the bag; directories get renamed. So p is looked for in the bag as it
// is, then without the bag's own name in front, then by its last part. A compressed file may stand for a plain one and
// the other way round. Paths that leave the bag are refused.
func (r *Reader) locate(p string) (string, error) {
	slash := strings.ReplaceAll(p, `\`, "/")
	candidates := []string{slash}
	if first, rest, ok := strings.Cut(slash, "/"); ok && first != ".." && first != "" {
		candidates = append(candidates, rest, path.Base(slash))
	}
	for _, c := range candidates {
		for _, name := range []string{c, strings.TrimSuffix(c, zstdExt), c + zstdExt} {
			full, err := fsx.Within(r.dir, name)
			if err != nil {
				return "", fmt.Errorf("%s lists a file outside of the bag: %w", MetadataFile, err)
			}
			if _, err := os.Stat(full); err == nil {
				return path.Clean(name), nil
			} else if !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
	}
	if all, err := storageNames(r.dir); err == nil { // a name that YAML cannot carry
		for _, n := range all {
			if yamlText(n.file) == path.Base(slash) {
				return n.file, nil
			}
		}
	}
	return "", fmt.Errorf("file %s, which %s lists, is missing: %w", p, MetadataFile, fs.ErrNotExist)
}

// lookAtExtraFiles warns of storages in the directory that are not part of the bag. When the recording was cut off, files
// that continue the numbering belong to it: metadata.yaml had no time to name them.
func (r *Reader) lookAtExtraFiles(used map[string]bool) error {
	all, err := storageNames(r.dir)
	if err != nil {
		return err
	}
	last, numbered := parseName(r.files[len(r.files)-1].name)
	for _, n := range all {
		if used[n.file] || used[n.file+zstdExt] || used[strings.TrimSuffix(n.file, zstdExt)] {
			continue
		}
		if numbered && r.maybeCutOff() && n.prefix == last.prefix && n.number > last.number {
			if err := r.addFile(n.file, r.meta.StorageIdentifier); err != nil {
				return err
			}
			r.files[len(r.files)-1].unlisted = true
			continue
		}
		r.warnf("%s is not listed in %s; it is left out", n.file, MetadataFile)
	}
	return nil
}

// collectFiles finds the storages of a directory without metadata.yaml.
func (r *Reader) collectFiles() error {
	all, err := storageNames(r.dir)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return noStorage(r.dir)
	}
	plain := map[string]bool{}
	groups := map[string]bool{}
	for _, n := range all {
		plain[n.file] = true
		groups[n.group()] = true
	}
	if len(groups) > 1 {
		var names []string
		for _, n := range all {
			names = append(names, n.file)
		}
		if len(names) > 5 {
			names = append(names[:5], "…")
		}
		return fmt.Errorf("there is no %s, and %s are not parts of one bag: name one of the files", MetadataFile, strings.Join(names, ", "))
	}
	prev := -1
	for _, n := range all {
		if strings.HasSuffix(n.file, zstdExt) && plain[strings.TrimSuffix(n.file, zstdExt)] {
			continue // rosbag2 leaves the plain file behind after reading
		}
		if n.numbered && n.number > prev+1 {
			r.warnf("there is no %s, and no file with number %d before %s", MetadataFile, prev+1, n.file)
		}
		prev = n.number
		if err := r.addFile(n.file, ""); err != nil {
			return err
		}
	}
	return nil
}

func noStorage(dir string) error {
	var exts []string
	for _, d := range plugin.Drivers() {
		exts = append(exts, "*"+d.Extension())
	}
	err := fmt.Errorf("there is neither %s nor a storage (%s)", MetadataFile, strings.Join(exts, ", "))
	es, rerr := os.ReadDir(dir)
	if rerr != nil {
		return rerr
	}
	for _, e := range es {
		if h := foreignFile(filepath.Join(dir, e.Name())); h != "" {
			return fmt.Errorf("%w; %s %s", err, e.Name(), h)
		}
	}
	return err
}

// storageName is a file name taken apart.
type storageName struct {
	file     string // in the directory
	prefix   string
	ext      string
	numbered bool
	number   int
}

func (n storageName) group() string {
	return fmt.Sprintf("%t %s %s", n.numbered, n.prefix, n.ext)
}

var (
	oldName = regexp.MustCompile(`^(.*)_(\d{1,9})$`)                                                     // <bag>_<n>, up to Kilted
	newName = regexp.MustCompile(`^(\d{1,9})_(.*?)_?(\d{4}_\d{2}_\d{2}-\d{2}_\d{2}_\d{2}(?:[_-]\d+)?)$`) // <n>_<bag>_<time>, from Lyrical on
)

// parseName takes a storage's file name apart. numbered is false, and ok too, where it has no number.
func parseName(file string) (n storageName, ok bool) {
	stem := strings.TrimSuffix(path.Base(file), zstdExt)
	n = storageName{file: file, ext: path.Ext(stem)}
	stem = strings.TrimSuffix(stem, n.ext)
	n.prefix = stem
	if m := newName.FindStringSubmatch(stem); m != nil {
		n.number, _ = strconv.Atoi(m[1])
		n.prefix, n.numbered = m[2], true
	} else if m := oldName.FindStringSubmatch(stem); m != nil {
		n.number, _ = strconv.Atoi(m[2])
		n.prefix, n.numbered = m[1], true
	}
	return n, n.numbered
}

// storageNames returns what carries the extension of a storage format in dir, in the order of its numbers.
func storageNames(dir string) ([]storageName, error) {
	exts := map[string]bool{}
	for _, d := range plugin.Drivers() {
		exts[d.Extension()] = true
	}
	es, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []storageName
	for _, e := range es {
		n, _ := parseName(e.Name())
		if strings.HasPrefix(e.Name(), ".") || !exts[n.ext] {
			continue
		}
		out = append(out, n)
	}
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].group() != out[j].group() {
			return out[i].group() < out[j].group()
		}
		return out[i].number < out[j].number
	})
	return out, nil
}
