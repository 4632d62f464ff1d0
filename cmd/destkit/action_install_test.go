package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestActionInstalls holds how the action comes by the program: from a release
// when one fits and its checksum is right, by Go when none fits, and never from
// a file whose checksum is wrong.
func TestActionInstalls(t *testing.T) {
	t.Parallel()
	files, err := released()
	require.NoError(t, err)
	var archive string
	for name := range files {
		if name != "SHA256SUMS" {
			archive = name
		}
	}
	for _, tt := range []struct {
		name         string
		version, ref string
		change       func(*github, map[string]string)
		status       int
		built        string // the version that Go was asked for
		says         string
	}{
		{name: "the tag of the action", ref: "v1.2.3"},
		{name: "a version of its own", version: "v1.2.3", ref: "main"},
		{name: "a moving tag", ref: "v1"},
		{name: "a moving tag of two numbers", ref: "v1.2"},
		{name: "latest", version: "latest"},
		{name: "an action in the same repository", version: ""},
		{name: "a moving tag of another release", ref: "v2", built: "v2"},
		{name: "a branch", ref: "feature/x", built: "feature/x"},
		{name: "a commit", ref: "0123456789abcdef0123456789abcdef01234567", built: "0123456789abcdef0123456789abcdef01234567"},
		{name: "a tag without a release", version: "v9.9.9", built: "v9.9.9", says: "there is no " + archive + " of v9.9.9 (status 404)"},
		{name: "another machine", ref: "v1.2.3", built: "v1.2.3", change: func(_ *github, env map[string]string) { env["RUNNER_ARCH"] = "ARM" }},
		{name: "no Go", ref: "main", status: 3, says: "there is no Go to build one; put actions/setup-go before it"},
		{name: "Go fails", ref: "broken", status: 3, built: "broken", says: "go install could not build destkit broken"},
		{name: "no version at all", version: "v1.2.3; touch hurt", status: 2, says: "version must be a tag"},
		{name: "a wrong checksum", ref: "v1.2.3", status: 3, says: "the checksum of " + archive + " of v1.2.3 is ",
			change: func(g *github, _ map[string]string) { g.files[archive] = append(bytes.Clone(g.files[archive]), 0) }},
		{name: "no checksum of this file", ref: "v1.2.3", status: 3, says: "SHA256SUMS says nothing; it was not used",
			change: func(g *github, _ map[string]string) { g.files["SHA256SUMS"] = []byte("\n") }},
		{name: "no checksums", ref: "v1.2.3", status: 3, says: "has no SHA256SUMS (status 404)",
			change: func(g *github, _ map[string]string) { delete(g.files, "SHA256SUMS") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGitHub(t)
			j := newJob(t, g, map[string]string{"url": "", "version": tt.version})
			tools := linkTools(t)
			if tt.name != "no Go" {
				fakeGo(t, tools)
			}
			j.env["ACTION_REF_OF_TEST"], j.env["REAL"] = tt.ref, "true"
			j.env["PATH"] = tools
			if tt.change != nil {
				tt.change(g, j.env)
			}
			j.run(t)
			if tt.status == 0 {
				tt.status = 2 // for want of a URL: the installed program is not asked
				require.FileExists(t, j.outputs["program"])
				require.Contains(t, j.log, "url is empty")
			} else {
				require.Contains(t, j.log, "::error title=destkit::")
				require.NotContains(t, j.log, "url is empty")
			}
			require.Equal(t, tt.status, j.status)
			require.Contains(t, j.log, tt.says)
			asked := readOrEmpty(filepath.Join(tools, "asked"))
			if tt.built == "" {
				require.Empty(t, asked)
			} else {
				require.Equal(t, "install -trimpath github.com/destkit/destkit/cmd/destkit@"+tt.built+"\n", asked)
			}
		})
	}
}

// linkTools makes a folder with the tools of every runner, and no Go.
func linkTools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, tool := range []string{"bash", "sh", "curl", "jq", "tar", "gzip", "awk", "mktemp", "sha256sum", "shasum",
		"true", "dirname", "rm", "cat", "head", "mkdir", "chmod"} {
		if path, err := exec.LookPath(tool); err == nil {
			require.NoError(t, os.Symlink(path, filepath.Join(dir, tool)))
		}
	}
	return dir
}

// fakeGo puts a Go into dir that notes what it was asked for, and builds a
// program that does nothing.
func fakeGo(t *testing.T, dir string) {
	t.Helper()
	const script = `#!/bin/sh
here=$(dirname "$0")
case $1 in
  version) echo go version go1.26.8; exit ;;
esac
echo "$*" >"$here/asked"
case $3 in
  *@broken) exit 1 ;;
esac
printf '#!/bin/sh\n' >"$GOBIN/destkit"
chmod +x "$GOBIN/destkit"
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755))
}

// TestReleaseNames holds together what `make release` builds and what the action
// asks for on every machine.
func TestReleaseNames(t *testing.T) {
	cmd := exec.Command("go", "run", filepath.Join(".ci", "release.go"), "-list")
	cmd.Dir = repository
	out, err := cmd.Output()
	require.NoError(t, err)
	script, err := os.ReadFile(filepath.Join(repository, ".ci", "action", "install.sh"))
	require.NoError(t, err)
	// The part of the script that makes the name, for each machine.
	_, rest, ok := strings.Cut(string(script), "case ${RUNNER_OS:-} in\n")
	require.True(t, ok)
	naming, _, ok := strings.Cut(rest, "\ndir=")
	require.True(t, ok)
	want := []string{"SHA256SUMS"}
	for _, system := range []string{"Linux", "macOS", "Windows"} {
		for _, machine := range []string{"X64", "ARM64"} {
			cmd := exec.Command("bash", "-euo", "pipefail", "-c", "case ${RUNNER_OS:-} in\n"+naming+"\nprintf '%s' \"$archive\"")
			cmd.Env = []string{"RUNNER_OS=" + system, "RUNNER_ARCH=" + machine}
			name, err := cmd.Output()
			require.NoError(t, err)
			want = append(want, string(name))
		}
	}
	require.ElementsMatch(t, want, strings.Fields(string(out)))
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	require.NoError(t, err)
	require.Contains(t, string(makefile), "\nrelease: ")
	// Both builds put the version where `destkit version` finds it.
	release, err := os.ReadFile(filepath.Join(repository, ".ci", "release.go"))
	require.NoError(t, err)
	for _, source := range [][]byte{makefile, release} {
		require.Contains(t, string(source), "-s -w -X main.version=")
	}
	require.Contains(t, string(makefile), "run .ci/release.go -version '$(VERSION)'")
}
