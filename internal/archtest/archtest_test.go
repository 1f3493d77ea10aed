package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"strings"
	"testing"
)

const module = "github.com/gobag/gobag"

// rule says what the non-test files of a package may import beside the standard library.
type rule struct {
	own   []string // packages of this module, relative to it; "x/..." stands for all below x
	third []string // module path prefixes
	test  []string // own packages that only test files may import beside own
}

const everything = "..."

// table is the import table of ARCHITECTURE.md. Keys are packages relative to the module; the longest match of a
// "x/..." key wins.
var table = map[string]rule{
	"plugin":            {test: []string{"plugin/plugintest"}},
	"plugin/plugintest": {own: []string{"plugin"}},
	"plugins/sqlite":    {own: []string{"plugin", "internal/fsx"}, third: []string{"modernc.org/sqlite", "modernc.org/libc"}, test: []string{"plugin/plugintest"}},
	"plugins/leveldb":   {own: []string{"plugin", "internal/fsx"}, third: []string{"github.com/syndtr/goleveldb", "github.com/golang/snappy"}, test: []string{"plugin/plugintest"}},
	"plugins/mcap": {own: []string{"plugin", "internal/fsx"}, third: []string{"github.com/klauspost/compress", "github.com/pierrec/lz4/v4", "github.com/foxglove/mcap/go/mcap"},
		test: []string{"plugin/plugintest"}},
	"plugins/columnar": {own: []string{"plugin", "internal/fsx", "msg", "msg/shred", "plugins/columnar/parquet"}, third: []string{"github.com/klauspost/compress"},
		test: []string{"plugin/plugintest", "cdr"}},
	"plugins/columnar/parquet": {third: []string{"github.com/klauspost/compress"}},
	"plugins/all":              {own: []string{"plugins/..."}},
	"bag": {own: []string{"plugin", "internal/fsx"}, third: []string{"go.yaml.in/yaml/v3", "github.com/klauspost/compress"},
		test: []string{"plugin/plugintest", "plugins/..."}},
	"convert": {own: []string{"bag", "plugin", "internal/selection"}, third: []string{"go.yaml.in/yaml/v3"},
		test: []string{"plugin/plugintest", "plugins/..."}},
	"cdr":       {},
	"msg":       {own: []string{"cdr"}},
	"msg/shred": {own: []string{"msg", "cdr"}, test: []string{"plugin", "bag", "plugins/..."}},
	"rosbag1":   {own: []string{"plugin"}},
	"rtps/wire": {own: []string{"cdr"}},
	"rtps": {own: []string{"rtps/wire", "cdr"}, third: []string{"golang.org/x/net", "golang.org/x/sys"},
		test: []string{"internal/netsim"}},
	"ros":          {},
	"ros/ros2":     {own: []string{"ros", "rtps", "rtps/wire", "cdr", "msg"}, test: []string{"ros/rostest", "ros/nodetest", "internal/netsim"}},
	"ros/rostest":  {own: []string{"ros"}, test: []string{"ros/nodetest"}},
	"ros/nodetest": {own: []string{"ros"}},
	"recorder": {own: []string{"bag", "plugin", "ros", "cdr", "msg", "internal/selection", "internal/fsx"},
		test: []string{"ros/rostest", "ros/ros2", "plugin/plugintest", "plugins/..."}},
	"player": {own: []string{"bag", "plugin", "ros", "cdr", "msg", "internal/selection"},
		test: []string{"ros/rostest", "ros/ros2", "plugin/plugintest", "plugins/..."}},
	"control": {own: []string{"recorder", "player", "ros", "cdr", "msg"}, test: []string{"bag", "plugin", "ros/rostest", "ros/ros2", "plugin/plugintest", "plugins/..."}},
	"perf": {own: []string{"bag", "plugin", "recorder", "player", "cdr", "msg", "ros/...", "internal/sqlview", "internal/fsx"},
		third: []string{"go.yaml.in/yaml/v3", "github.com/klauspost/compress"}, test: []string{"plugins/...", "msg/shred"}},
	"metrics":            {own: []string{"recorder", "player"}, test: []string{"bag", "plugin"}},
	"cmd/gobag":          {own: []string{everything}, third: []string{"github.com/spf13", "go.yaml.in/yaml/v3", "golang.org/x/sys"}},
	"internal/fsx":       {},
	"internal/ecmare":    {third: []string{"github.com/dlclark/regexp2"}},
	"internal/selection": {own: []string{"ros", "internal/ecmare"}},
	"internal/netsim":    {own: []string{"rtps/wire"}},
	"internal/msgtext":   {own: []string{"msg", "msg/shred"}, test: []string{"cdr"}},
	"internal/sqlview":   {own: []string{"bag", "plugin", "msg", "msg/shred", "plugins/columnar"}, third: []string{"modernc.org/sqlite"}, test: []string{"cdr", "plugins/..."}},
	"internal/archtest":  {},
	"interop/...":        {own: []string{everything}, third: []string{"golang.org/x/sys"}},
	"examples/...":       {own: []string{everything}},

	"ros/transcode": {own: []string{"msg", "cdr", "ros"}, test: []string{"ros/rostest"}},
	"ros/ros1": {own: []string{"ros", "msg", "cdr"}, third: []string{"github.com/bluenviron/goroslib/v2/pkg"},
		test: []string{"ros/nodetest", "ros/ros1/mastertest"}},
	"ros/ros1/mastertest": {third: []string{"github.com/bluenviron/goroslib/v2/pkg"}},
}

// testModules may be imported by any test file.
var testModules = []string{"go.uber.org/goleak"}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		var ee *exec.ExitError
		if errors.As(err, &ee) {
			t.Fatalf("go list: %v\n%s", err, ee.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var ps []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return ps
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		ps = append(ps, p)
	}
}

func ruleFor(pkg string) (rule, bool) {
	if r, ok := table[pkg]; ok {
		return r, true
	}
	for dir := pkg; dir != "."; dir = path.Dir(dir) {
		if r, ok := table[dir+"/..."]; ok {
			return r, true
		}
	}
	return rule{}, false
}

func ownAllowed(allowed []string, pkg string) bool {
	for _, a := range allowed {
		if a == everything || a == pkg {
			return true
		}
		if base, ok := strings.CutSuffix(a, "/..."); ok && (pkg == base || strings.HasPrefix(pkg, base+"/")) {
			return true
		}
	}
	return false
}

func thirdAllowed(allowed []string, imp string) bool {
	for _, a := range allowed {
		if imp == a || strings.HasPrefix(imp, a+"/") {
			return true
		}
	}
	return false
}

// violations returns what p imports against the table.
func violations(p listed) []string {
	pkg := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
	r, ok := ruleFor(pkg)
	if !ok {
		return []string{pkg + ": not in the table: add it to ARCHITECTURE.md and to this test"}
	}
	var bad []string
	check := func(imports []string, test bool) {
		for _, imp := range imports {
			if imp == "plugin" {
				bad = append(bad, pkg+": imports the standard library's plugin")
				continue
			}
			if own, ok := strings.CutPrefix(imp, module+"/"); ok {
				if own != pkg && !ownAllowed(r.own, own) && !(test && ownAllowed(r.test, own)) {
					bad = append(bad, pkg+": must not import "+own)
				}
				continue
			}
			if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
				if imp == "C" && !test {
					bad = append(bad, pkg+": uses cgo")
				}
				continue
			}
			if !thirdAllowed(r.third, imp) && !(test && thirdAllowed(testModules, imp)) {
				bad = append(bad, pkg+": must not use "+imp)
			}
		}
	}
	check(p.Imports, false)
	check(p.TestImports, true)
	check(p.XTestImports, true)
	return bad
}

func TestImports(t *testing.T) {
	for _, p := range list(t) {
		for _, v := range violations(p) {
			t.Error(v)
		}
	}
}

// TestBites shows that the rules catch what they are there for.
func TestBites(t *testing.T) {
	for _, p := range []listed{
		{ImportPath: module + "/bag", Imports: []string{module + "/plugins/sqlite"}},
		{ImportPath: module + "/plugin", Imports: []string{module + "/ros"}},
		{ImportPath: module + "/rtps", Imports: []string{module + "/ros"}},
		{ImportPath: module + "/ros", Imports: []string{"golang.org/x/sys/unix"}},
		{ImportPath: module + "/plugins/sqlite", Imports: []string{module + "/plugins/all"}},
		{ImportPath: module + "/recorder", Imports: []string{"plugin"}},
		{ImportPath: module + "/recorder", TestImports: []string{module + "/cmd/gobag"}},
		{ImportPath: module + "/rtps", Imports: []string{"C"}},
		{ImportPath: module + "/surprise"},
	} {
		if len(violations(p)) == 0 {
			t.Errorf("%s importing %v%v passes", p.ImportPath, p.Imports, p.TestImports)
		}
	}
}
