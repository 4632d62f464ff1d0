package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWaysThroughTheCode: each function that CONTRIBUTING.md leads by is in its file,
// and one record takes at most 18 hops.
func TestWaysThroughTheCode(t *testing.T) {
	root := filepath.Join("..", "..")
	guide, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	hops := regexp.MustCompile("(?m)^\\| `([^`]+\\.go)` \\| `(\\w+)` \\|").FindAllStringSubmatch(string(guide), -1)
	require.Greater(t, len(hops), 30)
	record := 0
	for _, hop := range hops {
		code, err := os.ReadFile(filepath.Join(root, hop[1]))
		require.NoError(t, err)
		require.Regexp(t, `(?m)^func (\([^)]+\) )?`+hop[2]+`[\[(]`, string(code), "%s is not in %s", hop[2], hop[1])
		if regexp.MustCompile(`^server/(engine|internal/sync/)`).MatchString(hop[1]) {
			record++
		}
	}
	require.LessOrEqual(t, record, 18)
	for _, path := range regexp.MustCompile("`((?:[a-z]+/)+[a-z_]+\\.(?:go|txt|md|yaml|json))`").FindAllStringSubmatch(string(guide), -1) {
		_, err := os.Stat(filepath.Join(root, path[1]))
		require.NoError(t, err)
	}
}
