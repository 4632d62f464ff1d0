package matrixtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// threeHundred cells of thirty checks, each with a file for itself.
func threeHundred() []Cell {
	var cells []Cell
	for i := range 300 {
		area := fmt.Sprintf("A%02d", i/10)
		cells = append(cells, Cell{Name: fmt.Sprintf("%s-%03d", area, i), Files: []string{"features/" + area + ".feature"}})
	}
	return cells
}

func chosen(reasons []string) (n int) {
	for _, why := range reasons {
		if why != "" {
			n++
		}
	}
	return n
}

// TestEachCellHasItsTurn: every commit chooses a twentieth, and all twentieths together are
// the matrix.
func TestEachCellHasItsTurn(t *testing.T) {
	cells, seen := threeHundred(), map[uint32][]string{}
	for i := range 400 {
		c := change{commit: fmt.Sprint("commit", i), known: true}
		reasons := c.choose(nil, cells)
		require.InDelta(t, 15, chosen(reasons), 14)
		for i, why := range reasons {
			if why != "" {
				require.Contains(t, why, "kept for the hash commit")
				seen[hash(c.commit)%parts] = append(seen[hash(c.commit)%parts], cells[i].Name)
			}
		}
	}
	all := map[string]int{}
	for _, names := range seen {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			all[name]++
		}
	}
	require.Len(t, all, len(cells))
	for name, n := range all {
		require.Equal(t, 1, n, name)
	}
}

// TestChangeChooses: changed cells run, shared code widens the sample to a tenth, and so
// does an unknown change; tests and pages widen nothing.
func TestChangeChooses(t *testing.T) {
	cells := threeHundred()
	with := func(files ...string) []string {
		return change{commit: "some", known: true, files: files}.choose([]string{"core/", "features/"}, cells)
	}
	usual := with()
	for i, why := range with("features/A07.feature", "docs/page.md", "core/a_test.go") {
		if strings.HasPrefix(cells[i].Name, "A07") {
			require.Equal(t, "features/A07.feature changed", why)
		} else {
			require.Equal(t, usual[i], why, "the feature is no shared file: cells are about it")
		}
	}
	wide := with("core/executor.go")
	require.InDelta(t, 30, chosen(wide), 20)
	require.Contains(t, wide, "shared core/executor.go changed")
	for i, why := range usual {
		require.True(t, why == "" || wide[i] == why, "a wider sample holds the usual one")
	}
	unknown := change{commit: "some"}.choose(nil, cells)
	require.Equal(t, chosen(wide), chosen(unknown))
	require.Contains(t, unknown, "which files changed is not known")

	var files []string
	for i := range 30 {
		files = append(files, fmt.Sprintf("features/A%02d.feature", i))
	}
	require.InDelta(t, 42, chosen(with(files...)), 10, "a change that is about all runs a tenth, and the twentieth")
}

// TestNeverNone: a small matrix runs one cell at least, and a matrix without cells none.
func TestNeverNone(t *testing.T) {
	for i := range 50 {
		c := change{commit: fmt.Sprint(i), known: true}
		require.Positive(t, chosen(c.choose(nil, []Cell{{Name: "a"}, {Name: "b"}})))
	}
	require.Empty(t, change{}.choose(nil, nil))
}

// TestOneCell: a test that is one cell runs in its turn, for its own file, and for others
// of its package in a tenth of all commits.
func TestOneCell(t *testing.T) {
	own, other := 0, 0
	for i := range 1000 {
		c := change{commit: fmt.Sprint(i), known: true, files: []string{"p/a_test.go"}}
		require.Equal(t, "p/a_test.go changed", c.one(Cell{Name: "TestA", Files: []string{"p/a_test.go"}}, "p/*"))
		cell := Cell{Name: "TestB", Files: []string{"p/b_test.go"}}
		if c.one(cell, "p/*") != "" {
			own++
		}
		c.files = []string{"p/code.go"}
		if c.one(cell, "p/*") != "" {
			other++
		}
	}
	require.InDelta(t, 50, own, 25)
	require.InDelta(t, 100, other, 40)
}

func TestExplain(t *testing.T) {
	c := change{commit: "abc", since: "123 (origin/main)"}
	require.Equal(t, "TestM: 3 of 4 cells, changes since 123 (origin/main)\n  f changed: b, c\n  kept for the hash abc: a\n",
		c.explain("TestM", []Cell{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}, []string{"kept for the hash abc", "f changed", "f changed", ""}))
}

// TestChangeOfARepository: which commit the change begins after.
func TestChangeOfARepository(t *testing.T) {
	folder := t.TempDir()
	require.False(t, changeOf(folder, "").known, "no repository")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Dir = folder
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	commit := func(name string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
		git("add", "-A")
		git("commit", "--quiet", "-m", name)
	}
	if exec.Command("git", "--version").Run() != nil {
		t.Skip("git is not installed")
	}
	git("init", "--quiet")
	commit("old")
	require.False(t, changeOf(folder, "").known, "nothing is before it")
	commit("older")
	commit("new")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "not committed"), nil, 0o600))
	c := changeOf(folder, strings.Repeat("0", 40))
	require.Equal(t, []string{"new", "not committed"}, c.files)
	require.Contains(t, c.since, "(the commit before)")
	require.Len(t, c.commit, 40)
	require.Equal(t, []string{"new", "older", "not committed"}, changeOf(folder, "HEAD~2").files)

	git("update-ref", "refs/remotes/origin/main", "HEAD~2")
	c = changeOf(folder, "no such commit")
	require.Equal(t, []string{"new", "older", "not committed"}, c.files)
	require.Contains(t, c.since, "(origin/main)")

	git("update-ref", "refs/remotes/origin/main", "HEAD")
	require.Contains(t, changeOf(folder, "").since, "(the commit before)", "all is in origin/main")
}

// TestFilesOfChecks: the files of a check are those with its steps, and those that break it.
func TestFilesOfChecks(t *testing.T) {
	f := &Files{texts: map[string]string{
		"steps_a.go": "step(`^every record (is|was) sent$`, 1)", "steps_b.go": "step(`^no call fails$`, 1), step(`not a step`)", "violate.go": `ID: "RES-002.2"`,
	}}
	lines := []string{"Given an endpoint", "Then every record was sent"}
	require.Equal(t, []string{"steps_a.go"}, f.Defining(lines))
	require.Equal(t, "Given an endpoint", lines[0])
	require.Empty(t, f.Defining([]string{"Then nothing"}))
	require.Equal(t, []string{"violate.go"}, f.Holding(`"RES-002`))
	require.Contains(t, ReadFiles(t, "internal/matrixtest/*.go").texts, "internal/matrixtest/checks.go")
	require.Equal(t, "internal/matrixtest/", packageFolder(t))
	require.Equal(t, "sample_test.go", testFile())
}
