package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// pagesWithTests are those whose tables end with the tests that show each row.
var pagesWithTests = []string{"security.md"}

var (
	namedTest  = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	namedWords = regexp.MustCompile("`([a-z0-9-]+)\\.txtar`")
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
)

// TestPromisesNameTheirTests: each row of the pages about security and limits names a
// test or a transcript that exists.
func TestPromisesNameTheirTests(t *testing.T) {
	root := filepath.Join("..", "..")
	tests := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range testFunc.FindAllStringSubmatch(string(text), -1) {
			tests[found[1]] = true
		}
		return err
	}))
	for _, page := range pagesWithTests {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		require.NoError(t, err)
		rows := 0
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			if !strings.HasPrefix(line, "| ") || i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---") {
				continue
			}
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			last := cells[len(cells)-1]
			found := namedTest.FindAllStringSubmatch(last, -1)
			scripts := namedWords.FindAllStringSubmatch(last, -1)
			require.NotEmpty(t, append(found, scripts...), "%s:%d names no test: %s", page, i+1, line)
			for _, name := range found {
				require.True(t, tests[name[1]], "%s:%d: there is no %s", page, i+1, name[1])
			}
			for _, name := range scripts {
				kept, err := filepath.Glob(filepath.Join("testdata", "*", name[1]+".txtar"))
				require.NoError(t, err)
				require.NotEmpty(t, kept, "%s:%d: there is no script %s", page, i+1, name[1])
			}
			rows++
		}
		require.Greater(t, rows, 10, page)
	}
}

// TestFuzzTable: the page names every fuzz test with its package, and how many inputs
// are kept there.
func TestFuzzTable(t *testing.T) {
	root := filepath.Join("..", "..")
	fuzzed, kept := map[string][]string{}, map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		name = filepath.ToSlash(name)
		if folder, _, found := strings.Cut(name, "/testdata/fuzz/"); found {
			kept[folder]++
			return nil
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range testFunc.FindAllStringSubmatch(string(text), -1) {
			if folder := name[:strings.LastIndexByte(name, '/')]; strings.HasPrefix(found[1], "Fuzz") {
				fuzzed[folder] = append(fuzzed[folder], "`"+found[1]+"`")
			}
		}
		return err
	}))
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	require.NoError(t, err)
	require.NotEmpty(t, fuzzed)
	for folder, names := range fuzzed {
		slices.Sort(names)
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(folder) + ` \| [^|]+ \| ` + strconv.Itoa(kept[folder]) + ` \| ` + regexp.QuoteMeta(strings.Join(names, ", ")) + ` \|$`)
		require.True(t, row.Match(page), "%s: %d inputs of %v", folder, kept[folder], names)
	}
}

// TestServeLogsRequestsWhenAsked: where standard error is no terminal, a line for each
// request comes with --log-level alone.
func TestServeLogsRequestsWhenAsked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		flags []string
		paths []string
	}{
		"as it is": {[]string{"--log-format", "json"}, nil},
		"info":     {[]string{"--log-level", "info", "--log-format", "json"}, []string{"/api/v1"}},
		"debug":    {[]string{"--log-level", "debug", "--log-format", "json"}, []string{"/api/v1", "/healthz"}},
		"off":      {[]string{"--log-level", "off"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			cmd := exec.Command("destkit", append([]string{"serve", "--addr", "127.0.0.1:0"}, tc.flags...)...)
			cmd.Env, cmd.Stderr = append(os.Environ(), "HOME="+t.TempDir()), &log
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewReader(out)
			line, err := lines.ReadString('\n')
			require.NoError(t, err)
			address := strings.TrimPrefix(strings.TrimSpace(line), "listening ")
			for _, path := range []string{"/api/v1", "/healthz"} {
				answer, err := http.Get(address + path)
				require.NoError(t, err)
				require.NoError(t, answer.Body.Close())
				require.Equal(t, 200, answer.StatusCode)
			}
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			_, err = lines.WriteTo(new(bytes.Buffer))
			require.NoError(t, err)
			require.NoError(t, cmd.Wait())
			var paths []string
			for line := range strings.Lines(log.String()) {
				var one struct{ Msg, Path string }
				require.NoError(t, json.Unmarshal([]byte(line), &one), line)
				if one.Msg == "request" {
					paths = append(paths, one.Path)
				}
			}
			require.Equal(t, tc.paths, paths, log.String())
		})
	}
}
