package sqlite

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gobag/gobag/plugin"
)

const (
	pageSize  = 8 << 10
	editKiB   = 512     // SQLite's page cache for the small tables, where the pages of messages are written here
	cacheKiB  = 4 << 10 // and where SQLite writes all of them
	sqlPage   = 64 << 10
	readKiB   = 4 << 10 // and of one iterator
	maxLength = 1_000_000_000

	// A row beside its payload: header and three integers.
	rowOverhead = 64
)

// preset is what the presets differ in.
type preset struct {
	name, help  string
	synchronous string
	commitBytes int64 // payload bytes after which a commit is started without being asked
	sqlBytes    int64 // the same where SQLite writes, which keeps the caller waiting
}

var presets = []preset{
	{plugin.PresetResilient, "SIGKILL or a power cut lose at most what came after the last sync, or 64 MB if that is less", "FULL", 32 << 20, 8 << 20},
	{plugin.PresetFast, "as resilient, but only the sync interval (and 512 MB) bounds the loss: fewer waits for the disk", "NORMAL", 256 << 20, 64 << 20},
	{plugin.PresetSmall, "the same as resilient: SQLite has no compression", "FULL", 32 << 20, 8 << 20},
	{plugin.PresetNone, "the same as fast: rosbag2's own default can leave a damaged file", "NORMAL", 256 << 20, 64 << 20},
}

func lookupPreset(name string) (preset, error) {
	if name == "" {
		name = plugin.PresetResilient
	}
	var known []string
	for _, p := range presets {
		if p.name == name {
			return p, nil
		}
		known = append(known, p.name)
	}
	return preset{}, fmt.Errorf("unknown preset %q (there is: %s)", name, strings.Join(known, ", "))
}

// pragma is one entry of the key "pragmas" of a storage configuration.
type pragma struct{ name, value string }

func (p pragma) sql() string {
	if p.value == "" {
		return "PRAGMA " + p.name
	}
	return "PRAGMA " + p.name + " = " + p.value
}

// parseConfig reads the write or read part of a storage configuration file in rosbag2's form:
//
//	pragmas: ["journal_mode = WAL", "cache_size(1000)"]
//
// Quotes and semicolons are refused, as rosbag2 does, and so is everything else that is not one name and one value.
func parseConfig(config map[string]any) ([]pragma, error) {
	for _, k := range slices.Sorted(maps.Keys(config)) {
		if k != "pragmas" {
			return nil, fmt.Errorf("unknown storage configuration key %q (there is: pragmas)", k)
		}
	}
	var entries []string
	switch v := config["pragmas"].(type) {
	case nil:
	case []string:
		entries = v
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return nil, fmt.Errorf("storage configuration key pragmas: %v is not a string", e)
			}
			entries = append(entries, s)
		}
	default:
		return nil, fmt.Errorf("storage configuration key pragmas: want a list of strings, got %v", v)
	}
	var ps []pragma
	for _, e := range entries {
		p, err := parsePragma(e)
		if err != nil {
			return nil, fmt.Errorf("storage configuration key pragmas: %w", err)
		}
		ps = append(ps, p)
	}
	return ps, nil
}

func parsePragma(s string) (pragma, error) {
	if i := strings.IndexAny(s, `'";`); i >= 0 {
		return pragma{}, fmt.Errorf("pragma %q: the character %q is not allowed", s, s[i])
	}
	name, value := s, ""
	if n, v, ok := strings.Cut(s, "="); ok {
		name, value = n, v
	} else if n, v, ok := strings.Cut(s, "("); ok {
		name = n
		if value, ok = strings.CutSuffix(strings.TrimSpace(v), ")"); !ok {
			return pragma{}, fmt.Errorf("pragma %q: a bracket is not closed", s)
		}
	}
	p := pragma{strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)}
	if !isWord(p.name, "_") {
		return pragma{}, fmt.Errorf("pragma %q: want \"name = value\" or \"name(value)\"", s)
	}
	if strings.ContainsAny(s, "=(") && !isWord(p.value, "_-+.") {
		return pragma{}, fmt.Errorf("pragma %q: the value must be one word or number", s)
	}
	return p, nil
}

// isWord says whether s consists of ASCII letters, digits and the given others, and is not empty.
func isWord(s, others string) bool {
	for _, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(others, r)) {
			return false
		}
	}
	return s != ""
}

// pragmaNames returns the pragmas this SQLite knows: it would ignore others without a word.
func pragmaNames(c *conn) (map[string]bool, error) {
	names := map[string]bool{}
	err := c.query("PRAGMA pragma_list", func(s *stmt) error {
		names[strings.ToLower(s.text(0))] = true
		return nil
	})
	return names, err
}

// checkPragmas refuses pragmas that this SQLite does not know.
func checkPragmas(c *conn, ps []pragma) error {
	if len(ps) == 0 {
		return nil
	}
	names, err := pragmaNames(c)
	if err != nil {
		return err
	}
	for _, p := range ps {
		if !names[p.name] {
			return fmt.Errorf("unknown pragma %q (there is: %s)", p.name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
		}
	}
	return nil
}

// applyPragmas runs the user's pragmas, which checkPragmas has let pass. The journal mode that was asked for must be
// the one in effect.
func applyPragmas(c *conn, ps []pragma) error {
	for _, p := range ps {
		got, err := c.queryText(p.sql())
		if err != nil {
			return fmt.Errorf("pragma %s: %w", p.name, err)
		}
		if p.name == "journal_mode" && p.value != "" && !strings.EqualFold(got, p.value) {
			return fmt.Errorf("pragma journal_mode: asked for %s, got %s", p.value, got)
		}
	}
	return nil
}

// beforeTables says whether a pragma has an effect only while the file is still empty.
func (p pragma) beforeTables() bool {
	return p.name == "page_size" || p.name == "auto_vacuum" || p.name == "encoding"
}
