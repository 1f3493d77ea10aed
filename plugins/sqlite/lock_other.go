//go:build !unix

package sqlite

import "os"

// changing cannot tell here.
func changing(*os.File) (bool, error) { return false, nil }
