package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// doctorFlags are the flags of `doctor`, as typed.
type doctorFlags struct {
	node     nodeFlags
	dir      string
	listen   secondsValue
	fix, yes bool
	noDisk   bool
}

func newDoctor(a *app) *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at this machine and the network and say what will hurt a recording, with the command that mends it",
		Long: `Looks at what decides over a recording before it is made: network interfaces and multicast, socket buffers and settings
of IP fragments, ROS's and DDS's environment and what of it is honoured, the participants on the network and those that
cannot be reached, publishers and subscriptions that do not fit one another, the clock, and how fast the disk is and for how
long it stalls.

--fix shows a file of kernel settings and writes it to ` + sysctlFile + ` when you agree; the settings are in force at once.
Exit code 1 when something was found that keeps data from being recorded.`,
		Example: `  gobag doctor
  gobag doctor --dir /mnt/bags --listen 10
  sudo gobag doctor --fix`,
		Args: args(cobra.NoArgs, "takes no argument"),
		RunE: func(*cobra.Command, []string) error { return runDoctor(a, &f) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.dir, "dir", ".", "directory `DIR` that will be recorded to")
	f.listen = secondsValue(3 * time.Second)
	fs.Var(&f.listen, "listen", "how long to listen to the network")
	switchFlag(fs, &f.noDisk, "no-disk", "", "do not write to the directory to measure the disk")
	switchFlag(fs, &f.fix, "fix", "", "write kernel settings that help, after showing them")
	switchFlag(fs, &f.yes, "yes", "y", "with --fix: do not ask")
	f.node.define(fs, "gobag_doctor")
	return cmd
}

// finding is a line of the diagnosis.
type finding struct {
	level findingLevel
	what  string
	text  string
	mend  string // a command or advice; "" nothing is to be done
}

type findingLevel int

const (
	fine     findingLevel = iota
	noted                 // worth knowing
	hurts                 // messages may be lost or late
	prevents              // something cannot be recorded at all
)

func (l findingLevel) String() string { return [...]string{"ok", "note", "WARN", "FAIL"}[l] }

// diagnosis collects findings and prints them as they come.
type diagnosis struct {
	out  io.Writer
	list []finding
}

func (d *diagnosis) add(level findingLevel, what, mend, format string, args ...any) {
	f := finding{level: level, what: what, text: fmt.Sprintf(format, args...), mend: mend}
	d.list = append(d.list, f)
	fmt.Fprintf(d.out, "%-4s  %s: %s\n", f.level, f.what, f.text)
	if f.mend != "" {
		fmt.Fprintf(d.out, "      → %s\n", f.mend)
	}
}

func (d *diagnosis) count(level findingLevel) (n int) {
	for _, f := range d.list {
		if f.level == level {
			n++
		}
	}
	return n
}

func runDoctor(a *app, f *doctorFlags) error {
	stop := newStopper(a.ctx, nil)
	defer stop.Close()
	d := &diagnosis{out: a.out}
	d.interfaces()
	settings := kernelSettings(sysctlRoot)
	d.settings(settings)
	d.clock(sysctlRoot)
	d.environment(a)
	d.network(stop.ctx, a, f)
	if !f.noDisk {
		d.disk(stop.ctx, f.dir)
	}
	if stop.ctx.Err() != nil {
		return stop.ctx.Err()
	}
	fmt.Fprintf(a.out, "\nfindings that prevent recording: %d, that may hurt it: %d\n", d.count(prevents), d.count(hurts))
	if f.fix {
		if err := fixSettings(a.out, a.in, settings, sysctlRoot, sysctlFile, f.yes); err != nil {
			return fmt.Errorf("doctor --fix: %w", err)
		}
	}
	if n := d.count(prevents); n > 0 {
		return fmt.Errorf("doctor: %d of the findings prevent recording", n)
	}
	return nil
}

// fixSettings shows the file that mends the settings that are too low, and writes it and puts it in force when the user agrees.
func fixSettings(out io.Writer, in io.Reader, settings []kernelSetting, root, file string, yes bool) error {
	var text strings.Builder
	fmt.Fprintf(&text, "# Written by gobag doctor --fix: bursts of large messages need large socket buffers and room for IP fragments.\n")
	var low []kernelSetting
	for _, s := range settings {
		if s.low() {
			fmt.Fprintf(&text, "%s = %d\n", s.name, s.wanted)
			low = append(low, s)
		}
	}
	if len(low) == 0 {
		fmt.Fprintln(out, "no kernel setting needs mending")
		return nil
	}
	fmt.Fprintf(out, "\n%s:\n%s", file, text.String())
	if !yes {
		fmt.Fprint(out, "write this file and put it in force? [y/N] ")
		answer, err := bufio.NewReader(in).ReadString('\n')
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
			fmt.Fprintln(out, "nothing was changed")
			if err != nil && err != io.EOF {
				return err
			}
			return nil
		}
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("%w (it needs root: sudo gobag doctor --fix)", err)
	}
	for _, s := range low {
		if err := s.set(root); err != nil {
			return fmt.Errorf("put %s in force: %w", s.name, err)
		}
	}
	fmt.Fprintln(out, "written and in force")
	return nil
}
