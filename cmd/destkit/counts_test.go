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
)

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
