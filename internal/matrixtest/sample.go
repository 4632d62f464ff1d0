package matrixtest

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Cell is one cell of a matrix, with the files that it is about: its check's feature,
// steps and violation, or its fault. A file is a path from the root of the repository, a
// pattern of path.Match, or a folder with a slash at its end.
type Cell struct {
	Name  string
	Files []string
}

// A cell belongs to one of so many parts, and the hash of the commit selects the one
// that runs. Where shared code has changed so many run: a tenth.
const (
	parts      = 20
	sharedRuns = 2
)

// Sample reports which cells of a matrix run. All do in the tier of the whole matrices and
// where single ones are requested with -run TEST/CELL; in make test each hundredth does, at
// least one. In the tier of the matrices a cell runs
//
//   - if it belongs to the twentieth that the hash of the commit chooses, or to a tenth when
//     a file has changed that all cells share and no cell is about;
//   - if a file has changed that it is about; where that is more than a tenth of the matrix,
//     and more than ten cells, the commit chooses a tenth among them.
//
// At least one does. Which they are and why is appended to the file DESTKIT_CHOSEN. With
// -short no cell runs: the test is skipped.
func Sample(t testing.TB, shared []string, cells []Cell) []bool {
	t.Helper()
	NotShort(t)
	runs := make([]bool, len(cells))
	switch {
	case Whole() || Named():
		for i := range runs {
			runs[i] = true
		}
	case os.Getenv("DESTKIT_TIER") != "matrix":
		for i := range runs {
			runs[i] = i%100 == min(3, len(runs)-1)
		}
	default:
		reasons := thisChange().choose(shared, cells)
		for i, why := range reasons {
			runs[i] = why != ""
		}
		tellChosen(t, thisChange().explain(t.Name(), cells, reasons))
	}
	return runs
}

// One skips in the tier of the matrices a test that is one cell, unless the sample holds
// it. It is about its own file; the others of its package are shared.
func One(t testing.TB) {
	t.Helper()
	if os.Getenv("DESTKIT_TIER") != "matrix" || Named() {
		return
	}
	folder := packageFolder(t)
	cell := Cell{Name: t.Name(), Files: []string{folder + testFile()}}
	reason := thisChange().one(cell, folder+"*")
	if reason == "" {
		t.Skip("not in the sample of this commit: make ci-full runs it")
	}
	tellChosen(t, thisChange().explain(t.Name(), []Cell{cell}, []string{reason}))
}

// testFile is the name of the test that calls.
func testFile() string {
	for up := 1; ; up++ {
		_, file, _, ok := runtime.Caller(up)
		if !ok || strings.HasSuffix(file, "_test.go") {
			return filepath.Base(file)
		}
	}
}

// one is the reason why a cell runs that is a separate matrix, "" where it does not.
func (c change) one(cell Cell, shared string) string {
	if file := c.touched(cell.Files); file != "" {
		return file + " changed"
	}
	run, why := c.width([]string{shared}, nil)
	if reason := c.part(cell, 1); reason != "" || c.part(cell, run) == "" {
		return reason
	}
	return why
}

// width is how many parts run, and why they are more than one. Files that cells are
// about are not shared.
func (c change) width(shared []string, owned map[string]bool) (run uint32, why string) {
	if !c.known {
		return sharedRuns, "which files changed is not known"
	}
	for _, file := range c.files {
		if !owned[file] && !strings.HasSuffix(file, "_test.go") && matches(shared, file) {
			return sharedRuns, "shared " + file + " changed"
		}
	}
	return 1, ""
}

// choose gives each cell the reason why it runs, "" where it does not.
func (c change) choose(shared []string, cells []Cell) []string {
	reasons := make([]string, len(cells))
	owned := map[string]bool{}
	var about []int
	for i, cell := range cells {
		for _, file := range c.files {
			if matches(cell.Files, file) {
				owned[file] = true
			}
		}
		if file := c.touched(cell.Files); file != "" {
			reasons[i] = file + " changed"
			about = append(about, i)
		}
	}
	run, why := c.width(shared, owned)
	if most := max(len(cells)*sharedRuns/parts, 10); len(about) > most {
		slices.SortFunc(about, func(a, b int) int {
			return cmp.Compare(hash(c.commit, cells[a].Name), hash(c.commit, cells[b].Name))
		})
		for _, i := range about[most:] {
			reasons[i] = ""
		}
		run = 1
	}
	lowest := -1
	for i, cell := range cells {
		if reasons[i] == "" {
			reasons[i] = c.part(cell, 1)
		}
		if reasons[i] == "" && c.part(cell, run) != "" {
			reasons[i] = why
		}
		if lowest < 0 || hash(c.commit, cell.Name) < hash(c.commit, cells[lowest].Name) {
			lowest = i
		}
	}
	if lowest >= 0 && !slices.ContainsFunc(reasons, func(r string) bool { return r != "" }) {
		reasons[lowest] = "at least one cell"
	}
	return reasons
}

// part is the reason of a cell in one of the first parts that the commit chooses.
func (c change) part(cell Cell, run uint32) string {
	if (hash(cell.Name)%parts+parts-hash(c.commit)%parts)%parts < run {
		return fmt.Sprintf("kept for the hash %.8s", c.commit)
	}
	return ""
}

// touched is the first changed file of these.
func (c change) touched(files []string) string {
	for _, file := range c.files {
		if matches(files, file) {
			return file
		}
	}
	return ""
}

func matches(patterns []string, file string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		if strings.HasSuffix(p, "/") {
			return strings.HasPrefix(file, p)
		}
		ok, err := path.Match(p, file)
		return ok && err == nil
	})
}

func hash(words ...string) uint32 {
	h := fnv.New32a()
	for _, w := range words {
		_, _ = h.Write([]byte(w + "\x00"))
	}
	return h.Sum32()
}

// explain is what the run prints of one matrix.
func (c change) explain(matrix string, cells []Cell, reasons []string) string {
	by, all := map[string][]string{}, 0
	for i, why := range reasons {
		if why != "" {
			by[why] = append(by[why], cells[i].Name)
			all++
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d cells, changes since %s\n", matrix, all, len(cells), c.since)
	for _, why := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&b, "  %s: %s\n", why, strings.Join(by[why], ", "))
	}
	return b.String()
}

func tellChosen(t testing.TB, text string) {
	t.Helper()
	t.Log(text)
	name := os.Getenv("DESTKIT_CHOSEN")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString(text)
	require.NoError(t, err)
}

// Root is the root of the repository.
func Root(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	for ; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "CONTRIBUTING.md")); err == nil {
			return folder
		}
		require.NotEqual(t, folder, filepath.Dir(folder), "no root of the repository above the test")
	}
}

// packageFolder is the folder of the package under test, from the root, with a slash at
// its end.
func packageFolder(t testing.TB) string {
	t.Helper()
	folder, err := os.Getwd()
	require.NoError(t, err)
	below, err := filepath.Rel(Root(t), folder)
	require.NoError(t, err)
	return filepath.ToSlash(below) + "/"
}
