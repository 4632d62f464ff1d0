package matrixtest

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files are the sources in which a matrix of checks looks for what its cells are about.
type Files struct {
	texts map[string]string // by path from the root
	steps map[string][]*regexp.Regexp
}

// ReadFiles reads what the patterns name, from the root of the repository; tests are left
// out.
func ReadFiles(t testing.TB, patterns ...string) *Files {
	t.Helper()
	root, f := Root(t), &Files{texts: map[string]string{}}
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(root, p))
		require.NoError(t, err)
		for _, name := range found {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			f.texts[path.Join(path.Dir(p), filepath.Base(name))] = string(data)
		}
	}
	require.NotEmpty(t, f.texts, "no file is named %v", patterns)
	return f
}

// Holding lists the files in which a text is: the file of a violation has its id in quotes.
func (f *Files) Holding(text string) (names []string) {
	for name, have := range f.texts {
		if strings.Contains(have, text) {
			names = append(names, name)
		}
	}
	return names
}

// pattern is the expression of a step in Go.
var pattern = regexp.MustCompile("`(\\^[^`]*\\$)`")

// Defining lists the files that define a step of these lines of a scenario.
func (f *Files) Defining(lines []string) (names []string) {
	lines = slices.Clone(lines)
	if f.steps == nil {
		f.steps = map[string][]*regexp.Regexp{}
		for name, text := range f.texts {
			for _, m := range pattern.FindAllStringSubmatch(text, -1) {
				if step, err := regexp.Compile(m[1]); err == nil {
					f.steps[name] = append(f.steps[name], step)
				}
			}
		}
	}
	for i, line := range lines {
		_, lines[i], _ = strings.Cut(line, " ") // Given, When, Then or And
	}
	for name, steps := range f.steps {
		if slices.ContainsFunc(steps, func(step *regexp.Regexp) bool { return slices.ContainsFunc(lines, step.MatchString) }) {
			names = append(names, name)
		}
	}
	return names
}

// CheckOf is the check that a violation is named for: RES-002 of RES-002.2.
func CheckOf(violation string) string {
	id, _, _ := strings.Cut(violation, ".")
	return id
}

// KillTable is the matrix of violations and of the checks that see them.
type KillTable struct{ table Table[string] }

// Add keeps a row: what the violation changes, the verdict of its own check, and
// what else trips, each with its reason ("PACE-009: ...").
func (k *KillTable) Add(violation, changes, verdict string, also []string) {
	cell := func(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
	k.table.Add(violation, fmt.Sprintf("| %s | %s | %s | %s |", violation, cell(changes), verdict, cell(strings.Join(also, "; "))))
}

// Write writes the page: the front, then every row of the table.
func (k *KillTable) Write(t *testing.T, file, front string, violations int) {
	t.Helper()
	head := front + "\n\n| violation | what it changes | verdict of its check | also trips |\n|---|---|---|---|\n"
	k.table.Write(t, file, head, fmt.Sprintf("\n%d violations, each caught.\n", violations), violations)
}

// Trips are the checks that a violation trips: its own, and at most four others with their reasons,
// which also lists as they are published.
func Trips[A ~struct{ ID, Why string } | ~struct {
	ID  string `json:"id"`
	Why string `json:"why"`
}](t testing.TB, violation string, others []A) (want, also []string) {
	t.Helper()
	require.LessOrEqual(t, len(others), 4)
	want = []string{CheckOf(violation)}
	for _, other := range others {
		a := struct{ ID, Why string }(other)
		want, also = append(want, a.ID), append(also, a.ID+": "+a.Why)
		require.NotEmpty(t, a.Why, "%s also %s needs its reason", violation, a.ID)
	}
	return want, also
}

// Table is a matrix as it is published: a line of Markdown for each cell. The
// zero value is an empty one. It is safe for parallel use.
type Table[K cmp.Ordered] struct {
	mu    sync.Mutex
	lines map[K]string
}

// Add keeps the line of a cell, without its end.
func (m *Table[K]) Add(cell K, line string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lines == nil {
		m.lines = map[K]string{}
	}
	m.lines[cell] = line + "\n"
}

// Write puts the table into a file between head and foot, the cells in their
// order. A matrix that is not whole, or that failed, is not written: the test
// fails.
func (m *Table[K]) Write(t *testing.T, file, head, foot string, cells int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if t.Failed() || len(m.lines) != cells {
		t.Errorf("the matrix is not whole (%d of %d cells): run it with DESTKIT_TIER=full and mend what fails", len(m.lines), cells)
		return
	}
	var b strings.Builder
	b.WriteString(head)
	for _, cell := range slices.Sorted(maps.Keys(m.lines)) {
		b.WriteString(m.lines[cell])
	}
	b.WriteString(foot)
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
}
