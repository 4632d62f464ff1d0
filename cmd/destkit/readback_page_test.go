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

// TestReadbackSnippets runs the hooks of the guide on what SQLite keeps: 1 for true and
// text for a list. They give true, false and lists.
func TestReadbackSnippets(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "judge.md"))
	require.NoError(t, err)
	question := `{"object": "contact", "identifier_field": "email", "identifiers": ["a@x.io", "b@x.io", "c@x.io"]}`
	rows := `[["a@x.io", "Ada", 7, 1, "[\"x\", \"y\"]"], ["b@x.io", null, null, 0, null]]`
	for language, tt := range map[string]struct {
		program, before, after string
		want                   string
	}{
		"python": {"python3", `import json, sqlite3
made = sqlite3.connect("records.db")
made.execute("CREATE TABLE contact (email TEXT, last_name TEXT, age INTEGER, active INTEGER, tags TEXT)")
made.executemany("INSERT INTO contact VALUES (?, ?, ?, ?, ?)", json.loads('''` + strings.ReplaceAll(rows, `\`, `\\`) + `'''))
made.commit()
`, "", `{"records": [{"identifier": "a@x.io", "count": 1, "fields": {"email": "a@x.io", "last_name": "Ada", "age": 7, "active": true, "tags": ["x", "y"]}},
			{"identifier": "b@x.io", "count": 1, "fields": {"email": "b@x.io", "last_name": null, "age": null, "active": false, "tags": null}}], "complete": true}`},
		"js": {"node", "const stored = " + rows + ".map(([email, , , active, tags]) => ({ email, active, tags }));\n",
			"\nconsole.log(JSON.stringify(readback(" + question + ")));\n",
			`{"records": [{"identifier": "a@x.io", "count": 1, "fields": {"email": "a@x.io", "active": true, "tags": ["x", "y"]}},
			{"identifier": "b@x.io", "count": 1, "fields": {"email": "b@x.io", "active": false, "tags": null}}], "complete": true}`},
	} {
		t.Run(language, func(t *testing.T) {
			needTools(t, tt.program)
			found := regexp.MustCompile("(?s)```" + language + "\n(.*?readback.*?)```").FindStringSubmatch(string(page))
			require.NotNil(t, found)
			snippet, _, _ := strings.Cut(found[1], "createServer(async") // it would listen
			snippet = strings.Replace(snippet, "import { createServer } from 'node:http';\n", "", 1)
			dir := t.TempDir()
			file := filepath.Join(dir, "hook."+language)
			require.NoError(t, os.WriteFile(file, []byte(tt.before+snippet+tt.after), 0o600))
			cmd := exec.Command(tt.program, file)
			cmd.Dir, cmd.Stdin = dir, strings.NewReader(question)
			out, err := cmd.Output()
			require.NoError(t, err, "%s", out)
			require.JSONEq(t, tt.want, string(out))
		})
	}
}

// TestStartKeepsTheToken: who follows the page step by step gives the token to each
// command that calls an endpoint; that of the simulator needs none.
func TestStartKeepsTheToken(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "start.md"))
	require.NoError(t, err)
	n := 0
	for _, line := range regexp.MustCompile(`(?m)^(?:\$ |.*again:  )destkit (?:conform|plan|replay|load) .*$`).FindAllString(string(page), -1) {
		if !strings.Contains(line, ":8090") {
			require.Contains(t, line, "--token-env TOKEN", line)
			n++
		}
	}
	require.GreaterOrEqual(t, n, 6)
}
