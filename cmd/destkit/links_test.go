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

var (
	pageLink    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	pageHeading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	pageAnchor  = regexp.MustCompile(`<a id="([^"]+)"`)
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchorsOf returns the anchors that GitHub makes of the headings of a page, and those
// that are written.
func anchorsOf(page string) map[string]bool {
	prose := ""
	for i, part := range strings.Split(page, "```") {
		if i%2 == 0 {
			prose += part
		}
	}
	out := map[string]bool{}
	for _, heading := range pageHeading.FindAllStringSubmatch(prose, -1) {
		text := notInAnchor.ReplaceAllString(strings.ToLower(heading[1]), "")
		out[strings.ReplaceAll(text, " ", "-")] = true
	}
	for _, id := range pageAnchor.FindAllStringSubmatch(prose, -1) {
		out[id[1]] = true
	}
	return out
}

// TestPageLinks: each relative link of a page leads to a file that exists and, where it
// names one, to a heading of it.
func TestPageLinks(t *testing.T) {
	out, err := exec.Command("git", "-C", repository, "ls-files", "*.md").Output()
	if err != nil {
		t.Skip("which pages there are is asked of git")
	}
	links := 0
	for page := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(filepath.Join(repository, page))
		require.NoError(t, err)
		for _, link := range pageLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			file, anchor, named := strings.Cut(link[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			info, err := os.Stat(filepath.Join(repository, target))
			if err != nil {
				t.Errorf("%s: %s leads to no file", page, link[1])
				continue
			}
			links++
			if !named || info.IsDir() {
				continue
			}
			there, err := os.ReadFile(filepath.Join(repository, target))
			require.NoError(t, err)
			if !anchorsOf(string(there))[anchor] {
				t.Errorf("%s: %s has no heading #%s", page, target, anchor)
			}
		}
	}
	require.Greater(t, links, 50)
}

// TestIndexNamesEveryPage: each page of docs/ and of docs/evidence/ has its line in the
// index of its folder, except those that only say where a page is now.
func TestIndexNamesEveryPage(t *testing.T) {
	for _, folder := range []string{"docs", filepath.Join("docs", "evidence")} {
		index, err := os.ReadFile(filepath.Join(repository, folder, "README.md"))
		require.NoError(t, err)
		pages, err := filepath.Glob(filepath.Join(repository, folder, "*.md"))
		require.NoError(t, err)
		require.Greater(t, len(pages), 10)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			require.NoError(t, err)
			if name := filepath.Base(page); name != "README.md" && !strings.HasPrefix(string(text), "Moved to [") {
				require.Contains(t, string(index), "]("+name+")", "add %s/%s to %[1]s/README.md", folder, name)
			}
		}
	}
}
