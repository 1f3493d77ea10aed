package recorder

import (
	"errors"
	"fmt"
	"time"
)

// Errors that callers test for.
var (
	// ErrDefinitionLater is what Options.Definition returns while a definition cannot be known yet.
	ErrDefinitionLater = errors.New("the definition is not known yet")

	// ErrNothingRecorded says that the recording ended without a single message. The bag is there and valid.
	ErrNothingRecorded = errors.New("no message was recorded")

	// ErrDiskFull is what a *DiskFullError is.
	ErrDiskFull = errors.New("disk is full")

	// ErrMissingTopics is what a *MissingTopicsError is.
	ErrMissingTopics = errors.New("named topics, services or actions never appeared")

	// ErrGaveUp says that the storage did not finish in time (Options.StopTimeout) or that Abort was called. The bag
	// is in the state a crash would leave: it opens, and what was not yet written is missing.
	ErrGaveUp = errors.New("gave up waiting for the storage")

	// ErrStalled says that for longer than Options.Watchdog messages came and nothing reached the storage.
	ErrStalled = errors.New("the storage stood still")

	// ErrNotRecording is what a command gets before the recording has begun and after its end.
	ErrNotRecording = errors.New("not recording")

	// ErrNoSnapshotMode is what TakeSnapshot returns without Options.SnapshotMode, and Split with it.
	ErrNoSnapshotMode = errors.New("snapshot mode")

	// ErrRunning says that Run was called twice.
	ErrRunning = errors.New("recorder already ran")
)

// MissingTopicsError names the topics, services and actions of the options that nobody published.
type MissingTopicsError struct{ Missing []Wanted }

func (e *MissingTopicsError) Error() string { return wantedText(e.Missing) + " never appeared" }

// Is makes it an ErrMissingTopics.
func (e *MissingTopicsError) Is(target error) bool { return target == ErrMissingTopics }

// DiskFullError says that the disk has less space left than asked for. The recording was stopped in order.
type DiskFullError struct {
	Path string
	Free int64 // bytes left
	Need int64 // bytes that should be left
	Err  error // the write error, when the disk filled up before the check saw it
}

func (e *DiskFullError) Error() string {
	s := fmt.Sprintf("disk of %s is full: %s free, %s needed", e.Path, size(e.Free), size(e.Need))
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is makes it an ErrDiskFull.
func (e *DiskFullError) Is(target error) bool { return target == ErrDiskFull }

// Unwrap returns the write error, if there was one.
func (e *DiskFullError) Unwrap() error { return e.Err }

// size writes bytes for people, in powers of ten as disks are sold: "12.3 MB".
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}

// seconds writes a duration for people: "3.2 s".
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
