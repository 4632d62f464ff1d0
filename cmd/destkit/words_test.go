package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
)

// banned are words that are vaguer than others, with their replacements. Each is a
// pattern of whole words.
var banned = map[string]string{
	`(tells|says) whether`:           "reports whether",
	`\(facts`:                        "the fact itself",
	`facts [A-D]\d?\b`:               "the fact itself",
	`\b(jury|suiteCourt|wardrobe)\b`: "scheduler, runner, scenario",
	`\(house:`:                       "the rule itself",
	`\(service\.md [0-9a-z]`:         "the rule itself",
	// In comments; data and features have people who are called so.
	`// .*[^<]\b([Nn]obody|[Ss]omebody)\b`: "the actor, or what happens",
	`^\s*// ([Nn]obody|[Ss]omebody)\b`:     "the actor, or what happens",
}

// TestBannedWords looks at Go files, pages and features.
func TestBannedWords(t *testing.T) {
	matrixtest.Alone(t)
	root := filepath.Join("..", "..")
	out, err := exec.Command("git", "-C", root, "ls-files", "*.go", "*.md", "*.feature", "*.txtar").Output()
	if err != nil {
		t.Skip("which files there are is asked of git")
	}
	patterns := map[*regexp.Regexp]string{}
	for pattern, instead := range banned {
		patterns[regexp.MustCompile(pattern)] = instead
	}
	files := strings.Fields(string(out))
	require.Greater(t, len(files), 500)
	for _, file := range files {
		if strings.HasSuffix(file, "words_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		for n, line := range strings.Split(string(text), "\n") {
			for pattern, instead := range patterns {
				if found := pattern.FindString(line); found != "" {
					t.Errorf("%s:%d: %q: write %s", file, n+1, found, instead)
				}
			}
		}
	}
}

// riddles are phrases that pages say in other words: the actor, or what something does.
var riddles = regexp.MustCompile(`(?i)\b(nobody|somebody|whoever|of (its|their) own|all the same|as ever|the books)\b`)

// TestPlainPages looks at the prose of the pages that are written by hand.
func TestPlainPages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	require.Greater(t, len(pages), 20)
	for _, page := range append(pages, filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "CONTRIBUTING.md")) {
		if filepath.Base(page) == "protocol.md" { // has sentences of the catalogue
			continue
		}
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for i, part := range strings.Split(string(text), "```") {
			if found := riddles.FindString(part); i%2 == 0 && found != "" {
				t.Errorf("%s: %q: name the actor or say what happens", page, found)
			}
		}
	}
}

var (
	// countedNoun is a number of a format or of a call before a plural, with a word between
	// at most; no unit such as records/s, and not the rest of a percentage.
	countedNoun = regexp.MustCompile(`(?:%d |(?:Itoa|FormatInt|FormatUint|Grouped)\([^"]*\) ?\+ ?" )((?:[a-z]+ )?)([a-z]+s)\b(?:$|[^/a-z])`)
	// limitName is a constant, which is no number of 1.
	limitName = regexp.MustCompile(`\b(max|most|longest)[A-Z]\w*\b`)
	// noNouns end in s, or no noun of the number follows them.
	noNouns = strings.Fields("is has was as this its less does of for with in nor and or at from to " +
		"adds appends belongs comes differs fails follows goes keeps lacks needs sends")
)

// TestPlainCounts: what the judge, the load generator and the program say of a number of
// things reads right with 1: plural.Count and quantity.Counted write both.
func TestPlainCounts(t *testing.T) {
	out, err := exec.Command("git", "-C", repository, "ls-files", "conformance/*.go", "loadgen/*.go", "cmd/destkit/*.go").Output()
	if err != nil {
		t.Skip("which files there are is asked of git")
	}
	for file := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(file, "_test.go") || strings.Contains(file, "/testdata/") || strings.Contains(file, "/zoo/") || strings.HasPrefix(file, "loadgen/xk6/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(repository, file))
		require.NoError(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			if limitName.MatchString(line) {
				continue
			}
			for _, m := range countedNoun.FindAllStringSubmatch(line, -1) {
				if !slices.Contains(noNouns, strings.TrimSpace(m[1])) && !slices.Contains(noNouns, m[2]) {
					t.Errorf("%s:%d: %q: write the number and its noun with plural.Count", file, i+1, m[0])
				}
			}
		}
	}
}
