package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// openPTY returns both ends of a pseudo-terminal of that many columns.
func openPTY(t *testing.T, columns uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals:", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip("pseudo-terminal:", err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip("pseudo-terminal:", err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("pseudo-terminal:", err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 25, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// terminal is the built program on a pseudo-terminal that is its controlling one.
type terminal struct {
	*process
	master *os.File
}

func launchOnTerminal(t *testing.T, columns uint16, words ...string) *terminal {
	t.Helper()
	master, slave := openPTY(t, columns)
	p := &process{t: t, cmd: exec.Command(binary(t), words...), done: make(chan struct{})}
	p.cmd.Env = []string{"HOME=" + t.TempDir(), "TERM=xterm"}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	read := make(chan struct{})
	go func() { // until the last user of the slave is gone
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			p.err.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	go func() {
		p.cmd.Wait()
		<-read
		close(p.done)
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
	return &terminal{p, master}
}

func (p *terminal) press(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

func TestRecordOnTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	domain := testDomain(t)
	talk(t, domain)
	p := launchOnTerminal(t, 60, "record", "-a", "-o", filepath.Join(t.TempDir(), "run"), "--domain-id", strconv.Itoa(domain), "--localhost")
	p.await("Recording...")
	p.await(" recorded | lost 0")
	p.press("\x03") // Ctrl-C
	r := p.result()
	if r.code != 0 {
		t.Errorf("exit %d\n%s", r.code, r.errOut)
	}
	for _, piece := range strings.Split(r.errOut, "\r\x1b[K") {
		if line, _, _ := strings.Cut(piece, "\n"); strings.Contains(line, "| lost") && utf8.RuneCountInString(line) > 59 {
			t.Errorf("the status line wraps: %q", line)
		}
	}
	_, last, _ := strings.Cut(r.errOut, "Recording stopped")
	if i := strings.LastIndex(last, "\x1b"); i >= 0 && strings.Contains(last[i:], "| lost") {
		t.Errorf("the status line stays: %q", last)
	}
}

func TestRecordKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	domain := testDomain(t)
	talk(t, domain)
	p := launchOnTerminal(t, 200, "record", "-a", "-o", filepath.Join(t.TempDir(), "run"), "--domain-id", strconv.Itoa(domain), "--localhost", "--control-socket", "off")
	p.await(" recorded | lost 0")
	for _, say := range []string{"Pausing recording.", "Resuming recording."} {
		p.press(" ")
		p.await(say)
	}
	p.press("\x03")
	if r := p.result(); r.code != 0 {
		t.Errorf("exit %d\n%q", r.code, r.errOut)
	}
}

func TestPlayKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := filepath.Join(t.TempDir(), "small")
	makeBag(t, dir, nil)
	p := launchOnTerminal(t, 200, "play", dir, "--loop", "--domain-id", strconv.Itoa(testDomain(t)), "--localhost")
	p.await("Playback started")
	for _, k := range []struct{ keys, say string }{
		{" ", "Pausing play."}, {"\x1b[A", "Set rate to 1.1"}, {"\x1b[B\x1b[B", "Set rate to 0.9"}, {"\x1b[C", "[P]"}, {" ", "Resuming play."}, {"\x1b[C", "while paused only"},
	} {
		p.press(k.keys)
		p.await(k.say)
	}
	p.press("\x03")
	if r := p.result(); r.code != 0 || !strings.Contains(r.errOut, "Played ") {
		t.Errorf("exit %d\n%q", r.code, r.errOut)
	}
	// The terminal is as it was: echo and lines.
	state, err := unix.IoctlGetTermios(int(p.master.Fd()), unix.TCGETS)
	if err == nil && state.Lflag&(unix.ECHO|unix.ICANON) != unix.ECHO|unix.ICANON {
		t.Error("the terminal is left raw")
	}
}

func TestPlayKeysDisabled(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir := filepath.Join(t.TempDir(), "small")
	makeBag(t, dir, nil)
	p := launchOnTerminal(t, 200, "play", dir, "-r", "5", "--disable-keyboard-controls", "--domain-id", strconv.Itoa(testDomain(t)), "--localhost")
	p.await("Playback started")
	p.press(" ")
	time.Sleep(50 * time.Millisecond)
	if r := p.result(); r.code != 0 || strings.Contains(r.errOut, "Pausing") {
		t.Errorf("exit %d\n%q", r.code, r.errOut)
	}
}
