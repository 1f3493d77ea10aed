//go:build linux

package interop_test

import (
	"context"
	"fmt"
	"image"
	"image/color"
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gobag/gobag/interop/lab"
)

// picture is a page as Chromium shows it.
type picture struct {
	image   image.Image
	console []string // what the page said on its console
	path    string
}

var consoleLine = regexp.MustCompile(`:CONSOLE[:(]\d+\)?\] (.*)$`)

// look has headless Chromium show a file at a window's size, in light or dark.
func look(t *testing.T, file, name string, width, height int, dark bool) picture {
	t.Helper()
	chromium, err := lab.Tool("chromium")
	needs(t, err)
	root, err := lab.Root()
	must(t, err)
	pages := filepath.Join(root, "interop", "build", "pages")
	must(t, os.MkdirAll(pages, 0o777))
	p := picture{path: filepath.Join(pages, name+".png")}
	scheme := "1"
	if dark {
		scheme = "0"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
		"--user-data-dir="+t.TempDir(), fmt.Sprintf("--window-size=%d,%d", width, height), "--blink-settings=preferredColorScheme="+scheme,
		"--enable-logging=stderr", "--screenshot="+p.path, "file://"+file)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("chromium: %v: %s", err, out)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if m := consoleLine.FindStringSubmatch(line); m != nil {
			p.console = append(p.console, m[1])
		}
	}
	f, err := os.Open(p.path)
	must(t, err)
	defer f.Close()
	p.image, _, err = image.Decode(f)
	must(t, err)
	return p
}

// count is the number of pixels of a colour, 0xRRGGBB.
func (p picture) count(rgb uint32) (n int) {
	want := color.RGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 255}
	b := p.image.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			if color.RGBAModel.Convert(p.image.At(x, y)) == want {
				n++
			}
		}
	}
	return n
}

// wide says whether anything but the background is in the picture's last columns: the page does not fit.
func (p picture) wide() bool {
	b := p.image.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Max.X - 4; x < b.Max.X; x++ {
			if p.image.At(x, y) != p.image.At(b.Max.X-1, b.Min.Y) {
				return true
			}
		}
	}
	return false
}

// The page of a real run in headless Chromium: no word on the console, the bars and curves are drawn in their colours, in
// light and dark, on a desk and on a phone. The screenshots stay in interop/build/pages.
func TestReportPage(t *testing.T) {
	_, err := lab.Tool("chromium")
	needs(t, err)
	dir := filepath.Join(t.TempDir(), "report")
	out, err := exec.Command(gobag.Path, "perf", "record", "--scenario", "mixed", "--storage", "mcap,sqlite3", "--quick", "--report", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	page := filepath.Join(dir, "report.html")
	const (
		lightPage, lightOne, lightTwo = 0xfcfcfb, 0x2563b8, 0xc2671a
		darkPage, darkOne, darkTwo    = 0x17181a, 0x74a9f0, 0xeda35f
	)
	for _, c := range []struct {
		name             string
		width, height    int
		dark             bool
		ground, one, two uint32
	}{
		{"report-desk-light", 1200, 2000, false, lightPage, lightOne, lightTwo},
		{"report-desk-dark", 1200, 2000, true, darkPage, darkOne, darkTwo},
		{"report-phone", 500, 3600, false, lightPage, lightOne, lightTwo},
	} {
		p := look(t, page, c.name, c.width, c.height, c.dark)
		if len(p.console) > 0 {
			t.Errorf("%s: console: %q", c.name, p.console)
		}
		// Two bars of 100 %, 10 pixels high, as wide as the page; and curves.
		bars := 2 * 10 * min(c.width-40, 1000)
		if one, two, ground := p.count(c.one), p.count(c.two), p.count(c.ground); one < bars*8/10 || two < 300 || ground < c.width*c.height/2 {
			t.Errorf("%s: %d pixels of the first colour (bars alone %d), %d of the second, %d of the background: see %s", c.name, one, bars, two, ground, p.path)
		}
		if p.wide() {
			t.Errorf("%s: the page is wider than the window: see %s", c.name, p.path)
		}
	}
}

// The look at the console sees what a page says there, else the test above proves nothing.
func TestConsoleIsHeard(t *testing.T) {
	_, err := lab.Tool("chromium")
	needs(t, err)
	page := filepath.Join(t.TempDir(), "bad.html")
	must(t, os.WriteFile(page, []byte(`<!DOCTYPE html><body style="background:#123456"><script>undefinedFunction()</script>`), 0o666))
	p := look(t, page, "console", 500, 300, false)
	if len(p.console) == 0 || !strings.Contains(p.console[0], "undefinedFunction is not defined") {
		t.Errorf("console: %q", p.console)
	}
	if p.count(0x123456) != 500*300 || p.count(0x2563b8) != 0 {
		t.Errorf("%d pixels of the background", p.count(0x123456))
	}
}
