package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestActionInstalls holds how the action comes by the program: from the archive of a
// release whose checksum is right, and in no other way.
func TestActionInstalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		version, ref string
		change       func(*github, map[string]string)
		status       int
		says         string
	}{
		{name: "the tag of the action", ref: "v1.2.3"},
		{name: "a version of its own", version: "v1.2.3", ref: "main"},
		{name: "a moving tag", ref: "v1"},
		{name: "a moving tag of two numbers", ref: "v1.2"},
		{name: "latest", version: "latest"},
		{name: "an action in the same repository", version: ""},
		{name: "a moving tag of another release", ref: "v2", status: 3, says: "the newest release is v1.2.3, which is no v2; set 'version' to an exact tag"},
		{name: "a branch", ref: "feature/x", status: 3, says: "a branch or a commit (feature/x) has no release; set 'version' to a tag"},
		{name: "a commit", ref: "0123456789abcdef0123456789abcdef01234567", status: 3, says: "has no release; set 'version' to a tag"},
		{name: "a tag without a release", version: "v9.9.9", status: 3, says: "could not download " + archive + " of v9.9.9"},
		{name: "no release at all", version: "latest", status: 3, says: "/latest leads to no release; set 'version'",
			change: func(g *github, env map[string]string) { env["DESTKIT_RELEASES_URL"] = g.URL + "/nothing" }},
		{name: "another machine", ref: "v1.2.3", status: 3, says: "releases have no program for Linux ARM; use a runner with",
			change: func(_ *github, env map[string]string) { env["RUNNER_ARCH"] = "ARM" }},
		{name: "another system", ref: "v1.2.3", status: 3, says: "releases have no program for Plan9",
			change: func(_ *github, env map[string]string) { env["RUNNER_OS"] = "Plan9" }},
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
			j.env["ACTION_REF_OF_TEST"], j.env["REAL"] = tt.ref, "true"
			j.env["PATH"] = linkTools(t)
			if tt.change != nil {
				tt.change(g, j.env)
			}
			j.run(t)
			if tt.status == 0 {
				tt.status = 2 // for want of a URL: the installed program is not called
				require.FileExists(t, j.outputs["program"])
				require.Contains(t, j.log, "url is empty")
			} else {
				require.Contains(t, j.log, "::error title=destkit::")
				require.NotContains(t, j.log, "url is empty")
			}
			require.Equal(t, tt.status, j.status)
			require.Contains(t, j.log, tt.says)
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

// TestReleaseNames holds together the archives that goreleaser makes and those that the
// action downloads, on every machine.
func TestReleaseNames(t *testing.T) {
	var config struct {
		Builds []struct {
			Targets []string
		}
		Archives []struct {
			NameTemplate    string `json:"name_template"`
			Formats         []string
			FormatOverrides []struct {
				Goos    string
				Formats []string
			} `json:"format_overrides"`
		}
		Checksum struct {
			NameTemplate string `json:"name_template"`
			Algorithm    string
		}
	}
	text, err := json.Marshal(documents(t, "..", ".goreleaser.yaml")[0])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &config))
	require.Equal(t, "SHA256SUMS", config.Checksum.NameTemplate)
	require.Equal(t, "sha256", config.Checksum.Algorithm)
	require.Len(t, config.Archives, 1)
	archives := config.Archives[0]
	require.Equal(t, "{{ .ProjectName }}_{{ .Os }}_{{ .Arch }}", archives.NameTemplate)
	var made []string
	for _, build := range config.Builds {
		for _, target := range build.Targets {
			system, _, _ := strings.Cut(target, "_")
			format := archives.Formats[0]
			for _, other := range archives.FormatOverrides {
				if other.Goos == system {
					format = other.Formats[0]
				}
			}
			made = append(made, "destkit_"+target+"."+format)
		}
	}
	script, err := os.ReadFile(filepath.Join(repository, ".ci", "action", "install.sh"))
	require.NoError(t, err)
	// The part of the script that makes the name, for each machine.
	_, rest, ok := strings.Cut(string(script), "case ${RUNNER_OS:-} in\n")
	require.True(t, ok)
	naming, _, ok := strings.Cut(rest, "\ndir=")
	require.True(t, ok)
	var asked []string
	for _, system := range []string{"Linux", "macOS", "Windows"} {
		for _, machine := range []string{"X64", "ARM64"} {
			cmd := exec.Command("bash", "-euo", "pipefail", "-c", "case ${RUNNER_OS:-} in\n"+naming+"\nprintf '%s' \"$archive\"")
			cmd.Env = []string{"RUNNER_OS=" + system, "RUNNER_ARCH=" + machine}
			name, err := cmd.Output()
			require.NoError(t, err)
			asked = append(asked, string(name))
		}
	}
	require.ElementsMatch(t, asked, made)
}
