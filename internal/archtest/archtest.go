// Package archtest holds the import table of the module as a failing test: which package may import which, and which
// third-party modules each may use. A package that is not in the table fails too.
package archtest
