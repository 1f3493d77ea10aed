package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// isTerminal reports whether v is a file that is a console; the console is told to obey escape codes.
func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	if !ok {
		return false
	}
	var mode uint32
	h := windows.Handle(f.Fd())
	if windows.GetConsoleMode(h, &mode) != nil {
		return false
	}
	if mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING == 0 {
		_ = windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
	return true
}

// terminalWidth is the number of columns, 80 where it cannot be told.
func terminalWidth(v any) int {
	if f, ok := v.(*os.File); ok {
		var info windows.ConsoleScreenBufferInfo
		if windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) == nil {
			return int(info.Window.Right-info.Window.Left) + 1
		}
	}
	return 80
}

// rawKeys switches a console to handing over single keys, arrows as escape sequences. restore puts it back.
func rawKeys(f *os.File) (restore func(), err error) {
	h := windows.Handle(f.Fd())
	var old uint32
	if err := windows.GetConsoleMode(h, &old); err != nil {
		return nil, err
	}
	raw := old&^(windows.ENABLE_LINE_INPUT|windows.ENABLE_ECHO_INPUT) | windows.ENABLE_VIRTUAL_TERMINAL_INPUT
	if err := windows.SetConsoleMode(h, raw); err != nil {
		return nil, err
	}
	return func() { _ = windows.SetConsoleMode(h, old) }, nil
}

// waitKey waits until f has something to read, at most ms milliseconds.
func waitKey(f *os.File, ms int) bool {
	r, err := windows.WaitForSingleObject(windows.Handle(f.Fd()), uint32(ms))
	return err == nil && r == windows.WAIT_OBJECT_0
}

// foreground: a console has no background processes.
func foreground(*os.File) bool { return true }
