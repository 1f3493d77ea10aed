package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// switchValue is a flag without a value. pflag's own prints "[=true|false]" behind every name in the help.
type switchValue bool

func (v *switchValue) String() string   { return strconv.FormatBool(bool(*v)) }
func (v *switchValue) Type() string     { return "boolfunc" }
func (v *switchValue) IsBoolFlag() bool { return true }

func (v *switchValue) Set(s string) error {
	b, err := strconv.ParseBool(s)
	*v = switchValue(b)
	return err
}

// switchFlag defines a flag without a value.
func switchFlag(fs *pflag.FlagSet, p *bool, name, short, usage string) {
	fs.VarPF((*switchValue)(p), name, short, usage).NoOptDefVal = "true"
}

func init() {
	cobra.AddTemplateFunc("flagUsages", func(fs *pflag.FlagSet) string {
		return strings.ReplaceAll(fs.FlagUsages(), "[=true|false]", strings.Repeat(" ", len("[=true|false]"))) // of cobra's --help
	})
}

// setTemplates makes the help say flags our way.
func setTemplates(root *cobra.Command) {
	t := strings.ReplaceAll(root.UsageTemplate(), ".LocalFlags.FlagUsages", "flagUsages .LocalFlags")
	root.SetUsageTemplate(strings.ReplaceAll(t, ".InheritedFlags.FlagUsages", "flagUsages .InheritedFlags"))
}

// hide takes flags out of the help.
func hide(fs *pflag.FlagSet, names ...string) {
	for _, n := range names {
		if err := fs.MarkHidden(n); err != nil {
			panic(err) // no such flag: a slip of ours
		}
	}
}
