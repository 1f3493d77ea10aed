package bag

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// Compression says whether and how a bag is compressed, in rosbag2's terms. The zero value is not at all.
type Compression struct {
	Mode    string // CompressionNone, CompressionFile or CompressionMessage
	Format  string // "" = "zstd", the only one
	Threads int    // compressors at work at the same time; 0 = one for each CPU

	// Queue is how many closed files may wait for a compressor; when more do, the oldest of them stays as it is, and the
	// log says so. 0 = any number. Messages do not wait there: Write returns when they are compressed.
	Queue int

	// Priority of the compressors' threads: on Unix a nice value, on Windows −2 to 0. 0 = as the rest. Where the system
	// does not grant it the log says so and they run as the rest.
	Priority int
}

const compressionZstd = "zstd"

// ParseCompression reads the words of --compression-mode (none, file or message, in any case) and --compression-format.
func ParseCompression(mode, format string) (Compression, error) {
	c := Compression{Format: strings.ToLower(format)}
	switch strings.ToUpper(mode) {
	case "", "NONE":
	case CompressionFile, CompressionMessage:
		c.Mode = strings.ToUpper(mode)
	default:
		return c, fmt.Errorf("compression mode %q is not known (there is: none, file, message)", mode)
	}
	if c.Mode == CompressionNone && format != "" {
		return c, fmt.Errorf("compression format %q is given without a compression mode", format)
	}
	return c, c.validate()
}

func (c Compression) validate() error {
	var errs []error
	switch c.Mode {
	case CompressionNone, CompressionFile, CompressionMessage:
	default:
		errs = append(errs, fmt.Errorf("compression mode %q is not known (there is: %s, %s)", c.Mode, CompressionFile, CompressionMessage))
	}
	if c.Format != "" && c.Format != compressionZstd {
		errs = append(errs, fmt.Errorf("compression format %q is not known (there is: %s)", c.Format, compressionZstd))
	}
	if c.Threads < 0 {
		errs = append(errs, fmt.Errorf("%d compression threads", c.Threads))
	}
	if c.Queue < 0 {
		errs = append(errs, fmt.Errorf("compression queue size %d is negative", c.Queue))
	}
	errs = append(errs, checkPriority(c.Priority))
	return errors.Join(errs...)
}

// withDefaults fills in the format where there is a mode, and the number of threads.
func (c Compression) withDefaults() Compression {
	if c.Mode != CompressionNone {
		c.Format = compressionZstd
	}
	if c.Threads == 0 {
		c.Threads = runtime.GOMAXPROCS(0)
	}
	return c
}
