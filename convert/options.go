package convert

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/gobag/gobag/bag"
	"github.com/gobag/gobag/plugin"
)

// Options configure Run. At least one input and one output are needed.
type Options struct {
	Inputs   []Input
	Outputs  []Output
	Format   string         // serialization format that every topic of an output must have; "" = any
	Logger   *slog.Logger   // nil = silent
	Progress func(Progress) // called now and then by the goroutine of Run; nil = nobody is told
}

// Input is a bag that is read.
type Input struct {
	Path    string            // bag directory or storage file
	Range   *plugin.TimeRange // of receive stamps; nil = all
	Options bag.ReaderOptions
}

// Output is a bag that is made.
type Output struct {
	Dir          string            // must not exist
	Filter       Filter            // what is taken over; the zero value takes everything
	Range        *plugin.TimeRange // of receive stamps; nil = all
	QoSOverrides map[string]bag.QoSProfile

	// Writer is how the bag is written. Compat "" is Humble's form when no topic of the output has a type hash, else
	// Jazzy's. ROSDistro "" is that of the inputs. CustomData goes over that of the inputs. MaxBagDuration counts receive
	// stamps. SyncInterval and Logger are set by Run.
	Writer bag.WriterOptions
}

// Progress says how far Run is.
type Progress struct {
	Read, Total uint64 // messages of the inputs
	Written     uint64 // messages of all outputs
	Bytes       int64  // payload of the messages read
}

// Result says what Run made.
type Result struct {
	Read    uint64 // messages of the inputs
	Outputs []OutputResult
}

// OutputResult describes one bag that was made.
type OutputResult struct {
	Dir      string
	Storage  string
	Compat   plugin.Compat
	Messages uint64
	Bytes    int64 // payload, as it was before any compression
	Topics   int
	Files    int
	Size     int64 // of the storages on disk
}

// Validate returns all problems joined.
func (o Options) Validate() error {
	var errs []error
	if len(o.Inputs) == 0 {
		errs = append(errs, errors.New("no input bag"))
	}
	if len(o.Outputs) == 0 {
		errs = append(errs, errors.New("no output bag"))
	}
	seen := map[string]bool{}
	for _, out := range o.Outputs {
		switch {
		case out.Dir == "":
			errs = append(errs, errors.New("an output has no directory (uri)"))
		case seen[out.Dir]:
			errs = append(errs, fmt.Errorf("output %s is named twice", out.Dir))
		}
		seen[out.Dir] = true
		if _, err := newChooser(out.Filter); err != nil {
			errs = append(errs, err)
		}
		if err := out.Writer.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("output %s: %w", out.Dir, err))
		}
	}
	return errors.Join(errs...)
}
