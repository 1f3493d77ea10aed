package bag

import "runtime/debug"

// Version is what a bag says of the gobag that wrote it (KeyVersion). A program that knows better may set it before the
// first Create.
var Version = moduleVersion()

const modulePath = "github.com/gobag/gobag"

func moduleVersion() string {
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := ""
	if bi.Main.Path == modulePath {
		version = bi.Main.Version
	}
	for _, d := range bi.Deps {
		if d.Path == modulePath {
			version = d.Version
		}
	}
	if version == "" || version == "(devel)" {
		return "devel"
	}
	return version
}
