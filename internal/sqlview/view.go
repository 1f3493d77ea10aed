package sqlview

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"modernc.org/sqlite"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/msg"
	"github.com/gobag/gobag/msg/shred"
	"github.com/gobag/gobag/plugin"
	"github.com/gobag/gobag/plugins/columnar"
)

// Options configure Open. The zero value works.
type Options struct {
	Reader  bag.ReaderOptions // of all bags; AllowMissing is set
	MsgPath []string          // directories of message definitions, before those of this machine

	// TablesOnly has SQLite answer everything, with virtual tables.
	TablesOnly bool

	// Memory bounds the columns of columnar bags that are kept between queries, bytes; 0 none.
	Memory int64
}

// View is a set of bags as tables. Queries run one at a time.
type View struct {
	o      Options
	bags   []*openedBag
	tables []*table
	db     *sql.DB
	conn   *sql.Conn
	ctx    context.Context // of the query that runs

	mu      sync.Mutex
	trouble []string
	odd     map[string]*oddity // by bag and topic
	err     error              // of the query that runs: SQLite does not hand it on

	plans   map[string]*kernelPlan // of queries; nil: SQLite's
	answers []*result              // of kernels, for the query that SQLite runs
	memory  int64
	memMu   sync.Mutex // guards what follows
	mem     int64      // that is kept
	full    bool       // there was no room for something
	forgot  int        // how many times what is kept was dropped
	dicts   map[*columnar.Dictionary]*dictIndex
}

type openedBag struct {
	name    string
	r       *bag.Reader
	reverse bool // can be read backwards

	columns   []*columnar.Columns // of its storages, once asked for
	noColumns bool                // there are none
}

// oddity counts messages that were not decoded.
type oddity struct {
	n   int
	err error
}

// Open opens bags. The first that cannot be opened is an error. Topics whose type is not known or cannot be decoded are
// tables too.
func Open(ctx context.Context, paths []string, o Options) (*View, error) {
	v := &View{o: o, odd: map[string]*oddity{}, plans: map[string]*kernelPlan{}, memory: o.Memory, dicts: map[*columnar.Dictionary]*dictIndex{}}
	if err := v.open(ctx, paths, o); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

func (v *View) open(ctx context.Context, paths []string, o Options) error {
	o.Reader.AllowMissing = true
	for _, path := range paths {
		r, err := bag.Open(ctx, path, o.Reader)
		if err != nil {
			return err
		}
		b := &openedBag{name: path, r: r}
		v.bags = append(v.bags, b)
		if d, err := plugin.Lookup(r.Info().StorageID); err == nil {
			b.reverse = d.Features().Reverse
		}
	}
	v.makeTables(msg.NewFinder(msg.Options{Dirs: msg.SearchDirs(o.MsgPath)}))
	return nil
}

// makeTables makes a table of every topic name and one of all.
func (v *View) makeTables(finder *msg.Finder) {
	all := &table{v: v, name: "messages", all: true, types: []string{"all topics"}}
	byName := map[string]*table{}
	known := map[string]compiled{}
	for _, b := range v.bags {
		everything := &part{bag: b, by: map[plugin.TopicID]*source{}}
		for _, topic := range b.r.Info().Topics {
			t := byName[topic.Name]
			if t == nil {
				t = &table{v: v, name: topic.Name}
				byName[topic.Name] = t
				v.tables = append(v.tables, t)
			}
			s := &source{bag: b, name: topic.Name, typ: topic.Type}
			if s.p, s.why = program(finder, known, &topic); s.p != nil {
				s.fields = t.addFields(s.p)
			}
			t.add(b, topic.ID, s)
			t.rows += topic.Count
			all.rows += topic.Count
			everything.topics = append(everything.topics, topic.ID)
			everything.by[topic.ID] = s
		}
		all.parts = append(all.parts, everything)
	}
	slices.SortFunc(v.tables, func(a, b *table) int { return strings.Compare(a.name, b.name) })
	v.nameTables()
	v.addTypes()
	if !v.taken("messages") {
		v.tables = append(v.tables, all)
	}
}

// addTypes makes a table of each type that several topics have.
func (v *View) addTypes() {
	byType := map[string]*table{}
	topics := map[string]int{}
	var names []string
	for _, t := range v.tables {
		for _, typ := range t.types {
			if topics[typ]++; topics[typ] == 1 {
				names = append(names, typ)
			}
		}
	}
	slices.Sort(names)
	for _, typ := range names {
		if topics[typ] > 1 && !v.taken(typ) {
			byType[typ] = &table{v: v, name: typ, ofType: true}
			v.tables = append(v.tables, byType[typ])
		}
	}
	for _, of := range v.tables {
		for _, p := range of.parts {
			for _, id := range p.topics {
				s := p.by[id]
				t := byType[s.typ]
				if t == nil || of.ofType {
					continue
				}
				own := &source{bag: s.bag, name: s.name, typ: s.typ, p: s.p, why: s.why}
				if own.p != nil {
					own.fields = t.addFields(own.p)
				}
				t.addTopic(p.bag, id, own)
			}
		}
		if !of.ofType && len(of.types) == 1 && byType[of.types[0]] != nil {
			byType[of.types[0]].rows += of.rows
		}
	}
}

// addTopic is add for tables whose bags come in turns.
func (t *table) addTopic(b *openedBag, id plugin.TopicID, s *source) {
	i := slices.IndexFunc(t.parts, func(p *part) bool { return p.bag == b })
	if i < 0 {
		t.add(b, id, s)
		return
	}
	t.parts[i].topics = append(t.parts[i].topics, id)
	t.parts[i].by[id] = s
}

func (t *table) add(b *openedBag, id plugin.TopicID, s *source) {
	if len(t.parts) == 0 || t.parts[len(t.parts)-1].bag != b {
		t.parts = append(t.parts, &part{bag: b, by: map[plugin.TopicID]*source{}})
	}
	p := t.parts[len(t.parts)-1]
	p.topics = append(p.topics, id)
	p.by[id] = s
	if !slices.Contains(t.types, s.typ) {
		t.types = append(t.types, s.typ)
	}
}

// compiled is what came of a type.
type compiled struct {
	p   *shred.Program
	err error
}

// program compiles the type of a topic.
func program(finder *msg.Finder, known map[string]compiled, topic *bag.TopicInfo) (*shred.Program, error) {
	key := topic.Type + "\x00" + topic.TypeHash + "\x00" + topic.Definition.Text
	if c, ok := known[key]; ok {
		return c.p, c.err
	}
	var c compiled
	if topic.SerializationFormat != "cdr" && topic.SerializationFormat != "" {
		c.err = fmt.Errorf("its messages are serialized as %s", topic.SerializationFormat)
		if topic.Refused != "" {
			c.err = fmt.Errorf("%w: %s", c.err, topic.Refused)
		}
	} else {
		var d msg.Description
		if d, c.err = finder.Describe(topic.Type, topic.TypeHash, topic.Definition.Encoding, topic.Definition.Text); c.err == nil {
			c.p, c.err = shred.Compile(&d)
		}
	}
	known[key] = c
	return c.p, c.err
}

// taken tells whether a table has a name, whatever its case.
func (v *View) taken(name string) bool {
	return slices.ContainsFunc(v.tables, func(t *table) bool { return strings.EqualFold(t.name, name) || strings.EqualFold(t.alias, name) })
}

// nameTables makes the names of tables differ in more than their case and gives aliases where they are unambiguous.
func (v *View) nameTables() {
	used, aliases := map[string]bool{}, map[string]int{"messages": 1, "topics": 1}
	for _, t := range v.tables {
		name := t.name
		for n := 2; used[strings.ToLower(name)]; n++ {
			name = t.name + "_" + strconv.Itoa(n)
		}
		t.name = name
		used[strings.ToLower(name)] = true
		aliases[strings.ToLower(bare(name))]++
	}
	for _, t := range v.tables {
		if alias := bare(t.name); alias != "" && alias != t.name && aliases[strings.ToLower(alias)] == 1 && !used[strings.ToLower(alias)] {
			t.alias = alias
		}
	}
}

type connector struct{ d *sqlite.Driver }

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.d.Open(":memory:") }
func (c connector) Driver() driver.Driver                        { return c.d }

// connect makes the database in memory that has the tables, once, and lets nothing but queries through from then on.
func (v *View) connect(ctx context.Context) error {
	if v.conn != nil {
		return nil
	}
	if err := v.makeDatabase(ctx); err != nil {
		if v.conn != nil {
			err = errors.Join(err, v.conn.Close())
		}
		if v.db != nil {
			err = errors.Join(err, v.db.Close())
		}
		v.conn, v.db = nil, nil
		return err
	}
	return nil
}

func (v *View) makeDatabase(ctx context.Context) error {
	d := new(sqlite.Driver) // of our own: the module is nobody else's
	if err := d.RegisterModule("topic", (*module)(v)); err != nil {
		return err
	}
	if err := d.RegisterModule("answer", (*answerModule)(v)); err != nil {
		return err
	}
	v.db = sql.OpenDB(connector{d})
	v.db.SetMaxOpenConns(1)
	var err error
	if v.conn, err = v.db.Conn(ctx); err != nil {
		return fmt.Errorf("open sqlite in memory: %w", err)
	}
	for i, t := range v.tables {
		for _, name := range []string{t.name, t.alias} {
			if name == "" {
				continue
			}
			if _, err := v.conn.ExecContext(ctx, fmt.Sprintf("CREATE VIRTUAL TABLE %s USING topic(%d)", quote(name), i)); err != nil {
				return fmt.Errorf("make table %s: %w", name, err)
			}
		}
	}
	for i := range answerTables {
		if _, err := v.conn.ExecContext(ctx, fmt.Sprintf("CREATE VIRTUAL TABLE %s%d USING answer(%d)", answerPrefix, i, i)); err != nil {
			return fmt.Errorf("make table of answers: %w", err)
		}
	}
	if !v.taken("topics") {
		if err := v.listTopics(ctx); err != nil {
			return fmt.Errorf("make table topics: %w", err)
		}
	}
	return v.conn.Raw(func(c any) error {
		r, ok := c.(sqlite.AuthorizerRegisterer)
		if !ok {
			return errors.New("sqlite without authorizer")
		}
		return r.RegisterAuthorizer(readOnly)
	})
}

// listTopics makes the table topics.
func (v *View) listTopics(ctx context.Context) error {
	const create = "CREATE TABLE topics(_bag TEXT, topic TEXT, type TEXT, messages INTEGER, bytes INTEGER, serialization_format TEXT, type_hash TEXT)"
	if _, err := v.conn.ExecContext(ctx, create); err != nil {
		return err
	}
	for _, b := range v.bags {
		for _, t := range b.r.Info().Topics {
			var bytes any
			if t.Bytes >= 0 {
				bytes = t.Bytes
			}
			if _, err := v.conn.ExecContext(ctx, "INSERT INTO topics VALUES(?, ?, ?, ?, ?, ?, ?)",
				b.name, t.Name, t.Type, int64(t.Count), bytes, t.SerializationFormat, t.TypeHash); err != nil {
				return err
			}
		}
	}
	return nil
}

// readOnly lets queries through, and the pragmas that describe tables.
func readOnly(action sqlite.AuthorizerActionCode, arg1, _, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRead, sqlite.AuthFunction, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthPragma:
		switch strings.ToLower(arg1) {
		case "table_info", "table_xinfo", "table_list", "function_list", "compile_options":
			return sqlite.AuthorizerOK
		}
	}
	return sqlite.AuthorizerDeny
}

// Tables describes the tables, by name.
func (v *View) Tables() []Table {
	var out []Table
	for _, t := range v.tables {
		out = append(out, t.describe())
	}
	return out
}

// Query runs one statement. The rows must be closed before the next.
func (v *View) Query(ctx context.Context, query string) (*Rows, error) {
	v.mu.Lock()
	v.err = nil
	v.mu.Unlock()
	v.ctx = ctx
	if res, err := v.byKernel(ctx, query); res != nil {
		return &Rows{result: res, v: v}, nil
	} else if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	query, err := v.answerInner(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	if err := v.connect(ctx); err != nil {
		return nil, err
	}
	rows, err := v.conn.QueryContext(ctx, query)
	if err != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.err != nil {
			err = v.err
		}
		return nil, fmt.Errorf("query: %w", err)
	}
	return &Rows{rows: rows, v: v}, nil
}

// byKernel has kernels answer a query; nil without an error where SQLite has to.
func (v *View) byKernel(ctx context.Context, query string) (*result, error) {
	if v.o.TablesOnly {
		return nil, nil
	}
	p, ok := v.plans[query]
	if !ok {
		var err error
		if p, err = v.planKernel(ctx, query); err != nil && !errors.Is(err, errKernel) && !errors.Is(err, errLex) {
			return nil, err
		} else if err != nil {
			p = nil
		}
		if len(v.plans) >= 100 {
			clear(v.plans)
		}
		v.plans[query] = p
	}
	if p == nil {
		return nil, nil
	}
	v.forget()
	res, err := p.run(ctx, v)
	if errors.Is(err, errKernel) {
		return nil, nil
	}
	return res, err
}

// Trouble is what the queries so far did not see or could not decode, one line each.
func (v *View) Trouble() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := slices.Clone(v.trouble)
	var more []string
	for name, o := range v.odd {
		more = append(more, fmt.Sprintf("%s: %d messages not decoded, their fields are NULL; the first: %v", name, o.n, o.err))
	}
	slices.Sort(more)
	return append(out, more...)
}

func (v *View) notDecoded(s *source, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := s.bag.name + ": " + s.name
	if v.odd[key] == nil {
		v.odd[key] = &oddity{err: err}
	}
	v.odd[key].n++
}

// note keeps a line of trouble, once.
func (v *View) note(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if line := fmt.Sprintf(format, args...); !slices.Contains(v.trouble, line) {
		v.trouble = append(v.trouble, line)
	}
}

func (v *View) fail(err error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil {
		v.err = err
	}
	return err
}

// Close closes bags and tables. Rows must be closed before. Idempotent.
func (v *View) Close() error {
	var errs []error
	if v.conn != nil {
		if err := v.conn.Close(); !errors.Is(err, sql.ErrConnDone) {
			errs = append(errs, err)
		}
	}
	if v.db != nil {
		errs = append(errs, v.db.Close())
	}
	for _, b := range v.bags {
		errs = append(errs, b.closeColumns(), b.r.Close())
	}
	return errors.Join(errs...)
}
