package zoo_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/conformance"
)

var (
	inCode    = regexp.MustCompile(`\bwrong\(['"]([a-z0-9-]+)['"]\)`)
	ofProcess = regexp.MustCompile(`request\.url\.includes\('([a-z-]+)'\)`)
	habitName = regexp.MustCompile(`(?m)^(?:  '|    "|\t")([a-z0-9-]+)['"]: `)
)

// TestTablesAndCodeAgree: every mistake and habit of a server is in the tables,
// and every one of the tables is in its server.
func TestTablesAndCodeAgree(t *testing.T) {
	for language, glob := range map[string]string{Node: "testdata/node/*.mjs", Python: "testdata/python/*.py", Go: "testdata/golang/*.go", SQLite: "testdata/sqlite/*.py", Postgres: "testdata/postgres/*.go", EventLog: "testdata/eventlog/*.py", Express: "testdata/express/*.mjs"} {
		files, err := filepath.Glob(glob)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		var mistakes, habits []string
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range append(inCode.FindAllStringSubmatch(string(text), -1), ofProcess.FindAllStringSubmatch(string(text), -1)...) {
				mistakes = append(mistakes, m[1])
			}
			if match, _ := filepath.Match("habits.*", filepath.Base(file)); match {
				for _, m := range habitName.FindAllStringSubmatch(string(text), -1) {
					habits = append(habits, m[1])
				}
			}
		}
		var wantMistakes, wantHabits []string
		for _, m := range Mistakes() {
			if m.Language == language {
				wantMistakes = append(wantMistakes, m.Name)
			}
		}
		for _, h := range Habits() {
			if h.Language == language {
				wantHabits = append(wantHabits, h.Name)
			}
		}
		slices.Sort(mistakes)
		require.ElementsMatch(t, wantMistakes, slices.Compact(mistakes), language)
		require.ElementsMatch(t, wantHabits, habits, language)
	}
}

// TestTablesNameChecks: every glob of the tables is about a check that there is,
// and no check must both see a mistake and be silent about it.
func TestTablesNameChecks(t *testing.T) {
	cat, err := conformance.LoadCatalogue(conformance.SuiteDestination)
	require.NoError(t, err)
	for _, m := range Mistakes() {
		require.NotEmpty(t, m.Finds, m.Name)
		require.NotEmpty(t, m.Sentence, m.Name)
		for _, glob := range slices.Concat(m.Finds, m.Never) {
			require.True(t, slices.ContainsFunc(cat.Checks, func(c *conformance.Check) bool { return matches([]string{glob}, c.ID) }), "%s: no check %s", m.Name, glob)
		}
		for _, c := range cat.Checks {
			require.False(t, matches(m.Finds, c.ID) && matches(m.Never, c.ID), "%s: %s", m.Name, c.ID)
		}
	}
}
