// Package matrixtest owns what the matrices of tests share: which cells a tier
// runs, and the tables that docs/ publishes. It is for tests only, and refuses
// to know what a cell is.
package matrixtest

import (
	"flag"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Whole reports whether the tier is that in which every cell runs, and every test with
// what it needs besides Go (make ci-full).
func Whole() bool { return os.Getenv("DESTKIT_TIER") == "full" }

// Long skips a test that takes a processor longer than about a second in make test, which
// is for every day. make race runs it, make matrix where it is in the sample (see One), and
// make ci-full. Tests that are requested with -run are run.
//
// The Makefile looks for the call in the text, so it must be in the test itself.
func Long(t testing.TB) {
	t.Helper()
	if pc, _, _, ok := runtime.Caller(1); ok && !strings.HasSuffix(runtime.FuncForPC(pc).Name(), "."+t.Name()) {
		requireFound(t)
	}
	long.Store(t.Name(), true)
	NotEveryDay(t)
	One(t)
}

// long has the names of the tests that have called Long.
var long sync.Map

// requireFound fails a test that differs from tier to tier and that make matrix does not
// find: it takes those with Matrix or Zoo in their names, and those that call Long.
func requireFound(t testing.TB) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if _, found := long.Load(name); !found && strings.HasPrefix(name, "Test") && !strings.Contains(name, "Matrix") && !strings.HasPrefix(name, "TestZoo") {
		t.Fatalf("no sample of %s runs in make matrix: put Matrix into its name, or matrixtest.Long(t) into its first line", name)
	}
}

// NotEveryDay is Long for a matrix, which has a sample of its cells.
func NotEveryDay(t testing.TB) {
	t.Helper()
	requireFound(t)
	if everyDay(os.Getenv("DESTKIT_TIER"), flag.Lookup("test.run")) {
		t.Skip("takes long: it runs in make race, make matrix and make ci-full, or by its name with -run")
	}
}

// Alone skips in make race a test that starts nothing else, such as one that reads every
// page, and takes long there: the detector has nothing to see, and make test runs it.
func Alone(t testing.TB) {
	t.Helper()
	if os.Getenv("DESTKIT_TIER") == "race" {
		t.Skip("nothing runs beside it: it runs in make test")
	}
}

// everyDay reports whether tests are run without a tier, or in that of make test, and
// none of them was named.
func everyDay(tier string, run *flag.Flag) bool {
	named := run != nil && run.Value.String() != ""
	return (tier == "" || tier == "test") && !named
}

// Named reports whether single cells were requested with -run TEST/CELL: they run
// whatever the tier.
func Named() bool {
	f := flag.Lookup("test.run")
	return f != nil && strings.Contains(f.Value.String(), "/")
}

// NotShort skips with -short a test that is a matrix from its beginning to its end.
func NotShort(t testing.TB) {
	t.Helper()
	requireFound(t)
	if testing.Short() {
		t.Skip("matrices do not run with -short")
	}
}

// RunCell runs a cell in parallel with others. A parallel test is kept until its parent has
// ended, and with it all that its clean-up refers to; so the cell is a test inside of it, of
// which nothing is left when it has ended.
func RunCell(t *testing.T, name string, cell func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		t.Run("cell", cell)
	})
}

// Missing ends a test that lacks a part of the machine, such as a program: it is skipped,
// and fails where DESTKIT_REQUIRE, a list of parts or "all", promises that part. The
// pipeline lists its installed parts there.
func Missing(t testing.TB, part, format string, args ...any) {
	t.Helper()
	if required(os.Getenv("DESTKIT_REQUIRE"), part) {
		t.Fatalf(format+" (DESTKIT_REQUIRE asks for "+part+")", args...)
	}
	t.Skipf(format, args...)
}

func required(list, part string) bool {
	parts := strings.Fields(list)
	return slices.Contains(parts, part) || slices.Contains(parts, "all")
}

// mostAgain bounds how many cells of one run may be judged twice. More of them
// are no busy machine: the judge is not steady.
const mostAgain = 5

var (
	beside sync.RWMutex
	again  atomic.Int32
)

// Steadily judges a cell in parallel with the others, and once more with no other of
// them at work where the verdict is not the wanted one: a cell is not about the
// effects of many judges on one processor. A wrong verdict is wrong both times.
func Steadily[R any](t testing.TB, judge func() R, wanted func(R) bool) R {
	t.Helper()
	r := amongOthers(judge)
	if wanted(r) || again.Add(1) > mostAgain {
		return r
	}
	t.Log("not the verdict that was wanted: judged again with no other cell at work")
	beside.Lock()
	defer beside.Unlock()
	return judge()
}

func amongOthers[R any](judge func() R) R {
	beside.RLock()
	defer beside.RUnlock()
	return judge()
}
