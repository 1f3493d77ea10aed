package plainlog

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gobag/gobag/plugin"
)

// link is the one file that a gobag of one's own has more than the usual one.
const link = `package main

import _ "example.com/plainlog"
`

// buildCommand builds cmd/gobag with the format linked in: a workspace of both modules, and link as one more file of the
// command. The overlay stands for putting that file there, so that the tree stays as it is.
func buildCommand(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the whole command")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(root, "cmd", "gobag", "plainlog.go"): filepath.Join(dir, "link.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"link.go": link, "overlay.json": string(overlay),
		"go.work": "go 1.26.0\n\nuse (\n\t" + filepath.ToSlash(root) + "\n\t" + filepath.ToSlash(here) + "\n)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := filepath.Join(dir, "gobag")
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", command, "./cmd/gobag")
	build.Dir = root
	build.Env = append(os.Environ(), "GOWORK="+filepath.Join(dir, "go.work"), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build gobag with plainlog: %v\n%s", err, text)
	}
	return command
}

// A gobag with the format linked in lists it, finds it by its magic and shows what is in it.
func TestOwnCommand(t *testing.T) {
	gobag := buildCommand(t)
	if out := output(t, gobag, "list", "storage"); !strings.Contains(out, "plainlog") {
		t.Errorf("list storage: %s", out)
	}
	path := filepath.Join(t.TempDir(), "x"+Driver{}.Extension())
	w, err := Driver{}.Create(context.Background(), path, plugin.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	id, err := w.AddTopic(plugin.Topic{Name: "/chatter", Type: "std_msgs/msg/String", SerializationFormat: "cdr"})
	m := plugin.Message{Topic: id, RecvTime: 1_700_000_000_000_000_000, Data: []byte("\x00\x01\x00\x00\x02\x00\x00\x00a\x00")}
	if err := errors.Join(err, w.Write([]plugin.Message{m, m}), w.Close(plugin.Metadata{})); err != nil {
		t.Fatal(err)
	}
	out := output(t, gobag, "info", path)
	for _, want := range []string{"plainlog", "/chatter", "std_msgs/msg/String", "Count: 2"} {
		if !strings.Contains(out, want) {
			t.Errorf("info does not say %q:\n%s", want, out)
		}
	}
}

func output(t *testing.T, program string, words ...string) string {
	t.Helper()
	out, err := exec.Command(program, words...).CombinedOutput()
	if err != nil {
		t.Fatalf("gobag %s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}
