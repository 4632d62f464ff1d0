package matrixtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
