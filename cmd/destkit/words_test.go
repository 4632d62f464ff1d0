package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// banned are words that say less than others do, with what stands in their place. Each
// is a pattern of whole words.
var banned = map[string]string{
	`(tells|says) whether`:           "reports whether",
	`\(facts`:                        "the fact itself",
	`facts [A-D]\d?\b`:               "the fact itself",
	`\b(jury|suiteCourt|wardrobe)\b`: "scheduler, runner, scenario",
	`\(house:`:                       "the rule itself",
	`\(service\.md [0-9a-z]`:         "the rule itself",
}

// TestBannedWords looks at Go files, pages and features.
func TestBannedWords(t *testing.T) {
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
