// Package matrixtest owns what the matrices of tests share: which cells a tier
// runs, and the tables that docs/ publishes. It is for tests only, and refuses
// to know what a cell is.
package matrixtest

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// Whole tells the tier in which every cell runs; in the others a fixed tenth does.
func Whole() bool { return os.Getenv("DESTKIT_TIER") == "matrix" }

// Named reports whether single cells were asked for with -run TEST/CELL: they run
// whatever the tier.
func Named() bool {
	f := flag.Lookup("test.run")
	return f != nil && strings.Contains(f.Value.String(), "/")
}

// Tenth reports whether the cell with this number runs. With -short none does: the
// test is skipped.
func Tenth(t *testing.T, cell int) bool {
	t.Helper()
	if testing.Short() {
		t.Skip("matrices do not run with -short")
	}
	return Whole() || cell%10 == 3 || Named()
}
