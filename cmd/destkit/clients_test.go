package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/destkit/destkit/internal/matrixtest"
)

// TestMatrixClientPackages runs the tests of the packages in clients, and the examples of their
// pages, in their runtimes. destkit is this program.
func TestMatrixClientPackages(t *testing.T) {
	matrixtest.Long(t)
	if testing.Short() {
		t.Skip("the packages in clients are not tested with -short")
	}
	t.Run("python", testPythonClient)
	t.Run("node", testNodeClient)
}

// testPythonClient makes pytest find the package as if it were installed: by the entry
// point that pyproject.toml declares.
func testPythonClient(t *testing.T) {
	t.Parallel()
	python, found := "", false
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if python = name; exec.Command(name, "-c", "import pytest").Run() == nil {
			found = true
			break
		}
	}
	if !found {
		matrixtest.Missing(t, "pytest", "python3 with pytest is not installed (python3-pytest on Debian): clients/python is not tested")
	}
	client := clientFolder(t, "python")
	installed, examples := t.TempDir(), t.TempDir()
	info := filepath.Join(installed, "destkit-"+declared(t, client, `version = "(.*)"`)+".dist-info")
	require.NoError(t, os.Mkdir(info, 0o700))
	entry := declared(t, client, `(?m)^\[project\.entry-points\.pytest11\]\n(destkit = ".*")$`)
	writeTestFile(t, filepath.Join(info, "entry_points.txt"), "[pytest11]\n"+strings.ReplaceAll(entry, `"`, "")+"\n")
	writeTestFile(t, filepath.Join(info, "METADATA"), "Metadata-Version: 2.1\nName: destkit\nVersion: 0\n")
	writeTestFile(t, filepath.Join(examples, "test_readme.py"), examplesOf(t, client, "python"))

	env := append(clientEnv(t), "PYTHONDONTWRITEBYTECODE=1")
	runClient(t, client, env, python, "-m", "pytest", "-q", "-p", "no:cacheprovider")
	env = append(env, "PYTHONPATH="+installed+string(filepath.ListSeparator)+filepath.Join(client, "src"))
	runClient(t, examples, env, python, "-m", "pytest", "-q", "-p", "no:cacheprovider")
}

// testNodeClient installs the packed package, so that nothing is missing in it.
func testNodeClient(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"node", "npm"} {
		if _, err := exec.LookPath(name); err != nil {
			matrixtest.Missing(t, name, "%s is not installed: clients/node is not tested", name)
		}
	}
	if exec.Command("node", "-e", "process.exit(+(parseInt(process.versions.node) < 20))").Run() != nil {
		matrixtest.Missing(t, "npm", "node is older than 20: clients/node is not tested")
	}
	client := clientFolder(t, "node")
	env := clientEnv(t)
	runClient(t, client, env, "npm", "test")

	examples := t.TempDir()
	runClient(t, client, env, "npm", "pack", "--pack-destination", examples)
	packed, err := filepath.Glob(filepath.Join(examples, "*.tgz"))
	require.NoError(t, err)
	require.Len(t, packed, 1)
	writeTestFile(t, filepath.Join(examples, "package.json"), `{"type": "module", "private": true}`)
	runClient(t, examples, env, "npm", "install", "--offline", "--no-audit", "--no-fund", packed[0])
	writeTestFile(t, filepath.Join(examples, "readme.test.js"), examplesOf(t, client, "js"))
	runClient(t, examples, env, "node", "--test")
}

// frameworks are those that the examples for Node run in besides node:test, with the
// import that takes its place. Both end a test after five seconds by default; a busy
// machine needs more for three runs.
var frameworks = map[string]struct {
	install, imports string
	command          []string
}{
	"vitest": {"vitest@2.1.9", "import { afterAll as after, test } from 'vitest';", []string{"vitest", "run", "--testTimeout=60000"}},
	"jest":   {"jest@29.7.0", "import { afterAll as after, test } from '@jest/globals';", []string{"jest", "--testTimeout=60000"}},
}

// TestMatrixClientFrameworks runs the examples for Node in other frameworks, which npm
// installs.
func TestMatrixClientFrameworks(t *testing.T) {
	if !matrixtest.Whole() && !matrixtest.Named() {
		t.Skip("frameworks that npm has to install are tried with DESTKIT_TIER=full")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		matrixtest.Missing(t, "npm", "npm is not installed: clients/node is not tried with vitest and jest")
	}
	client := clientFolder(t, "node")
	line := regexp.MustCompile(`(?m)^import \{ after, test \} from 'node:test';.*$`)
	for name, framework := range frameworks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			examples := t.TempDir()
			env := append(clientEnv(t), "NODE_OPTIONS=--experimental-vm-modules", "npm_config_prefer_offline=true")
			text := examplesOf(t, client, "js")
			require.Regexp(t, line, text)
			writeTestFile(t, filepath.Join(examples, "readme.test.js"), line.ReplaceAllString(text, framework.imports))
			writeTestFile(t, filepath.Join(examples, "package.json"), `{"type": "module", "private": true}`)
			runClient(t, examples, env, "npm", "install", "--no-audit", "--no-fund", framework.install, client)
			runClient(t, examples, env, "npx", append([]string{"--no-install"}, framework.command...)...)
		})
	}
}

func clientFolder(t *testing.T, name string) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join(repository, "clients", name))
	require.NoError(t, err)
	return folder
}

// clientEnv is the environment without what chooses another program.
func clientEnv(t *testing.T) []string {
	t.Helper()
	var env []string
	for _, setting := range os.Environ() {
		if name, _, _ := strings.Cut(setting, "="); name != "DESTKIT_BIN" && name != "PYTHONPATH" && name != "NODE_OPTIONS" {
			env = append(env, setting)
		}
	}
	return env
}

// declared is a value in pyproject.toml.
func declared(t *testing.T, client, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(client, "pyproject.toml"))
	require.NoError(t, err)
	found := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
	require.NotNil(t, found, pattern)
	return found[1]
}

// examplesOf are the blocks of a language on the page of a package: together one file.
func examplesOf(t *testing.T, client, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(client, "README.md"))
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(blocks), 2, "the page has examples")
	var all strings.Builder
	for _, block := range blocks {
		all.WriteString(block[1] + "\n")
	}
	return all.String()
}

func writeTestFile(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

func runClient(t *testing.T, folder string, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = folder, env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

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
