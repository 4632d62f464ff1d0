package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/destkit/destkit/internal/matrixtest"
	"github.com/stretchr/testify/require"
)

func TestActionCompares(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	g := newGitHub(t)
	clean, broken := startSimulator(t), startSimulator(t, "RPC-002")
	baseline := newJob(t, g, map[string]string{"url": clean, "args": "--select=RPC-002"})
	baseline.run(t)
	known := newJob(t, g, map[string]string{"url": broken, "args": "--select=RPC-002"})
	known.run(t)
	event := filepath.Join(t.TempDir(), "event.json")
	require.NoError(t, os.WriteFile(event, []byte(`{"pull_request":{"number":17}}`), 0o600))

	compare := func(t *testing.T, url, with string, more map[string]string) *job {
		t.Helper()
		j := newJob(t, g, map[string]string{"url": url, "args": "--select=RPC-002", "comment": "true", "fail-on": "regression", "baseline": with})
		j.env["GITHUB_EVENT_NAME"], j.env["GITHUB_EVENT_PATH"] = "pull_request", event
		maps.Copy(j.env, more)
		j.run(t)
		return j
	}
	good := filepath.Join(baseline.dir, baseline.outputs["json"])
	bad := filepath.Join(known.dir, known.outputs["json"])
	const marker = "<!-- destkit diff: judge -->\n"
	// Others may write the marker; and there are more comments than fit on a page.
	g.comment("mallory", marker+"mine")
	for range 120 {
		g.comment("ada", "a word")
	}

	t.Run("a regression", func(t *testing.T) {
		j := compare(t, broken, good, nil)
		require.Equal(t, 1, j.status)
		require.Equal(t, "true", j.outputs["regressed"])
		require.Contains(t, j.summary, "#### Got worse (1)")
		require.FileExists(t, filepath.Join(j.dir, j.outputs["diff"]))
		require.Len(t, g.texts(), 122)
		require.Contains(t, g.texts()[121], marker+"### destkit: non-conformant, was conformant in part")
		require.NotContains(t, j.log+readOrEmpty(j.env["ARGUMENTS"]), "ghs_of_the_job")
	})
	t.Run("known findings pass, and the comment is the same one", func(t *testing.T) {
		j := compare(t, broken, bad, nil)
		require.Equal(t, 0, j.status)
		require.Equal(t, "1", j.outputs["exit-status"])
		require.Equal(t, "false", j.outputs["regressed"])
		require.Len(t, g.texts(), 122)
		require.Contains(t, g.texts()[121], "non-conformant, as before")
		require.Equal(t, marker+"mine", g.texts()[0])
	})
	t.Run("no comment outside of pull requests", func(t *testing.T) {
		g.answer(0)
		compare(t, broken, good, map[string]string{"GITHUB_EVENT_NAME": "schedule"})
		require.Empty(t, g.answer(0))
	})
	t.Run("a comment that is refused changes nothing", func(t *testing.T) {
		g.answer(http.StatusForbidden)
		defer g.answer(0)
		j := compare(t, broken, bad, nil)
		require.Equal(t, 0, j.status)
		require.Contains(t, j.log, `::warning title=destkit::the comment was not written: GitHub answered with status 403; does the job have the permission "pull-requests: write"?`)
	})
	t.Run("a baseline that is none", func(t *testing.T) {
		j := compare(t, broken, filepath.Join(baseline.dir, baseline.outputs["junit"]), nil)
		require.Equal(t, 1, j.status, "without a comparison every finding counts")
		require.Contains(t, j.log, "::warning title=destkit::the baseline cannot be compared")
	})
	t.Run("an event without a pull request", func(t *testing.T) {
		j := compare(t, clean, good, map[string]string{"GITHUB_EVENT_PATH": os.DevNull})
		require.Equal(t, 0, j.status)
		require.Contains(t, j.log, "the event names no pull request")
	})
}

func TestActionKeepsSecrets(t *testing.T) {
	matrixtest.Long(t)
	t.Parallel()
	g := newGitHub(t)
	var seen string
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.URL.RawQuery + r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"echo":"`+seen+`"}`)
	}))
	t.Cleanup(endpoint.Close)
	// Whatever the action calls notes its arguments.
	shims := t.TempDir()
	curl, err := exec.LookPath("curl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(shims, "curl"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" >>\"$ARGUMENTS\"\nexec "+curl+" \"$@\"\n"), 0o755))
	j := newJob(t, g, map[string]string{"url": endpoint.URL + "/?key=hush-hush-9925", "token-env": "CRM_TOKEN", "args": "--url-secret=query:key\n--select=RPC-0*",
		"reports": "text junit html markdown sarif har badge", "comment": "true", "baseline": "baseline.json"})
	event := filepath.Join(j.dir, "event.json")
	require.NoError(t, os.WriteFile(event, []byte(`{"pull_request":{"number":17}}`), 0o600))
	files, err := os.ReadFile(filepath.Join(repository, "conformance", "report", "testdata", "sample.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(j.dir, "baseline.json"), files, 0o600))
	j.env["CRM_TOKEN"], j.env["PATH"] = "open-sesame-7431", shims+string(os.PathListSeparator)+os.Getenv("PATH")
	j.env["GITHUB_EVENT_NAME"], j.env["GITHUB_EVENT_PATH"] = "pull_request", event
	j.run(t)
	require.Equal(t, 1, j.status)
	require.Contains(t, seen, "hush-hush-9925")
	require.Contains(t, seen, "open-sesame-7431")
	require.Len(t, g.texts(), 1)
	left := j.log + j.summary + fmt.Sprint(g.texts(), j.outputs) + readOrEmpty(j.env["ARGUMENTS"])
	reports, err := filepath.Glob(filepath.Join(j.dir, "destkit-reports", "*"))
	require.NoError(t, err)
	require.Greater(t, len(reports), 8)
	for _, file := range reports {
		left += readOrEmpty(file)
	}
	require.Contains(t, left, "issues/17/comments", "the calls of curl were seen")
	for _, secret := range []string{"hush-hush-9925", "open-sesame-7431", "ghs_of_the_job"} {
		require.NotContains(t, left, secret)
	}
}
