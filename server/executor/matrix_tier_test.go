package executor

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/crash-matrix.md and docs/fault-matrix.md")

// wholeMatrix tells the tier in which every cell runs; else a fixed tenth does.
func wholeMatrix() bool { return os.Getenv("DESTKIT_TIER") == "matrix" }

// tenth tells whether a cell of a matrix runs in this tier.
func tenth(t *testing.T, i int) bool {
	t.Helper()
	if testing.Short() {
		t.Skip("matrices do not run with -short")
	}
	return wholeMatrix() || i%10 == 3 || namedByRun()
}

// namedByRun lets one cell be run by name whatever the tier.
func namedByRun() bool {
	f := flag.Lookup("test.run")
	return f != nil && strings.Contains(f.Value.String(), "/")
}
