package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// listAnnotation marks a flag that takes several words, as argparse's nargs='+' does: every word up to the next flag
// belongs to it.
const listAnnotation = "gobag_list"

// listFlag defines a flag that takes a list: `--topics /a /b`, `--topics /a,/b` and repetition. With commas false a
// comma is part of the word (key=value pairs, where the value may hold one).
func listFlag(fs *pflag.FlagSet, p *[]string, name, short, usage string, commas bool) {
	if commas {
		fs.StringSliceVarP(p, name, short, nil, usage)
	} else {
		fs.StringArrayVarP(p, name, short, nil, usage)
	}
	if err := fs.SetAnnotation(name, listAnnotation, nil); err != nil {
		panic(err) // the flag was defined a line above
	}
}

// expandLists rewrites `--topics /a /b` into `--topics=/a --topics=/b`, which is what pflag understands. A list ends at
// the next word that begins with '-'; "--" ends the list and everything after it is positional, as usual. So a bag path
// goes before the first list flag: `gobag play BAG --topics /a /b`.
func expandLists(root *cobra.Command, words []string) []string {
	cmd := root
	var out []string
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			return append(out, words[i:]...)
		}
		if !strings.HasPrefix(w, "-") || w == "-" {
			if len(out) == 0 && strings.HasPrefix(w, "__complete") {
				return words
			}
			if next := child(cmd, w); next != nil {
				cmd = next
			}
			out = append(out, w)
			continue
		}
		f := findFlag(cmd, w)
		switch {
		case f == nil || strings.Contains(w, "=") || attached(w):
			out = append(out, w)
		case isList(f):
			n := i + 1
			for n < len(words) && !isFlagWord(words[n]) {
				out = append(out, "--"+f.Name+"="+words[n])
				n++
			}
			if n == i+1 { // an empty list: pflag says so when the flag is the last word
				return append(out, w)
			}
			i = n - 1
		case isOptional(f) && i+1 < len(words) && fitsOptional(f, words[i+1]):
			out = append(out, "--"+f.Name+"="+words[i+1])
			i++
		case f.NoOptDefVal == "" && i+1 < len(words): // takes one value, which may begin with '-' or look like a verb
			out = append(out, w, words[i+1])
			i++
		default:
			out = append(out, w)
		}
	}
	return out
}

// isFlagWord: a word that ends a list. A lone "-" is a value.
func isFlagWord(w string) bool { return len(w) > 1 && w[0] == '-' }

// attached: a short flag with its value or further flags in the same word, "-b1000".
func attached(w string) bool { return len(w) > 2 && w[1] != '-' }

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

func findFlag(cmd *cobra.Command, w string) *pflag.Flag {
	if name, long := strings.CutPrefix(w, "--"); long {
		name, _, _ = strings.Cut(name, "=")
		return cmd.Flags().Lookup(name)
	}
	if len(w) < 2 {
		return nil
	}
	return cmd.Flags().ShorthandLookup(w[1:2])
}

// optionalAnnotation marks a flag whose value, a number or an address, may be left out, as argparse's nargs='?' does.
const optionalAnnotation = "gobag_optional"

// optionalNumber marks a flag, and says what it means without a number.
func optionalNumber(fs *pflag.FlagSet, name, without string) {
	fs.Lookup(name).NoOptDefVal = without
	if err := fs.SetAnnotation(name, optionalAnnotation, nil); err != nil {
		panic(err) // no such flag: a slip of ours
	}
}

// addressKind is the annotation's value where the flag takes an address.
const addressKind = "address"

// optionalAddress marks a flag whose value is HOST:PORT or :PORT, and says what it means without one.
func optionalAddress(fs *pflag.FlagSet, name, without string) {
	fs.Lookup(name).NoOptDefVal = without
	if err := fs.SetAnnotation(name, optionalAnnotation, []string{addressKind}); err != nil {
		panic(err) // no such flag: a slip of ours
	}
}

// fitsOptional: the word is a value of the flag, not the next argument.
func fitsOptional(f *pflag.Flag, w string) bool {
	if kinds := f.Annotations[optionalAnnotation]; len(kinds) == 1 && kinds[0] == addressKind {
		i := strings.LastIndexByte(w, ':')
		return i >= 0 && isNumber(w[i+1:]) && !strings.ContainsAny(w[:i], "/=")
	}
	return isNumber(w)
}

func isOptional(f *pflag.Flag) bool {
	_, ok := f.Annotations[optionalAnnotation]
	return ok
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

func isList(f *pflag.Flag) bool {
	_, ok := f.Annotations[listAnnotation]
	return ok
}
